//! Network and storage plug-ins that Interlock needs, and whose repair could need Interlock.

use std::collections::BTreeSet;

use interlock_engine::severity::Severity::Medium;
use serde_json::Value;

use super::diagnosis::{Checked, Diagnosis};
use super::selector::{each, selects};
use super::snapshot::{NOT_REGISTERED, Snapshot};

/// Directories in which the kubelet finds plug-ins on a node, and the kind of plug-in. Every plug-in installs itself there, whatever
/// its name is.
const DIRECTORIES: [(&str, &str); 4] = [
    ("/opt/cni", "network"),
    ("/etc/cni", "network"),
    ("/var/lib/kubelet/plugins", "storage"),
    ("/var/lib/kubelet/plugins_registry", "storage"),
];

/// Finds plug-ins in namespaces where the creation of a record fails closed.
pub(super) fn diagnose(snapshot: &Snapshot) -> Checked {
    snapshot.validating.items()?;
    let (namespaces, daemon_sets) = (snapshot.namespaces.items()?, snapshot.daemon_sets.items()?);
    let entry = snapshot.record_entry().ok_or(NOT_REGISTERED)?;
    if entry["failurePolicy"] == "Ignore" {
        let evidence = "releases of plug-ins can be changed while Interlock is down: their records fail open";
        return Ok(Diagnosis::ok(evidence));
    }
    let guarded: Vec<_> = daemon_sets
        .iter()
        .filter_map(|it| Some((it["metadata"]["namespace"].as_str()?, it["metadata"]["name"].as_str()?, plugin(it)?)))
        .filter(|(namespace, ..)| is_guarded(namespace, entry, namespaces))
        .collect();
    if guarded.is_empty() {
        return Ok(Diagnosis::ok("no network or storage plug-in is in a namespace that is guarded"));
    }
    let named: Vec<_> = guarded.iter().map(|(namespace, name, kind)| format!("{namespace}/{name} ({kind})")).collect();
    let exempt: BTreeSet<_> = guarded.iter().map(|(namespace, ..)| *namespace).collect();
    let exempt = exempt.into_iter().collect::<Vec<_>>().join(",");
    let evidence = format!(
        "while Interlock cannot be reached, helm cannot repair what may be the reason: {} in namespaces whose records fail \
         closed",
        named.join(", ")
    );
    let fix = format!("helm upgrade interlock CHART --reuse-values --set exemptNamespaces={{{exempt}}}");
    Ok(Diagnosis::found(Medium, evidence, fix))
}

fn is_guarded(namespace: &str, entry: &Value, namespaces: &[Value]) -> bool {
    let namespace = namespaces.iter().find(|it| it["metadata"]["name"] == namespace);
    namespace.is_some_and(|it| selects(&entry["namespaceSelector"], it))
}

/// The kind of plug-in that a DaemonSet installs on its nodes.
fn plugin(daemon_set: &Value) -> Option<&'static str> {
    let volumes = each(&daemon_set["spec"]["template"]["spec"]["volumes"]);
    let mut paths = volumes.filter_map(|volume| volume["hostPath"]["path"].as_str());
    paths.find_map(|path| DIRECTORIES.into_iter().find(|(directory, _)| is_in(path, directory)).map(|(_, kind)| kind))
}

fn is_in(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::diagnosis::DiagnosisState;
    use super::super::fetch::Fetched;
    use super::super::registration::RECORD_ENTRY;
    use super::*;

    fn snapshot(failure_policy: &str, exempt: &[&str]) -> Snapshot {
        let namespace =
            |name: &str| json!({"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}});
        let mounting = |namespace: &str, name: &str, path: &str| {
            let volumes =
                json!([{"name": "etc", "configMap": {"name": "x"}}, {"name": "host", "hostPath": {"path": path}}]);
            json!({
                "metadata": {"namespace": namespace, "name": name},
                "spec": {"template": {"spec": {"volumes": volumes}}},
            })
        };
        let values = [&["kube-system"], exempt].concat();
        let selector = json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": values}]});
        let entry = json!({"name": RECORD_ENTRY, "failurePolicy": failure_policy, "namespaceSelector": selector});
        let validating = json!({"items": [{"metadata": {"name": "interlock"}, "webhooks": [entry]}]});
        let names = ["kube-system", "calico-system", "longhorn-system", "logging"];
        Snapshot {
            validating: Fetched::Known(validating),
            namespaces: Fetched::Known(json!({"items": names.map(namespace)})),
            daemon_sets: Fetched::Known(json!({"items": [
                mounting("kube-system", "kindnet", "/etc/cni/net.d"),
                mounting("calico-system", "calico-node", "/opt/cni/bin"),
                mounting("longhorn-system", "csi-plugin", "/var/lib/kubelet/plugins/driver.longhorn.io"),
                mounting("logging", "collector", "/var/log"),
                mounting("logging", "other", "/etc/cnijfilter"),
            ]})),
            ..Snapshot::unread()
        }
    }

    #[test]
    fn guarded_plugins_are_named_with_the_exempting_value() {
        let found = diagnose(&snapshot("Fail", &[])).unwrap();
        assert_eq!(found.state, DiagnosisState::Finding(Medium));
        for named in ["calico-system/calico-node (network)", "longhorn-system/csi-plugin (storage)"] {
            assert!(found.evidence.contains(named), "{}", found.evidence);
        }
        assert!(!found.evidence.contains("kindnet") && !found.evidence.contains("logging"), "{}", found.evidence);
        assert!(found.fix.unwrap().ends_with("--set exemptNamespaces={calico-system,longhorn-system}"));

        let some = diagnose(&snapshot("Fail", &["longhorn-system"])).unwrap();
        assert!(some.evidence.contains("calico") && !some.evidence.contains("longhorn"), "{}", some.evidence);
        assert_eq!(
            diagnose(&snapshot("Fail", &["calico-system", "longhorn-system"])).unwrap().state,
            DiagnosisState::Ok
        );
        assert_eq!(diagnose(&snapshot("Ignore", &[])).unwrap().state, DiagnosisState::Ok);
        assert_eq!(diagnose(&Snapshot::unread()), Err("not asked".to_owned()));
    }
}
