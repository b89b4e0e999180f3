//! The workloads of a manifest.

use std::collections::HashSet;
use std::ops::ControlFlow;

use memchr::memmem;

use super::mentions::may_mention;
use super::objects::each_object;
use crate::effort::Effort;

/// Kinds that report the state of their rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkloadKind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` StatefulSet.
    StatefulSet,
    /// `apps/v1` DaemonSet.
    DaemonSet,
}

impl WorkloadKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Deployment, Self::StatefulSet, Self::DaemonSet];

    /// The kind as manifests spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
        }
    }
}

/// A workload by kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkloadRef {
    pub kind: WorkloadKind,
    pub namespace: String,
    pub name: String,
}

/// The steps for a workload in addition to its text: it is stored, and its state is looked up.
const WORKLOAD_STEPS: u64 = 2_000;

/// The Deployments, StatefulSets and DaemonSets of a manifest, each once. `namespace` is the namespace of objects
/// without one.
///
/// # Errors
/// The heading of a document that mentions such a kind cannot be parsed, the manifest is longer than 8 MiB, or it is
/// more work than the review has left.
pub fn workloads(manifest: &str, namespace: &str, effort: &Effort) -> Result<Vec<WorkloadRef>, String> {
    let kinds = WorkloadKind::ALL.map(|kind| memmem::Finder::new(kind.as_str()));
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    each_object(manifest, effort, |document| may_name(document, &kinds), &mut |object| {
        let heading = &object.heading;
        let kind = WorkloadKind::ALL.into_iter().find(|kind| kind.as_str() == heading.kind);
        let Some(kind) = kind else {
            return Ok(ControlFlow::Continue(()));
        };
        effort.take(WORKLOAD_STEPS)?;
        let name = heading.name.as_deref().unwrap_or_default().to_owned();
        let workload = WorkloadRef { kind, namespace: heading.namespace_or(namespace).to_owned(), name };
        if seen.insert(workload.clone()) {
            found.push(workload);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

fn may_name(document: &str, kinds: &[memmem::Finder<'_>]) -> bool {
    may_mention(document, |text| kinds.iter().any(|kind| kind.find(text).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(manifest: &str) -> Vec<String> {
        let found = workloads(manifest, "shop", &Effort::of_review()).unwrap();
        found.into_iter().map(|found| format!("{} {}/{}", found.kind.as_str(), found.namespace, found.name)).collect()
    }

    #[test]
    fn workloads_are_found_in_yaml_of_helm() {
        let manifest = "---\n# Source: shop/templates/a.yaml\nkind: Service\nmetadata: {name: web}\n---\n# Source: b\n\
                        apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec: {x: 1}\n--- # next\n\
                        kind: StatefulSet\nmetadata: {name: 263e7411, namespace: db}\n";
        assert_eq!(names(manifest), ["Deployment shop/web", "StatefulSet db/263e7411"]);
    }

    #[test]
    fn workloads_are_found_in_json_of_olm() {
        let manifest = "{\"kind\":\"Service\",\"metadata\":{\"name\":\"a\"}}\n{\"kind\":\"DaemonSet\",\"metadata\":{\"name\":\"b\"}}";
        assert_eq!(names(manifest), ["DaemonSet shop/b"]);
    }

    #[test]
    fn items_of_a_list_are_workloads() {
        let manifest = "kind: List\nitems:\n- kind: Deployment\n  metadata: {name: a}\n";
        assert_eq!(names(manifest), ["Deployment shop/a"]);
    }

    #[test]
    fn repeated_keys_are_accepted_as_helm_does() {
        let manifest = "kind: Deployment\nmetadata:\n  name: a\n  labels: {x: y}\n  labels: {x: z}\n---\nkind: List\nitems: # Deployment\n---\nkind: Other\nmetadata:\nspec: [\n";
        assert_eq!(names(manifest), ["Deployment shop/a"]);
    }

    #[test]
    fn an_error_contains_no_text_of_the_manifest() {
        let secret = "kind: List # Deployment\nitems:\n- kind: Secret\n  stringData: {password: hunter2\n";
        let error = workloads(secret, "shop", &Effort::of_review()).unwrap_err();
        assert!(!error.contains("hunter2") && error.contains("line"), "{error}");
    }

    #[test]
    fn a_broken_document_is_an_error_and_an_empty_manifest_is_not() {
        assert!(workloads("kind: Deployment\nmetadata: [\n", "shop", &Effort::of_review()).is_err());
        assert_eq!(names(""), [""; 0]);
        assert_eq!(names("# only a comment about a Deployment\n"), [""; 0]);
    }
}
