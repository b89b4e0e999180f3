//! Resources with a scale subresource, and the field that it sets.

use jsonptr::PointerBuf;

/// A resource with a scale subresource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalableResource {
    /// The API group, empty for the core group.
    pub group: String,
    /// The resource, for example `deployments`.
    pub resource: String,
    /// The kind, for example `Deployment`.
    pub kind: String,
    /// The field that the subresource sets.
    pub replicas: PointerBuf,
}

impl ScalableResource {
    /// Whether this is the resource of a group.
    #[must_use]
    pub fn is(&self, group: &str, resource: &str) -> bool {
        self.group == group && self.resource == resource
    }

    /// The resources of Kubernetes itself.
    #[must_use]
    pub fn built_in() -> Vec<Self> {
        let kinds = [
            ("apps", "deployments", "Deployment"),
            ("apps", "replicasets", "ReplicaSet"),
            ("apps", "statefulsets", "StatefulSet"),
            ("", "replicationcontrollers", "ReplicationController"),
        ];
        let scalable = kinds.map(|(group, resource, kind)| Self {
            group: group.to_owned(),
            resource: resource.to_owned(),
            kind: kind.to_owned(),
            replicas: Self::usual_replicas(),
        });
        scalable.into()
    }

    /// The field of most kinds.
    #[must_use]
    pub fn usual_replicas() -> PointerBuf {
        PointerBuf::from_tokens(["spec", "replicas"])
    }
}
