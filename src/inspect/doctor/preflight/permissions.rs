//! Whether the user may create the objects of an installation.

use interlock_engine::severity::Severity::High;
use kube::Client;

use crate::inspect::doctor::access::{Right, reviewed};
use crate::inspect::doctor::diagnosis::{Checked, Diagnosis};

/// Group and resource of every object of the chart, and whether the object is in Interlock's namespace.
const CREATED: [(&str, &str, bool); 18] = [
    ("", "namespaces", false),
    ("", "configmaps", true),
    // Helm's record.
    ("", "secrets", true),
    ("", "serviceaccounts", true),
    ("", "services", true),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", false),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", false),
    ("apiextensions.k8s.io", "customresourcedefinitions", false),
    ("apps", "deployments", true),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", false),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", false),
    ("networking.k8s.io", "networkpolicies", true),
    ("policy", "poddisruptionbudgets", true),
    ("rbac.authorization.k8s.io", "clusterrolebindings", false),
    ("rbac.authorization.k8s.io", "clusterroles", false),
    ("rbac.authorization.k8s.io", "rolebindings", true),
    ("rbac.authorization.k8s.io", "roles", true),
    ("scheduling.k8s.io", "priorityclasses", false),
];

pub(super) async fn diagnose(client: &Client, namespace: &str) -> Checked {
    let rights = CREATED.into_iter().map(|(group, resource, is_inside)| Right {
        namespace: if is_inside { namespace.to_owned() } else { String::new() },
        ..Right::on(["create", group, resource])
    });
    Ok(of_answers(&reviewed(client, None, rights.collect()).await?))
}

fn of_answers(answers: &[(Right, bool)]) -> Diagnosis {
    let lacking: Vec<_> = answers.iter().filter(|(_, may)| !may).map(|(right, _)| right.resource.as_str()).collect();
    if lacking.is_empty() {
        return Diagnosis::ok(format!("you may create all {} kinds of objects of the chart", answers.len()));
    }
    let evidence = format!("you may not create {}", lacking.join(", "));
    Diagnosis::found(High, evidence, "install as a user with the ClusterRole cluster-admin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_permissions_are_named() {
        let answers = |answers: &[(&str, bool)]| {
            let answers = answers.iter().map(|(resource, may)| (Right::on(["create", "", resource]), *may));
            of_answers(&answers.collect::<Vec<_>>())
        };
        assert_eq!(answers(&[("roles", true), ("services", true)]).state.as_str(), "ok");
        let found = answers(&[("roles", true), ("clusterroles", false), ("namespaces", false)]);
        assert_eq!(
            (found.state.as_str(), found.evidence.as_str()),
            ("high", "you may not create clusterroles, namespaces")
        );
    }
}
