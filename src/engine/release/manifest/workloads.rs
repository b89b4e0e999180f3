//! The workloads that a manifest names.

use memchr::memmem;
use serde::Deserialize;

use super::{LONGEST, documents, is_json, read, root_kind};

/// Kinds that report how their rollout stands.
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

    /// As manifests spell it.
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
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Object {
    kind: String,
    metadata: Option<Metadata>,
    items: Option<Vec<Object>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    namespace: Option<String>,
}

/// The Deployments, StatefulSets and DaemonSets of a manifest; `namespace` is where objects without one go.
///
/// Helm stores YAML documents; OLM stores JSON documents one after another without a separator.
///
/// # Errors
/// When a document that mentions such a kind does not read, or the manifest is longer than 16 MiB.
pub fn workloads(manifest: &str, namespace: &str) -> Result<Vec<WorkloadRef>, String> {
    let mut found = Vec::new();
    if manifest.len() > LONGEST {
        return Err(format!("it is longer than {} MiB", LONGEST >> 20));
    }
    if is_json(manifest) {
        for object in serde_json::Deserializer::from_str(manifest).into_iter::<Object>() {
            let object = object.map_err(|error| format!("line {}, column {}", error.line(), error.column()))?;
            collect(object, namespace, &mut found);
        }
        return Ok(found);
    }
    for document in documents(manifest).filter(|document| may_be_workload(document)) {
        collect(read::<Object>(document)?.unwrap_or_default(), namespace, &mut found);
    }
    Ok(found)
}

/// Only a document whose own kind it is, or a list that may hold one, is worth parsing.
fn may_be_workload(document: &str) -> bool {
    // Written in one line, or in another way than by Helm's charts, it is looked at all the same.
    root_kind(document)
        .is_none_or(|kind| kind == "List" || WorkloadKind::ALL.iter().any(|known| known.as_str() == kind))
        && WorkloadKind::ALL.iter().any(|kind| memmem::find(document.as_bytes(), kind.as_str().as_bytes()).is_some())
}

fn collect(object: Object, namespace: &str, found: &mut Vec<WorkloadRef>) {
    if let Some(kind) = WorkloadKind::ALL.into_iter().find(|kind| kind.as_str() == object.kind) {
        let metadata = object.metadata.unwrap_or_default();
        let own = metadata.namespace.filter(|own| !own.is_empty());
        let namespace = own.unwrap_or_else(|| namespace.to_owned());
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
    fn a_list_is_opened() {
        let manifest = "kind: List\nitems:\n- kind: Deployment\n  metadata: {name: a}\n";
        assert_eq!(names(manifest), ["Deployment shop/a"]);
    }

    #[test]
    fn what_helm_reads_loosely_is_read_loosely() {
        let manifest = "kind: Deployment\nmetadata:\n  name: a\n  labels: {x: y}\n  labels: {x: z}\n---\nkind: List\nitems: # Deployment\n---\nkind: Other\nmetadata:\nspec: [Deployment\n";
        assert_eq!(names(manifest), ["Deployment shop/a"]);
    }

    #[test]
    fn an_error_shows_nothing_of_the_manifest() {
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
