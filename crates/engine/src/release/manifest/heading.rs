//! The fields that name the object of a document.

use std::borrow::Cow;

use super::key::DocumentKey;
use crate::object::group_of;

/// Kinds that have moved, and the groups that serve or served the same objects: a chart may name any of them.
const MOVED_KINDS: [(&str, [&str; 2]); 7] = [
    ("DaemonSet", ["extensions", "apps"]),
    ("Deployment", ["extensions", "apps"]),
    ("Event", ["", "events.k8s.io"]),
    ("Ingress", ["extensions", "networking.k8s.io"]),
    ("NetworkPolicy", ["extensions", "networking.k8s.io"]),
    ("PodSecurityPolicy", ["extensions", "policy"]),
    ("ReplicaSet", ["extensions", "apps"]),
];

/// The fields that name an object.
#[derive(Debug)]
pub(super) struct Heading<'m> {
    pub(super) api_version: Cow<'m, str>,
    pub(super) kind: Cow<'m, str>,
    pub(super) name: Option<Cow<'m, str>>,
    pub(super) namespace: Option<Cow<'m, str>>,
}

impl<'m> Heading<'m> {
    /// Completes the heading of an item from that of its list: the items of a `ConfigMapList` need not repeat that they
    /// are ConfigMaps.
    pub(super) fn complete_from(&mut self, list: &Self) {
        if self.kind.is_empty() && self.api_version.is_empty() {
            self.kind = Cow::Owned(list.kind.strip_suffix("List").unwrap_or(&list.kind).to_owned());
            self.api_version = list.api_version.clone();
        }
    }

    /// Whether the heading names any object.
    pub(super) fn names_object(&self) -> bool {
        !self.kind.is_empty() && self.name.is_some()
    }

    /// Whether the heading names this object.
    pub(super) fn is_of(&self, wanted: &DocumentKey) -> bool {
        self.kind == wanted.kind
            && is_same_group(&self.kind, group_of(&self.api_version), &wanted.group)
            && self.name.as_deref() == Some(wanted.name.as_str())
            // Cluster-scoped objects have no namespace, even if their document says so.
            && (wanted.namespace.is_empty() || self.namespace_or(&wanted.default_namespace) == wanted.namespace)
    }

    /// The namespace, or the default if the document has none or an empty one.
    pub(super) fn namespace_or<'n>(&'n self, default: &'n str) -> &'n str {
        self.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or(default)
    }
}

/// Whether two groups serve, or served, the same objects of a kind.
pub(crate) fn is_same_group(kind: &str, one: &str, other: &str) -> bool {
    one == other
        || MOVED_KINDS.iter().any(|(moved, groups)| *moved == kind && groups.contains(&one) && groups.contains(&other))
}
