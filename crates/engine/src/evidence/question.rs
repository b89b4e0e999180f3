//! The rules' questions to the cluster. [`super::Query`] wraps any of them.

use crate::losses::Loss;
use crate::managed::Origin;
use crate::object::ObjectKey;
use crate::owners::{self, BundleRef, CandidateSearch};
use crate::release::manifest::{DocumentKey, WorkloadRef};
use crate::release::{Stamps, Storage};

/// The required freshness of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// A cache may answer. That is enough to admit a request, never to refuse it.
    Cached,
    /// The current state at the API server.
    Live,
}

/// The records of a release, by their metadata.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct History {
    pub storage: Storage,
    /// The namespace of the records.
    pub namespace: String,
    pub release: String,
    /// A cache leaves superseded records out.
    pub freshness: Freshness,
}

/// The body of one record, including its parts in other Secrets of OLM.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Body {
    pub storage: Storage,
    /// The namespace of the record.
    pub namespace: String,
    pub object: String,
}

/// The release that an object names as its owner. The answer is the metadata of all records that may belong to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Release {
    pub name: String,
    /// The namespace of the objects, which may differ from that of the records.
    pub target_namespace: String,
    /// The HelmRelease that the labels of the object name, if Flux has set them.
    pub origin: Option<Origin>,
    pub freshness: Freshness,
}

/// The records that may belong to a ClusterExtension, in any namespace. Its release has the same name.
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

/// The marks and the managers of a scaled object. Its Scale contains neither.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Parent {
    pub object: ScaledRef,
    pub freshness: Freshness,
}

/// The HelmReleases that may own a release, including those with a release on another cluster. A cache finds the few candidates,
/// and each is read from the API server. Create with [`HelmReleases::of`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HelmReleases {
    /// The namespace of the records.
    pub namespace: String,
    /// The name of the release, shortened as Flux does.
    pub release: String,
    /// The account that holds the newest record, if it is of another namespace. A HelmRelease there may use it.
    pub account: Option<String>,
    /// The namespace and name of the HelmRelease in another namespace that the stamp on the newest record names.
    pub stamped: Option<(String, String)>,
}

/// The HelmReleases in a namespace, read live, because a cache may not contain one that was created a moment ago.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HelmReleasesIn {
    pub namespace: String,
}

/// The ClusterExtensions whose objects are in a namespace, read live: their JSON texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExtensionsIn {
    pub namespace: String,
}

/// The ReleaseOverrides of a release. An incomplete cache answers with none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Overrides {
    /// The namespace of the overrides.
    pub namespace: String,
    pub release: String,
    pub freshness: Freshness,
}

/// The Freezes that are stored in the cluster, from a cache. They remain in force while the API server does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Freezes;

/// The Freezes in a namespace, read live.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FreezesIn {
    pub namespace: String,
}

/// The state of several workloads in one query: a release may have hundreds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Workloads(pub Vec<WorkloadRef>);

/// The ConfigMap in which nelm and werf keep their leases.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Leases {
    /// The namespace of the release.
    pub namespace: String,
}

/// An object, read live, in the version that the API server prefers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Object(pub ObjectKey);

/// The objects that apply others without a release, and would lose some of these, or go with them, if a namespace were deleted. Read
/// live.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AppliersIn {
    pub namespace: String,
    /// Whether those without the annotation that protects them are left out.
    pub only_annotated: bool,
}

/// What the object has lost before that loses a child now. Each answered question is noted with its verdict, before the reply. A world
/// without a place that all replicas share has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Losses(pub Loss);

/// Whether one of several service accounts exists. A world that holds no service account at all, as a recording does, cannot tell, and
/// has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AnyAccount(pub Vec<ObjectKey>);

/// The properties of several of Sveltos' ConfigurationBundles in one query: a commit may list hundreds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bundles(pub Vec<BundleRef>);

/// A namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Namespace {
    pub name: String,
}

/// The releases with records in a namespace, read live, and from a cache those with records elsewhere that are stamped for
/// objects in the namespace.
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

/// An object with a scale subresource, as a request to the subresource names it.
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
    /// The HelmReleases of a release with these records, whose newest one has these stamps.
    #[must_use]
    pub fn of(namespace: &str, release: &str, stamps: &Stamps) -> Self {
        let account = owners::account_elsewhere(stamps.holder(), namespace).map(str::to_owned);
        let stamped = stamps.driver().filter(|driver| driver.namespace != namespace);
        let stamped = stamped.map(|driver| (driver.namespace.to_owned(), driver.name.to_owned()));
        Self { namespace: namespace.to_owned(), release: release.to_owned(), account, stamped }
    }

    /// The search for the candidates.
    #[must_use]
    pub fn search(&self) -> CandidateSearch<'_> {
        CandidateSearch {
            namespace: &self.namespace,
            release: &self.release,
            account: self.account.as_deref(),
            stamped: self.stamped.as_ref().map(|(namespace, name)| (namespace.as_str(), name.as_str())),
        }
    }
}
