//! Other subjects that may change the objects that Interlock depends on: its registration, its namespace, and bindings. RBAC guards
//! these objects, not admission.

use std::collections::BTreeSet;

use serde_json::Value;

use super::diagnosis::{Checked, Diagnosis};
use super::selector::{contains_any, each};
use super::snapshot::Snapshot;

/// The maximum number of names in a message; the rest is counted.
const MAX_SUBJECTS: usize = 8;

/// Verbs that change objects.
const WRITE_VERBS: [&str; 6] = ["create", "update", "patch", "delete", "deletecollection", "*"];

/// A description, group and resource, and whether roles in Interlock's namespace count too.
const PROTECTED: [(&str, &str, &str, bool); 4] = [
    (
        "disable Interlock (change its registration)",
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        false,
    ),
    ("write Secrets in its namespace, including its CA", "", "secrets", true),
    ("change its Deployment", "apps", "deployments", true),
    ("grant themselves these rights (change bindings)", "rbac.authorization.k8s.io", "clusterrolebindings", false),
];

pub(super) fn diagnose(snapshot: &Snapshot) -> Checked<Vec<Diagnosis>> {
    let (roles, local_roles) = (snapshot.roles.items()?, snapshot.local_roles.items()?);
    let (bindings, local_bindings) = (snapshot.bindings.items()?, snapshot.local_bindings.items()?);
    let checks = PROTECTED.into_iter().map(|(what, group, resource, local)| {
        let [writers, local_writers] = [roles, local_roles].map(|roles| {
            let writers = roles.iter().filter(|role| may_write(role, group, resource));
            writers.filter_map(|role| role["metadata"]["name"].as_str()).collect::<BTreeSet<_>>()
        });
        let local_bindings = if local { local_bindings } else { &[] };
        let who = bindings.iter().chain(local_bindings).filter(|binding| {
            let roles = if binding["roleRef"]["kind"] == "Role" { &local_writers } else { &writers };
            roles.contains(binding["roleRef"]["name"].as_str().unwrap_or_default())
        });
        let who = who.flat_map(|binding| each(&binding["subjects"])).filter_map(subject).collect();
        described(what, &who, &snapshot.namespace)
    });
    Ok(checks.collect())
}

fn described(what: &str, who: &BTreeSet<String>, namespace: &str) -> Diagnosis {
    let (expected, others): (Vec<_>, Vec<_>) = who.iter().partition(|name| is_expected(name, namespace));
    let also = if expected.is_empty() { "" } else { ", except the control plane and system:masters" };
    if others.is_empty() {
        return Diagnosis::ok(format!("nobody may {what}{also}"));
    }
    let shown: Vec<_> = others.iter().take(MAX_SUBJECTS).map(|name| name.as_str()).collect();
    let more = others.len().saturating_sub(MAX_SUBJECTS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Diagnosis::note(format!("these may {what}: {}{more}{also}", shown.join(", ")))
}

/// Whether a subject belongs to the control plane, is a cluster administrator, or is Interlock itself.
fn is_expected(name: &str, namespace: &str) -> bool {
    name.starts_with("Group system:")
        || name.starts_with("User system:")
        || name.starts_with("ServiceAccount kube-system/")
        || name == format!("ServiceAccount {namespace}/interlock")
}

fn subject(subject: &Value) -> Option<String> {
    let (kind, name) = (subject["kind"].as_str()?, subject["name"].as_str()?);
    let namespace = subject["namespace"].as_str().filter(|_| kind == "ServiceAccount");
    Some(namespace.map_or_else(|| format!("{kind} {name}"), |namespace| format!("{kind} {namespace}/{name}")))
}

/// Whether a role allows writes of every object of a resource. A rule with resourceNames does not.
fn may_write(role: &Value, group: &str, resource: &str) -> bool {
    each(&role["rules"]).any(|rule| {
        let is_any = rule["resourceNames"].as_array().is_none_or(Vec::is_empty);
        is_any
            && contains_any(&rule["apiGroups"], &[group, "*"])
            && contains_any(&rule["resources"], &[resource, "*"])
            && contains_any(&rule["verbs"], &WRITE_VERBS)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::inspect::doctor::fetch::Fetched;

    #[test]
    fn subjects_with_unexpected_write_access_are_named() {
        let role = |name: &str, group: &str, resource: &str, verbs: &[&str], names: &[&str]| {
            json!({"metadata": {"name": name}, "rules": [{
                "apiGroups": [group], "resources": [resource], "verbs": verbs, "resourceNames": names,
            }]})
        };
        let bind = |kind: &str, role: &str, subject: Value| json!({"roleRef": {"kind": kind, "name": role}, "subjects": [subject]});
        let person = |name: &str| json!({"kind": "User", "name": name});
        let many: Vec<_> = (0..10).map(|at| bind("Role", "edit-secrets", person(&format!("p{at}")))).collect();
        let snapshot = Snapshot {
            roles: Fetched::Known(json!({"items": [
                role("admin", "*", "*", &["*"], &[]),
                role("read", "*", "*", &["get", "list", "watch"], &[]),
                role("ours", "admissionregistration.k8s.io", "validatingwebhookconfigurations", &["patch"], &["interlock"]),
            ]})),
            bindings: Fetched::Known(json!({"items": [
                bind("ClusterRole", "admin", json!({"kind": "Group", "name": "system:masters"})),
                bind("ClusterRole", "admin", json!({"kind": "ServiceAccount", "namespace": "ci", "name": "deployer"})),
                bind("ClusterRole", "read", person("auditor")),
                bind("ClusterRole", "ours", json!({"kind": "ServiceAccount", "namespace": "guard", "name": "interlock"})),
            ]})),
            local_roles: Fetched::Known(json!({"items": [role("edit-secrets", "", "secrets", &["update"], &[])]})),
            local_bindings: Fetched::Known(json!({"items": many})),
            ..Snapshot::unread()
        };
        let described: Vec<_> = diagnose(&snapshot).unwrap().into_iter().map(|check| check.evidence).collect();
        assert_eq!(
            described[0],
            "these may disable Interlock (change its registration): ServiceAccount ci/deployer, except the control plane \
             and system:masters"
        );
        assert!(described[1].contains("User p0") && described[1].contains(" and 3 more"), "{}", described[1]);
        assert!(!described.iter().any(|text| text.contains("auditor")), "{described:?}");
        let unread = diagnose(&Snapshot { roles: Fetched::Unknown("no".to_owned()), ..snapshot });
        assert_eq!(unread, Err("no".to_owned()));
    }
}
