//! Checks the requirements of an installation on a cluster without Interlock. No printed command lets an entry fail closed.

mod permissions;

use interlock_engine::severity::Severity::{High, Medium};
use kube::Client;
use serde_json::Value;

use super::diagnosis::{Checked, Diagnosis, DoctorReport};
use super::fetch::Fetched;
use super::platform::{self, EKS, Platform};
use super::snapshot::Snapshot;
use super::{other_webhooks, server};
use crate::inspect::arrival::CONFIGURATION;

/// Labels and annotations with which a Namespace enables the sidecar of a service mesh, and the value that enables it.
const MESHES: [(&str, &str, &str); 3] = [
    ("istio-injection", "enabled", "Istio"),
    ("istio.io/rev", "", "Istio"),
    ("linkerd.io/inject", "enabled", "Linkerd"),
];

/// Whether no part of an installation exists. An object that cannot be read may exist.
pub(super) fn is_absent(snapshot: &Snapshot) -> bool {
    is_missing(&snapshot.validating) && is_missing(&snapshot.mutating) && matches!(snapshot.deployment, Fetched::Absent)
}

fn is_missing(fetched: &Fetched) -> bool {
    matches!(fetched.named(CONFIGURATION), Ok(None))
}

/// Runs the checks. If the user asked for them (`is_wanted`), a missing installation is no finding.
pub(super) async fn examine(client: &Client, snapshot: &Snapshot, is_wanted: bool, report: &mut DoctorReport) {
    report.add("installed", Ok(installed(snapshot, is_wanted)));
    report.add("api-server", server::version(snapshot));
    report.add("api-server", Ok(server::clocks(snapshot)));
    report.add("permissions", permissions::diagnose(client, &snapshot.namespace).await);
    report.add("pod-security", pod_security(snapshot));
    report.add("platform", platform::diagnose(snapshot));
    report.add("way", Ok(way(snapshot)));
    report.add("way", Ok(mesh(snapshot)));
    report.add("other-webhooks", Ok(other_webhooks::diagnose(snapshot)));
}

fn installed(snapshot: &Snapshot, is_wanted: bool) -> Diagnosis {
    let own = &snapshot.namespace;
    if !is_absent(snapshot) {
        return Diagnosis::note(format!("something of Interlock exists already: interlock doctor -n {own} checks it"));
    }
    let preset = Platform::of(snapshot).map(|platform| format!(" -f {}", platform.preset)).unwrap_or_default();
    let install = format!(
        "helm install interlock manifests/chart -n {own} --create-namespace{preset} --set \
         image.registry=registry.example.com\n(with your registry; nothing fails closed before the API server has reached a \
         replica)"
    );
    let evidence =
        format!("Interlock is not installed in namespace {own}, and no webhook configuration is called interlock");
    if is_wanted {
        Diagnosis { fix: Some(install), ..Diagnosis::note(evidence) }
    } else {
        Diagnosis::found(High, evidence, install)
    }
}

/// Interlock's own Namespace, if it exists.
fn own_namespace(snapshot: &Snapshot) -> Result<Option<&Value>, &str> {
    snapshot.namespaces.named(&snapshot.namespace)
}

/// Whether the namespace admits the pods, which run under the profile `restricted`.
fn pod_security(snapshot: &Snapshot) -> Checked {
    let own = &snapshot.namespace;
    let Some(namespace) = own_namespace(snapshot)? else {
        return Ok(Diagnosis::ok(format!("namespace {own} does not exist yet; pods run restricted")));
    };
    Ok(match namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"].as_str() {
        None | Some("privileged") => Diagnosis::ok(format!("namespace {own} admits every pod")),
        Some(level @ ("restricted" | "baseline")) => {
            Diagnosis::ok(format!("namespace {own} enforces {level}, which admits the pods, but none with hostNetwork"))
        }
        Some(level) => {
            let evidence = format!("namespace {own} enforces the unknown level {level:?}");
            let fix =
                format!("kubectl label namespace {own} --overwrite pod-security.kubernetes.io/enforce=restricted");
            Diagnosis::found(Medium, evidence, fix)
        }
    })
}

