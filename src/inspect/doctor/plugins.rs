//! Network and storage plug-ins that Interlock needs, and whose repair could need Interlock.

use interlock_engine::severity::Severity::Medium;
use serde_json::Value;

use super::diagnosis::Diagnosis;
use super::registration::RECORD_ENTRY;
use super::selector::{label_of, matches};
use super::snapshot::Snapshot;

const TOPIC: &str = "plugins";

/// Directories in which the kubelet finds plug-ins on a node. Every plug-in installs itself there, whatever its name is.
const NETWORK_DIRECTORIES: [&str; 2] = ["/opt/cni", "/etc/cni"];
const STORAGE_DIRECTORIES: [&str; 2] = ["/var/lib/kubelet/plugins", "/var/lib/kubelet/plugins_registry"];

/// Finds plug-ins in namespaces where the creation of a record fails closed.
pub(super) fn diagnose(snapshot: &Snapshot) -> Diagnosis {
    let (validating, namespaces, daemon_sets) =
        match (snapshot.validating.named("interlock"), snapshot.namespaces.items(), snapshot.daemon_sets.items()) {
            (Ok(validating), Ok(namespaces), Ok(daemon_sets)) => (validating, namespaces, daemon_sets),
            (Err(why), ..) | (_, Err(why), _) | (.., Err(why)) => return Diagnosis::skipped(TOPIC, why),
        };
    let entries = validating.and_then(|it| it["webhooks"].as_array()).map(Vec::as_slice).unwrap_or_default();
    let Some(entry) = entries.iter().find(|entry| entry["name"] == RECORD_ENTRY) else {
        return Diagnosis::skipped(TOPIC, "the registration is missing, so nothing is guarded");
    };
    if entry["failurePolicy"] == "Ignore" {
        return Diagnosis::ok(
            TOPIC,
            "releases of plug-ins can be changed while Interlock is down: their records fail open",
        );
    }
    let guarded: Vec<_> = daemon_sets
        .iter()
        .filter_map(|it| Some((it["metadata"]["namespace"].as_str()?, it["metadata"]["name"].as_str()?, plugin(it)?)))
        .filter(|(namespace, ..)| is_guarded(namespace, entry, namespaces))
        .collect();
    if guarded.is_empty() {
        return Diagnosis::ok(TOPIC, "no network or storage plug-in is in a namespace that is guarded");
    }
    let named: Vec<_> = guarded.iter().map(|(namespace, name, kind)| format!("{namespace}/{name} ({kind})")).collect();
    let mut exempt: Vec<_> = guarded.iter().map(|(namespace, ..)| *namespace).collect();
    exempt.sort_unstable();
    exempt.dedup();
    let evidence = format!(
        "while Interlock cannot be reached, helm cannot repair what may be the reason: {} in namespaces whose records fail \
         closed",
        named.join(", ")
    );
    let fix = format!("helm upgrade interlock CHART --reuse-values --set exemptNamespaces={{{}}}", exempt.join(","));
    Diagnosis::found(TOPIC, Medium, evidence, fix)
}

fn is_guarded(namespace: &str, entry: &Value, namespaces: &[Value]) -> bool {
    let namespace = namespaces.iter().find(|it| it["metadata"]["name"] == namespace);
    namespace.is_some_and(|it| matches(&entry["namespaceSelector"], |key| label_of(it, key)))
}

/// The kind of plug-in that a DaemonSet installs on its nodes.
fn plugin(daemon_set: &Value) -> Option<&'static str> {
    let volumes = daemon_set["spec"]["template"]["spec"]["volumes"].as_array()?;
    let mut paths = volumes.iter().filter_map(|volume| volume["hostPath"]["path"].as_str());
    paths.find_map(|path| match () {
        () if is_in(path, NETWORK_DIRECTORIES) => Some("network"),
        () if is_in(path, STORAGE_DIRECTORIES) => Some("storage"),
        () => None,
    })
}

fn is_in(path: &str, directories: [&str; 2]) -> bool {
    directories
        .iter()
        .any(|directory| path.strip_prefix(*directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::diagnosis::DiagnosisState;
    use super::super::fetch::Fetched;
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
        let found = diagnose(&snapshot("Fail", &[]));
        assert_eq!(found.state, DiagnosisState::Finding(Medium));
        for named in ["calico-system/calico-node (network)", "longhorn-system/csi-plugin (storage)"] {
            assert!(found.evidence.contains(named), "{}", found.evidence);
        }
        assert!(!found.evidence.contains("kindnet") && !found.evidence.contains("logging"), "{}", found.evidence);
        assert!(found.fix.unwrap().ends_with("--set exemptNamespaces={calico-system,longhorn-system}"));

        let some = diagnose(&snapshot("Fail", &["longhorn-system"]));
        assert!(some.evidence.contains("calico") && !some.evidence.contains("longhorn"), "{}", some.evidence);
        assert_eq!(diagnose(&snapshot("Fail", &["calico-system", "longhorn-system"])).state, DiagnosisState::Ok);
        assert_eq!(diagnose(&snapshot("Ignore", &[])).state, DiagnosisState::Ok);
        assert_eq!(diagnose(&Snapshot::unread()).state, DiagnosisState::Skipped);
    }
}
