//! Protected releases, which nobody may remove.

use std::sync::Arc;

use super::globs::{Globs, matches};
use super::namespaces::{ByNamespace, NamespaceCondition};
use crate::release::ReleaseRef;

/// The releases that the policies protect. Every policy contains those of all namespaces, because an object of a release may be
/// in another namespace, or in none.
#[derive(Debug, Clone, Default)]
pub struct Protected {
    /// The releases that the cluster policy protects.
    pub(crate) by_cluster: Option<ProtectedReleases>,
    /// The names of releases that a namespace's policy protects in its own namespace.
    pub(crate) here: Option<Globs>,
    /// The names that the policies of all namespaces protect.
    pub(crate) by_namespace: Arc<ByNamespace<Globs>>,
    /// Whether the marks of other guards against deletion count.
    pub(crate) honour_peer_marks: bool,
}

/// Releases by name and namespace. A missing condition matches everything.
#[derive(Debug, Clone, Default)]
pub struct ProtectedReleases {
    pub releases: Option<Globs>,
    pub namespaces: NamespaceCondition,
}

impl Protected {
    /// Whether a release is protected. Its namespace is that of its records.
    #[must_use]
    pub fn covers(&self, release: &ReleaseRef) -> bool {
        let ReleaseRef { namespace, name } = release;
        let by_cluster = self
            .by_cluster
            .as_ref()
            .is_some_and(|named| matches(named.releases.as_ref(), Some(name)) && named.namespaces.holds(namespace));
        by_cluster || self.by_namespace.get(namespace).is_some_and(|named| named.contains(name))
    }

    /// Whether a release may be protected if only its name is known, or nothing.
    #[must_use]
    pub fn may_cover(&self, release: Option<&str>) -> bool {
        let Some(name) = release else { return !self.names_nothing() };
        let by_cluster = self.by_cluster.as_ref().is_some_and(|named| matches(named.releases.as_ref(), Some(name)));
        by_cluster || self.by_namespace.values().any(|named| named.contains(name))
    }

    /// Whether no policy protects a release.
    #[must_use]
    pub fn names_nothing(&self) -> bool {
        self.by_cluster.is_none() && self.by_namespace.is_empty()
    }
}
