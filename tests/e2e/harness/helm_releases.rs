//! Flux's HelmReleases, without Flux.

use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::clients::{Identity, Kubectl};
use crate::harness::controllers::helm_controller;
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;

/// How long a definition may take until it is served and the webhook watches it.
pub(crate) const SERVED: Duration = Duration::from_secs(60);

/// Installs the definition of HelmReleases and waits until the webhook knows it.
#[track_caller]
pub(crate) fn define(plane: &Plane) {
    let admin = plane.kubectl(&plane.admin());
    plane.define("tests/e2e/harness/crds/helmreleases.yaml");
    let probe = helm_release("default", "probe", json!({}));
    eventually(SERVED, "the webhook knows the HelmReleases", || {
        let output = admin.with_file("create", &probe, &["--dry-run=server"]);
        if output.stderr.contains("Could not check") { Err(output.to_string()) } else { output.into_result() }
    });
}

/// The shared plane, with HelmReleases defined long after its webhook started.
pub(crate) fn shared() -> &'static Plane {
    static DEFINED: OnceLock<()> = OnceLock::new();
    DEFINED.get_or_init(|| define(Plane::shared()));
    Plane::shared()
}

/// Writes the status of a HelmRelease whose release Flux has installed: its records are with the HelmRelease, its objects in this
/// namespace.
#[track_caller]
pub(crate) fn installed(namespace: &Namespace<'_>, name: &str, objects: &Namespace<'_>) {
    attempted(namespace, name, objects, &["deployed"]);
}

/// The same, written by somebody else than Flux.
#[track_caller]
pub(crate) fn installed_by(who: &Identity, namespace: &Namespace<'_>, name: &str, objects: &Namespace<'_>) {
    write_status(who, namespace, name, objects, &["deployed"]);
}

/// The same after several attempts: what became of each, the newest first.
#[track_caller]
pub(crate) fn attempted(namespace: &Namespace<'_>, name: &str, objects: &Namespace<'_>, statuses: &[&str]) {
    write_status(&helm_controller(namespace.plane()), namespace, name, objects, statuses);
}

#[track_caller]
fn write_status(who: &Identity, namespace: &Namespace<'_>, name: &str, objects: &Namespace<'_>, statuses: &[&str]) {
    let snapshot = |(index, status): (usize, &&str)| {
        let version = statuses.len() - index;
        json!({"name": name, "namespace": objects.name(), "version": version, "status": status, "chartName": "shop"})
    };
    let history: Vec<_> = statuses.iter().enumerate().map(snapshot).collect();
    let patch = json!({"status": {"storageNamespace": namespace.name(), "history": history}}).to_string();
    let target = format!("helmrelease/{name}");
    namespace.kubectl_as(who).ok(&["patch", &target, "--subresource=status", "--type=merge", "-p", &patch]);
}

pub(crate) fn helm_release(namespace: &str, name: &str, spec: Value) -> Value {
    let mut whole = json!({"interval": "10m", "chartRef": {"kind": "OCIRepository", "name": "shop"}});
    for (key, value) in spec.as_object().into_iter().flatten() {
        whole[key] = value.clone();
    }
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": name, "namespace": namespace}, "spec": whole,
    })
}

/// Repeats a dry run until the webhook has seen the reason to refuse it, then creates the object.
#[track_caller]
pub(crate) fn refused(kubectl: &Kubectl, object: &Value, texts: &[&str]) {
    let output = eventually(SERVED, &format!("a refusal with {texts:?}"), || {
        let output = kubectl.with_file("create", object, &["--dry-run=server"]);
        if output.success() { Err(output.to_string()) } else { Ok(output) }
    });
    output.expect_failure(texts);
    kubectl.with_file("create", object, &[]).expect_failure(texts);
}
