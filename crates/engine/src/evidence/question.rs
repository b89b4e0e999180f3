//! The questions of rules to the cluster. [`super::Query`] is any of them.

use crate::managed::Origin;
use crate::object::ObjectKey;
use crate::owners::{self, BundleRef, CandidateSearch};
use crate::release::Storage;
use crate::release::manifest::{DocumentKey, WorkloadRef};

/// How old an answer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// A cache may answer: it may say that a request is allowed, never that it is refused.
    Cached,
    /// As the API server has it now.
    Live,
}

/// The records of a release, by their metadata.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct History {
    pub storage: Storage,
    /// The namespace of the records.
    pub namespace: String,
    pub release: String,
}

/// The body of one record, including the other Secrets in which OLM may store parts of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Body {
    pub storage: Storage,
    /// The namespace of the record.
    pub namespace: String,
    pub object: String,
}

/// The release that an object names as its owner: where records of it may be, and their metadata.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Release {
    pub name: String,
    /// The namespace of the objects, which may differ from that of the records.
    pub target_namespace: String,
    /// The HelmRelease that the labels of the object name, if Flux has set them.
    pub origin: Option<Origin>,
    pub freshness: Freshness,
}

/// What may be the records of a ClusterExtension, in any namespace: its name is the name of its only release.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Extension {
    pub name: String,
    pub freshness: Freshness,
}

/// The document of an object in the manifest of one version of a record. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Document {
    pub record: RecordRef,
    pub object: DocumentKey,
}

/// The marks of an object that is scaled, and who wrote its fields: its Scale carries neither.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Parent {
    pub object: ScaledRef,
    pub freshness: Freshness,
}

/// The HelmReleases that may be behind a release, including those whose release is on another cluster. A cache finds the
/// candidates, a handful at most, and each is read from the API server. Asked by [`HelmReleases::of`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HelmReleases {
    /// The namespace of the records.
    pub namespace: String,
    /// The name of the release, shortened as Flux does.
    pub release: String,
    /// The account of another namespace that holds the newest record: a HelmRelease there may work under it.
    pub account: Option<String>,
}

/// The HelmReleases in a namespace, as the API server has them now: a cache may not have seen one that was created a moment ago.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HelmReleasesIn {
    pub namespace: String,
}

/// The ReleaseOverrides of a release. An incomplete cache answers with none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Overrides {
    /// Where they are.
    pub namespace: String,
    pub release: String,
    pub freshness: Freshness,
}

/// The Freezes that are stored in the cluster, as a cache has seen them last: they hold on while the API server does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Freezes;

/// The Freezes in a namespace, as the API server has them now.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FreezesIn {
    pub namespace: String,
}

/// The state of some workloads, all at once: a release may have hundreds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Workloads(pub Vec<WorkloadRef>);

/// The ConfigMap in which nelm and werf keep their leases.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Leases {
    /// The namespace of the release.
    pub namespace: String,
}

/// An object, as the API server has it now, in whatever version it serves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Object(pub ObjectKey);

/// What ConfigurationBundles of Sveltos say of themselves, all at once: a commit may name hundreds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bundles(pub Vec<BundleRef>);

/// A namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Namespace {
    pub name: String,
}

/// The releases whose records are in a namespace, as the API server has them now, and those with a record elsewhere that is stamped
/// for objects in it, as a cache has seen them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReleasesIn {
    pub namespace: String,
}

/// One version of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecordRef {
    pub storage: Storage,
    /// The namespace of the record.
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
}

/// An object with a scale subresource, as a request on the subresource names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScaledRef {
    /// Empty for the core group.
    pub group: String,
    /// For example `v1`.
    pub version: String,
    /// For example `deployments`.
    pub resource: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

impl HelmReleases {
    /// The HelmReleases behind a release with these records, whose newest one this user holds.
    #[must_use]
    pub fn of(namespace: &str, release: &str, holder: Option<&str>) -> Self {
        let account = owners::account_elsewhere(holder, namespace).map(str::to_owned);
        Self { namespace: namespace.to_owned(), release: release.to_owned(), account }
    }

    /// How the candidates are searched for.
    #[must_use]
    pub fn search(&self) -> CandidateSearch<'_> {
        CandidateSearch { namespace: &self.namespace, release: &self.release, account: self.account.as_deref() }
    }
}
