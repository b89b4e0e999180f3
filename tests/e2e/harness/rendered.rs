//! `manifests/` as the real kubectl and the real helm render them.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::harness::assets::assets;
use crate::harness::clients::HelmVersion;
use crate::harness::process::{Output, run};

const DEADLINE: Duration = Duration::from_secs(60);

/// The registry in the image of a rendered chart. The kustomizations have none.
pub(crate) const REGISTRY: &str = "registry.invalid/";

/// The overlays, each with the values by which the chart renders the same.
pub(crate) const OVERLAYS: [(&str, &str); 9] = [
    ("aks", "--values=manifests/chart/platforms/aks.yaml"),
    ("audit-first", "--set=mode=audit-first"),
    ("cert-manager", "--set=certificates.mode=cert-manager"),
    ("eks", "--values=manifests/chart/platforms/eks.yaml"),
    ("gke", "--values=manifests/chart/platforms/gke.yaml"),
    ("host-network", "--values=manifests/chart/platforms/host-network.yaml"),
    ("namespaced", "--set=namespaces={shop}"),
    ("openshift", "--values=manifests/chart/platforms/openshift.yaml"),
    ("protected-releases", "--set=protectedReleases=true"),
];

/// `base`, or `overlays/NAME`.
#[track_caller]
pub(crate) fn kustomize(directory: &str) -> Vec<Value> {
    let mut kubectl = Command::new(&assets().kubectl);
    kubectl.arg("kustomize").arg(manifests(directory));
    documents(&run(kubectl, DEADLINE).expect_success().stdout)
}

/// The rendered chart, without hooks unless the arguments ask for them.
#[track_caller]
pub(crate) fn chart(version: HelmVersion, namespace: &str, arguments: &[&str]) -> Vec<Value> {
    documents(&helm(version, "template", namespace, arguments).expect_success().stdout)
}

/// Runs `helm COMMAND` with the chart to its end, successful or not.
pub(crate) fn helm(version: HelmVersion, command: &str, namespace: &str, arguments: &[&str]) -> Output {
    let assets = assets();
    let mut helm = Command::new(match version {
        HelmVersion::V3 => &assets.helm3,
        HelmVersion::V4 => &assets.helm4,
    });
    // The paths of presets are those of the repository.
    helm.current_dir(env!("CARGO_MANIFEST_DIR")).arg(command);
    if command == "template" {
        helm.arg("interlock");
    }
    // Without a cluster, helm 3 would use the version of its own build, which has none.
    helm.arg(manifests("chart")).args(["-n", namespace, "--kube-version", "1.36.0"]);
    helm.arg(format!("--set=image.registry={REGISTRY}")).args(arguments);
    run(helm, DEADLINE)
}

/// The one object of a kind and name.
#[track_caller]
pub(crate) fn object<'o>(objects: &'o [Value], kind: &str, name: &str) -> &'o Value {
    let found = objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("expected {kind} {name}"))
}

pub(crate) fn of_kind<'o>(objects: &'o [Value], kind: &str) -> impl Iterator<Item = &'o Value> {
    objects.iter().filter(move |object| object["kind"] == kind)
}

pub(crate) fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

pub(crate) fn manifests(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("manifests").join(path)
}

#[track_caller]
fn documents(text: &str) -> Vec<Value> {
    let documents = text.split("\n---\n").map(|document| document.trim_start_matches("---\n"));
    let parsed = documents.map(|document| {
        serde_saphyr::from_str::<Option<Value>>(document).unwrap_or_else(|error| panic!("{error}\n{document}"))
    });
    parsed.flatten().filter(|document| !document.is_null()).collect()
}
