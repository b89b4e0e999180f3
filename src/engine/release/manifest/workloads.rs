//! The workloads of a manifest.

use memchr::memmem;
use serde::Deserialize;

use super::documents::{namespace_or, parsed, root_kind};

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

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WorkloadDocument {
    kind: String,
    metadata: Option<WorkloadMetadata>,
    items: Option<Vec<WorkloadDocument>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WorkloadMetadata {
    name: String,
    namespace: Option<String>,
}

/// The Deployments, StatefulSets and DaemonSets of a manifest. `namespace` is that of objects without one.
///
/// # Errors
/// A document that mentions such a kind cannot be parsed, or the manifest is longer than 16 MiB.
pub(crate) fn workloads(manifest: &str, namespace: &str) -> Result<Vec<WorkloadRef>, String> {
    let mut found = Vec::new();
    for object in parsed::<WorkloadDocument>(manifest, may_be_workload)? {
        collect(object?, namespace, &mut found);
    }
    Ok(found)
}

/// Whether a document is worth parsing: its own kind is one of these, or it is a list that may contain one.
fn may_be_workload(document: &str) -> bool {
    // A document whose kind is not found, because it is on one line or written unlike Helm's charts, is parsed too.
    root_kind(document)
        .is_none_or(|kind| kind == "List" || WorkloadKind::ALL.iter().any(|known| known.as_str() == kind))
        && WorkloadKind::ALL.iter().any(|kind| memmem::find(document.as_bytes(), kind.as_str().as_bytes()).is_some())
}

fn collect(object: WorkloadDocument, namespace: &str, found: &mut Vec<WorkloadRef>) {
    if let Some(kind) = WorkloadKind::ALL.into_iter().find(|kind| kind.as_str() == object.kind) {
        let metadata = object.metadata.unwrap_or_default();
        let namespace = namespace_or(metadata.namespace, namespace);
        found.push(WorkloadRef { kind, namespace, name: metadata.name });
    }
    for item in object.items.into_iter().flatten() {
        collect(item, namespace, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(manifest: &str) -> Vec<String> {
        let found = workloads(manifest, "shop").unwrap();
        found.into_iter().map(|found| format!("{} {}/{}", found.kind.as_str(), found.namespace, found.name)).collect()
    }

    #[test]
    fn yaml_documents_of_helm() {
        let manifest = "---\n# Source: shop/templates/a.yaml\nkind: Service\nmetadata: {name: web}\n---\n# Source: b\n\
                        apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec: {x: 1}\n--- # next\n\
                        kind: StatefulSet\nmetadata: {name: 263e7411, namespace: db}\n";
        assert_eq!(names(manifest), ["Deployment shop/web", "StatefulSet db/263e7411"]);
    }

    #[test]
    fn json_documents_of_olm_without_separator() {
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
        let manifest = "kind: Deployment\nmetadata:\n  name: a\n  labels: {x: y}\n  labels: {x: z}\n---\nkind: List\nitems: # Deployment\n---\nkind: Other\nmetadata:\nspec: [Deployment\n";
        assert_eq!(names(manifest), ["Deployment shop/a"]);
    }

    #[test]
    fn an_error_contains_no_text_of_the_manifest() {
        let secret = "kind: List # Deployment\nitems:\n- kind: Secret\n  stringData: {password: hunter2\n";
        let error = workloads(secret, "shop").unwrap_err();
        assert!(!error.contains("hunter2") && error.contains("line"), "{error}");
    }

    #[test]
    fn a_broken_document_is_an_error_and_an_empty_manifest_is_not() {
        assert!(workloads("kind: Deployment\nmetadata: [\n", "shop").is_err());
        assert_eq!(names(""), [""; 0]);
        assert_eq!(names("# only a comment about a Deployment\n"), [""; 0]);
    }
}
