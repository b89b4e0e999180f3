//! The kinds of objects that queries are about.

use std::collections::BTreeSet;

use super::Query;
use super::question::{Body, Document, History, Object, Parent, Release, Workloads};
use crate::release::Storage;
use crate::{freeze_resource, owners, release_override};

impl Query {
    /// The group and kind of the objects that the answer consists of. If a world has no object of a kind, its answer may differ
    /// from a cluster's.
    #[must_use]
    pub fn kinds(&self) -> Vec<(&str, &str)> {
        match self {
            Self::History(History { storage, .. }) | Self::Body(Body { storage, .. }) => vec![record(*storage)],
            Self::Document(Document { record: read, .. }) => vec![record(read.storage)],
            Self::Release(Release { origin, .. }) => {
                let origin = origin.as_ref().map(|_| owners::HELM_RELEASES);
                [record(Storage::Secret), record(Storage::ConfigMap)].into_iter().chain(origin).collect()
            }
            Self::Extension(_) => vec![record(Storage::Index)],
            Self::Parent(Parent { object, .. }) => vec![(object.group.as_str(), object.kind.as_str())],
            Self::HelmReleases(_) | Self::HelmReleasesIn(_) => vec![owners::HELM_RELEASES],
            Self::ExtensionsIn(_) => vec![owners::EXTENSIONS],
            Self::Overrides(_) => vec![(release_override::GROUP, release_override::KIND)],
            Self::Freezes(_) | Self::FreezesIn(_) => vec![(release_override::GROUP, freeze_resource::KIND)],
            Self::Workloads(Workloads(named)) => {
                let kinds: BTreeSet<_> = named.iter().map(|workload| workload.kind.as_str()).collect();
                kinds.into_iter().map(|kind| ("apps", kind)).collect()
            }
            Self::Leases(_) => vec![record(Storage::ConfigMap)],
            Self::Object(Object(key)) => vec![(key.group.as_str(), key.kind.as_str())],
            Self::AppliersIn(_) => owners::APPLYING.to_vec(),
            Self::Losses(_) => Vec::new(),
            Self::AnyAccount(_) => vec![("", "ServiceAccount")],
            Self::Bundles(_) => vec![owners::BUNDLES],
            Self::Namespace(_) => vec![("", "Namespace")],
            Self::ReleasesIn(_) => vec![record(Storage::Secret), record(Storage::ConfigMap)],
        }
    }
}

fn record(storage: Storage) -> (&'static str, &'static str) {
    ("", storage.kind())
}

/// Whether a query can be about objects of this kind. Only [`Query::Parent`] is about objects of any kind. It needs only objects
/// with ownership marks.
#[must_use]
pub fn can_be_asked_for(group: &str, kind: &str) -> bool {
    match group {
        "" => ["Secret", "ConfigMap", "Namespace", "Pod", "ServiceAccount"].contains(&kind),
        "apps" => ["Deployment", "StatefulSet", "DaemonSet"].contains(&kind),
        "batch" => kind == "Job",
        release_override::GROUP => true,
        _ => owners::has_kind(group, kind),
    }
}
