//! The namespace and name of an object of one kind, in little memory.

use kube::api::ObjectMeta;

/// Namespace and name of an object of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NamespacedName {
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
}

impl NamespacedName {
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    pub(super) fn of(metadata: &ObjectMeta) -> Self {
        Self::new(metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
    }
}
