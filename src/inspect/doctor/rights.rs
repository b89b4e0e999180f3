//! The rights of Interlock's service account: it must have all rights in the manifests, and none of the forbidden ones.

use std::collections::BTreeSet;

use interlock_engine::policy::DEFAULT_NAMESPACE;
use interlock_engine::severity::Severity::{High, Medium};
use kube::Client;
use serde_json::Value;

use super::access::{Right, reviewed};
use super::diagnosis::{Checked, Diagnosis};
use super::fetch::Fetched;
use super::registration::guarded_namespaces;
use super::selector::{combinations, each, texts};
use super::settings::setting;
use super::snapshot::Snapshot;

/// The rights are read from the manifests, so that no second list can go out of date.
const RBAC_MANIFESTS: [&str; 2] =
    [include_str!("../../../manifests/base/rbac.yaml"), include_str!("../../../manifests/base/rbac-certificates.yaml")];

/// The role for objects in guarded namespaces, and the optional role for the leader's writes there. If only selected namespaces are
/// guarded, both are bound only in these namespaces.
const GUARD_ROLE: &str = "interlock";
const LEADER_ROLE: &str = "interlock-leader";

/// The roles for managed certificates.
const CERTIFICATE_ROLE: &str = "interlock-certificates";

/// Rights that the account must not have: verb, group, resource.
const FORBIDDEN_RIGHTS: [[&str; 3]; 17] = [
    ["*", "*", "*"],
    ["delete", "", "secrets"],
    ["update", "", "secrets"],
    ["create", "", "pods"],
    ["create", "", "pods/exec"],
    ["create", "", "serviceaccounts/token"],
    ["impersonate", "", "users"],
    ["get", "", "nodes/proxy"],
    ["patch", "apps", "deployments"],
    ["delete", "apps", "deployments"],
    ["escalate", "rbac.authorization.k8s.io", "clusterroles"],
    ["bind", "rbac.authorization.k8s.io", "clusterroles"],
    ["create", "rbac.authorization.k8s.io", "clusterrolebindings"],
    ["create", "interlock.dev", "releaseoverrides"],
    ["create", "interlock.dev", "freezes"],
    ["delete", "admissionregistration.k8s.io", "validatingwebhookconfigurations"],
    ["create", "admissionregistration.k8s.io", "mutatingwebhookconfigurations"],
];

pub(super) async fn diagnose(client: &Client, snapshot: &Snapshot) -> Checked<Vec<Diagnosis>> {
    let namespace = snapshot.namespace.as_str();
    let mut needed = needed(namespace, &guarded_namespaces(snapshot));
    if has_certificate_of_a_file(&snapshot.deployment) {
        needed.retain(|right| right.role != CERTIFICATE_ROLE);
    }
    let needed = reviewed(client, Some(namespace), needed).await?;
    let forbidden = reviewed(client, Some(namespace), FORBIDDEN_RIGHTS.map(Right::on).to_vec()).await?;
    Ok(diagnose_rights(&needed, &forbidden, namespace))
}

/// Whether the certificate comes from a file. Interlock then needs no rights for managed certificates.
fn has_certificate_of_a_file(deployment: &Fetched) -> bool {
    matches!(deployment, Fetched::Known(it) if setting(it, "INTERLOCK_TLS_CERT_FILE", "--tls-cert-file").is_some())
}

/// Every right that the manifests grant to the account. `guarded` lists the selected namespaces. It is empty if all are guarded.
fn needed(namespace: &str, guarded: &[String]) -> Vec<Right> {
    let documents = RBAC_MANIFESTS.iter().flat_map(|text| text.split("\n---\n"));
    let documents: Vec<Value> = documents.filter_map(|document| serde_saphyr::from_str(document).ok()).collect();
    let bound = documents.iter().filter(|document| is_bound_to_account(document)).map(|binding| &binding["roleRef"]);
    let roles = bound.filter_map(|bound| {
        documents.iter().find(|it| it["kind"] == bound["kind"] && it["metadata"]["name"] == bound["name"])
    });
    let mut all = Vec::new();
    for right in roles.flat_map(|role| rights_of_role(role, namespace)) {
        let reaches_everywhere = right.namespace.is_empty() && [GUARD_ROLE, LEADER_ROLE].contains(&right.role.as_str());
        if reaches_everywhere && !guarded.is_empty() {
            all.extend(guarded.iter().map(|namespace| Right { namespace: namespace.clone(), ..right.clone() }));
        } else {
            all.push(right);
        }
    }
    all
}

/// Whether a document is a binding to Interlock's account. Other roles in the manifests are for people and have no binding.
fn is_bound_to_account(document: &Value) -> bool {
    each(&document["subjects"]).any(|subject| subject["kind"] == "ServiceAccount" && subject["name"] == "interlock")
}