/// Whether the API server will reach the pods, as far as the cluster shows it.
fn way(snapshot: &Snapshot) -> Diagnosis {
    if platform::has_overlay_network(snapshot) {
        let evidence = "there is no DaemonSet aws-node: pods are probably in an overlay network, which the control plane of EKS \
                        cannot reach";
        let fix = format!("install with hostNetwork: true, as in {}", EKS.preset);
        return Diagnosis::found(Medium, evidence, fix);
    }
    Diagnosis::note(
        "whether the API server reaches a pod is known only after the installation. Until a review has arrived, every entry \
         fails open",
    )
}

/// Reports a service mesh: its sidecar would terminate the TLS of reviews.
fn mesh(snapshot: &Snapshot) -> Option<Diagnosis> {
    let own = &snapshot.namespace;
    let metadata = &own_namespace(snapshot).ok()??["metadata"];
    let (key, _, mesh) = MESHES.into_iter().find(|(key, value, _)| {
        let found = ["labels", "annotations"].into_iter().filter_map(|map| metadata[map][*key].as_str());
        found.into_iter().any(|found| value.is_empty() || found == *value)
    })?;
    let kind = if metadata["labels"][key].is_string() { "label" } else { "annotate" };
    let evidence = format!("{mesh} injects a sidecar into the pods of {own}, which ends the TLS of reviews");
    Some(Diagnosis::found(Medium, evidence, format!("kubectl {kind} namespace {own} {key}-")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn empty() -> Snapshot {
        Snapshot {
            validating: Fetched::Known(json!({"items": []})),
            mutating: Fetched::Known(json!({"items": []})),
            deployment: Fetched::Absent,
            namespaces: Fetched::Known(json!({"items": []})),
            ..Snapshot::unread()
        }
    }

    fn in_namespace(labels: &Value) -> Snapshot {
        let namespace = json!({"metadata": {"name": "guard", "labels": labels}});
        Snapshot { namespaces: Fetched::Known(json!({"items": [namespace]})), ..empty() }
    }

    #[test]
    fn nothing_is_absent_that_cannot_be_read() {
        assert!(is_absent(&empty()) && !is_absent(&Snapshot::unread()));
        let registered = Fetched::Known(json!({"items": [{"metadata": {"name": "interlock"}}]}));
        assert!(!is_absent(&Snapshot { mutating: registered, ..empty() }));
        assert!(!is_absent(&Snapshot { deployment: Fetched::Known(json!({})), ..empty() }));
    }

    #[test]
    fn the_command_installs_with_the_preset_of_the_platform() {
        let plain = installed(&empty(), false);
        assert_eq!(plain.state.as_str(), "high");
        assert!(
            plain.fix.unwrap().starts_with("helm install interlock manifests/chart -n guard --create-namespace --set")
        );
        let gke = Snapshot { version: Fetched::Known(json!({"gitVersion": "v1.34.1-gke.1"})), ..empty() };
        let wanted = installed(&gke, true);
        assert_eq!(wanted.state.as_str(), "note");
        assert!(wanted.fix.unwrap().contains(" -f manifests/chart/platforms/gke.yaml "));
    }

    #[test]
    fn the_labels_of_the_namespace_count() {
        let security = |level: &str| pod_security(&in_namespace(&json!({"pod-security.kubernetes.io/enforce": level})));
        assert_eq!(
            ["restricted", "privileged", "strict"].map(|level| security(level).unwrap().state.as_str()),
            ["ok", "ok", "medium"]
        );
        assert_eq!(pod_security(&empty()).unwrap().state.as_str(), "ok");
        let istio = mesh(&in_namespace(&json!({"istio-injection": "enabled"}))).unwrap();
        assert!(istio.fix.unwrap().contains("kubectl label namespace guard istio-injection-"));
        assert_eq!(mesh(&in_namespace(&json!({"istio-injection": "disabled"}))), None);
    }
}
