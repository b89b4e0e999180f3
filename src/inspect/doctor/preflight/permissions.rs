//! Whether the user may create the objects of an installation.

use futures_util::{StreamExt, stream};
use interlock_engine::severity::Severity::High;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, PostParams};

use crate::inspect::doctor::diagnosis::Diagnosis;
use crate::world::kubernetes::api_error::reason;

const TOPIC: &str = "permissions";

/// The maximum number of concurrent access reviews.
const CONCURRENT_REVIEWS: usize = 8;

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

pub(super) async fn diagnose(client: &Client, namespace: &str) -> Diagnosis {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let reviews = &reviews;
    let answers = stream::iter(CREATED).map(|(group, resource, is_inside)| async move {
        let attributes = ResourceAttributes {
            verb: Some("create".to_owned()),
            group: Some(group.to_owned()).filter(|group| !group.is_empty()),
            resource: Some(resource.to_owned()),
            namespace: is_inside.then(|| namespace.to_owned()),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        let asked = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let answer = reviews.create(&PostParams::default(), &asked).await.map_err(|error| reason(&error))?;
        Ok::<_, String>((resource, answer.status.is_some_and(|status| status.allowed)))
    });
    let answers: Result<Vec<_>, _> =
        answers.buffered(CONCURRENT_REVIEWS).collect::<Vec<_>>().await.into_iter().collect();
    match answers {
        Err(why) => Diagnosis::skipped(TOPIC, why),
        Ok(answers) => of_answers(&answers),
    }
}

fn of_answers(answers: &[(&str, bool)]) -> Diagnosis {
    let lacking: Vec<_> = answers.iter().filter(|(_, may)| !may).map(|(resource, _)| *resource).collect();
    if lacking.is_empty() {
        return Diagnosis::ok(TOPIC, format!("you may create all {} kinds of objects of the chart", answers.len()));
    }
    let evidence = format!("you may not create {}", lacking.join(", "));
    Diagnosis::found(TOPIC, High, evidence, "install as a user with the ClusterRole cluster-admin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_permissions_are_named() {
        assert_eq!(of_answers(&[("roles", true), ("services", true)]).state.as_str(), "ok");
        let found = of_answers(&[("roles", true), ("clusterroles", false), ("namespaces", false)]);
        assert_eq!(
            (found.state.as_str(), found.evidence.as_str()),
            ("high", "you may not create clusterroles, namespaces")
        );
    }
}