fn rights_of_role(role: &Value, namespace: &str) -> Vec<Right> {
    let of = match role["metadata"]["namespace"].as_str() {
        Some(DEFAULT_NAMESPACE) => namespace,
        other => other.unwrap_or_default(),
    };
    let mut rights = Vec::new();
    for rule in each(&role["rules"]) {
        let mut lists =
            ["apiGroups", "resources", "verbs", "resourceNames"].map(|list| texts(&rule[list]).collect::<Vec<_>>());
        if lists[3].is_empty() {
            lists[3].push("");
        }
        rights.extend(combinations(lists).into_iter().map(|[group, resource, verb, name]| Right {
            role: role["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            name: name.to_owned(),
            namespace: of.to_owned(),
            ..Right::on([verb, group, resource])
        }));
    }
    rights
}

fn diagnose_rights(needed: &[(Right, bool)], forbidden: &[(Right, bool)], namespace: &str) -> Vec<Diagnosis> {
    let apply = format!(
        "kubectl apply -f manifests/base/rbac.yaml   # for namespace {namespace}; if a chart manages it, upgrade the chart"
    );
    let mut checks = Vec::new();
    let lacking: Vec<_> = needed.iter().filter(|(_, has)| !has).map(|(right, _)| right).collect();
    let roles: BTreeSet<_> = lacking.iter().map(|right| right.role.as_str()).collect();
    for role in roles {
        let lacks: Vec<_> = lacking.iter().copied().filter(|right| right.role == role).collect();
        let severity = if role == LEADER_ROLE { Medium } else { High };
        let mut evidence = format!("the account interlock may not {} (role {role})", listed(&lacks));
        if lacks.iter().any(|right| is_stamped_by(right)) {
            evidence.push_str("; a protection by an annotated object ends when that object is deleted");
        }
        checks.push(Diagnosis::found(severity, evidence, apply.clone()));
    }
    let has: Vec<_> = forbidden.iter().filter(|(_, has)| *has).map(|(right, _)| right).collect();
    if !has.is_empty() {
        let fix = format!(
            "find the binding that grants it and remove it:\nkubectl get clusterrolebindings,rolebindings -A -o wide | grep \
             {namespace}/interlock"
        );
        checks.push(Diagnosis::found(High, format!("the account interlock may {}", listed(&has)), fix));
    }
    if checks.is_empty() {
        let (needed, forbidden) = (needed.len(), forbidden.len());
        checks.push(Diagnosis::ok(format!(
            "the account interlock has all {needed} rights that it needs, and none of the {forbidden} forbidden ones"
        )));
    }
    checks
}

/// Whether the leader stamps records by this right.
fn is_stamped_by(right: &Right) -> bool {
    right.role == LEADER_ROLE && right.verb == "patch" && right.resource == "secrets"
}

fn listed(rights: &[&Right]) -> String {
    let shown: Vec<_> = rights.iter().take(4).map(ToString::to_string).collect();
    let more = rights.len().saturating_sub(shown.len());
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_needed_rights_come_from_the_manifests() {
        let needed = needed("guard", &[]);
        let described: Vec<_> = needed.iter().map(ToString::to_string).collect();
        for right in [
            "list secrets",
            "get helmreleases.helm.toolkit.fluxcd.io",
            "create leases.coordination.k8s.io in guard",
            "patch leases.coordination.k8s.io interlock-leader in guard",
            "watch customresourcedefinitions.apiextensions.k8s.io releaseoverrides.interlock.dev",
            "watch freezes.interlock.dev",
        ] {
            assert!(described.contains(&right.to_owned()), "{right}: {described:?}");
        }
        // If only selected namespaces are guarded, in those only.
        let some = super::needed("guard", &["shop".to_owned()]);
        assert!(some.iter().any(|right| right.to_string() == "list secrets in shop"));
        // With a certificate from a file, the rights for managed certificates are not needed.
        let variables = |names: serde_json::Value| {
            let template = serde_json::json!({"spec": {"containers": [{"name": "interlock", "env": names}]}});
            Fetched::Known(serde_json::json!({"spec": {"template": template}}))
        };
        let mounted = serde_json::json!([{"name": "INTERLOCK_TLS_CERT_FILE", "value": "/tls.crt"}]);
        assert!(has_certificate_of_a_file(&variables(mounted)) && needed.iter().any(|it| it.role == CERTIFICATE_ROLE));
        assert!(!has_certificate_of_a_file(&variables(serde_json::json!(null))));
        // The role for people who create overrides is not the account's.
        assert!(!described.contains(&"create releaseoverrides.interlock.dev".to_owned()));
        let asked = FORBIDDEN_RIGHTS.map(|right| Right::on(right).to_string());
        assert!(described.iter().all(|right| !asked.contains(right)), "a needed right is forbidden");
    }

    #[test]
    fn missing_and_excessive_rights_are_reported() {
        let all = |has: bool, rights: Vec<Right>| rights.into_iter().map(|right| (right, has)).collect::<Vec<_>>();
        let states = |needed: &[(Right, bool)], forbidden: &[(Right, bool)]| {
            diagnose_rights(needed, forbidden, "guard")
                .into_iter()
                .map(|it| (it.state.as_str(), it.evidence))
                .collect::<Vec<_>>()
        };
        let fine = states(&all(true, needed("guard", &[])), &all(false, FORBIDDEN_RIGHTS.map(Right::on).to_vec()));
        assert_eq!((fine.len(), fine[0].0), (1, "ok"));
        let mut lacking = all(true, needed("guard", &[]));
        lacking.iter_mut().filter(|(right, _)| right.role == "interlock-leader").for_each(|(_, has)| *has = false);
        let described = states(&lacking, &all(false, FORBIDDEN_RIGHTS.map(Right::on).to_vec()));
        assert!(
            described.len() == 1
                && described[0].0 == "medium"
                && described[0].1.contains("may not patch secrets")
                && described[0].1.ends_with("ends when that object is deleted"),
            "{described:?}"
        );
        let described = states(&all(true, needed("guard", &[])), &all(true, FORBIDDEN_RIGHTS.map(Right::on).to_vec()));
        assert!(
            described.len() == 1 && described[0].0 == "high" && described[0].1.contains("may * *.*, delete secrets"),
            "{described:?}"
        );
    }
}
