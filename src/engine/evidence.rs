//! The queries of rules to the cluster, and the answers collected so far. Plain values: rules depend on these, never on the world
//! that answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::flux::{self, Driver};
use super::managed::{Marks, Origin};
use super::object::ObjectKey;
use super::release::manifest::{DocumentKey, WorkloadRef};
use super::release::{History, Storage};
use super::release_override::{self, Override};
use super::sveltos::{self, Bundle, BundleRef};

/// How old an answer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// A cache may answer: it may say that a request is allowed, never that it is refused.
    Cached,
    /// As the API server has it now.
    Live,
}

/// Everything that a rule can query.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Query {
    /// The records of a release, by their metadata.
    History {
        storage: Storage,
        /// The namespace of the records.
        namespace: String,
        release: String,
    },
    /// The body of one record, including the other Secrets in which OLM may store parts of it.
    Body {
        storage: Storage,
        /// The namespace of the record.
        namespace: String,
        object: String,
    },
    /// The release that an object names as its owner: where records of it may be, and their metadata.
    Release {
        name: String,
        /// The namespace of the objects, which may differ from that of the records.
        target_namespace: String,
        /// The HelmRelease that the labels of the object name, if Flux has set them.
        origin: Option<Origin>,
        freshness: Freshness,
    },
    /// What may be the records of a ClusterExtension, in any namespace: its name is the name of its only release.
    Extension { name: String, freshness: Freshness },
    /// The document of an object in the manifest of one version of a record. It never changes.
    Document { record: RecordRef, object: DocumentKey },
    /// The marks of an object that is scaled: its Scale does not carry them.
    Parent { object: ScaledRef, freshness: Freshness },
    /// The HelmReleases that drive a release, including those whose release is on another cluster. A cache finds them, and each is
    /// read from the API server.
    HelmReleases {
        /// The namespace of the records.
        namespace: String,
        /// The name of the release, shortened as Flux does.
        release: String,
    },
    /// The HelmReleases in a namespace, as the API server has them now: a cache may not have seen one that was created a moment ago.
    HelmReleasesIn { namespace: String },
    /// The ReleaseOverrides of a release. An incomplete cache answers with none.
    Overrides {
        /// Where they are.
        namespace: String,
        release: String,
        freshness: Freshness,
    },
    /// The state of some workloads, all at once: a release may have hundreds.
    Workloads(Vec<WorkloadRef>),
    /// The ConfigMap in which nelm and werf keep their leases.
    Leases {
        /// The namespace of the release.
        namespace: String,
    },
    /// An object, as the API server has it now, in whatever version it serves.
    Object(ObjectKey),
    /// What ConfigurationBundles of Sveltos say of themselves, all at once: a commit may name hundreds.
    Bundles(Vec<BundleRef>),
    /// A namespace.
    Namespace { name: String },
    /// The releases whose records are in a namespace, and those whose objects are, as far as Flux reports it or a record of OLM is
    /// stamped so, as the API server has them now.
    ReleasesIn { namespace: String },
}

impl Query {
    /// The kind of the query, for metrics and traces.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::History { .. } => "history",
            Self::Body { .. } => "body",
            Self::Release { .. } => "release",
            Self::Extension { .. } => "extension",
            Self::Document { .. } => "document",
            Self::Parent { .. } => "parent",
            Self::HelmReleases { .. } | Self::HelmReleasesIn { .. } => "helm-releases",
            Self::Overrides { .. } => "overrides",
            Self::Workloads(_) => "workloads",
            Self::Leases { .. } => "leases",
            Self::Object(_) => "object",
            Self::Bundles(_) => "bundles",
            Self::Namespace { .. } => "namespace",
            Self::ReleasesIn { .. } => "releases-in",
        }
    }
}

impl Query {
    /// The group and kind of the objects that the answer is made of. A world without any of them may answer differently from a
    /// cluster that has some.
    #[must_use]
    pub fn kinds(&self) -> Vec<(&str, &str)> {
        let record = |storage: &Storage| ("", storage.kind());
        match self {
            Self::History { storage, .. } | Self::Body { storage, .. } => vec![record(storage)],
            Self::Document { record: read, .. } => vec![record(&read.storage)],
            Self::Release { origin, .. } => {
                let of_flux = origin.as_ref().map(|_| (flux::GROUP, flux::HELM_RELEASE));
                [record(&Storage::Secret), record(&Storage::ConfigMap)].into_iter().chain(of_flux).collect()
            }
            Self::Extension { .. } => vec![record(&Storage::OlmIndex)],
            Self::Parent { object, .. } => vec![(object.group.as_str(), object.kind.as_str())],
            Self::HelmReleases { .. } | Self::HelmReleasesIn { .. } => vec![(flux::GROUP, flux::HELM_RELEASE)],
            Self::Overrides { .. } => vec![(release_override::GROUP, release_override::KIND)],
            Self::Workloads(named) => {
                let kinds: BTreeSet<_> = named.iter().map(|workload| workload.kind.as_str()).collect();
                kinds.into_iter().map(|kind| ("apps", kind)).collect()
            }
            Self::Leases { .. } => vec![record(&Storage::ConfigMap)],
            Self::Object(key) => vec![(key.group.as_str(), key.kind.as_str())],
            Self::Bundles(_) => vec![(sveltos::LIB_GROUP, sveltos::CONFIGURATION_BUNDLE)],
            Self::Namespace { .. } => vec![("", "Namespace")],
            Self::ReleasesIn { .. } => vec![record(&Storage::Secret), record(&Storage::ConfigMap)],
        }
    }
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

/// Records that may be those of the release that an object names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    pub storage: Storage,
    /// The namespace of the records.
    pub namespace: String,
    /// From the metadata of the records. A cached answer omits superseded records.
    pub history: History,
    /// Whether the status of a HelmRelease says that Flux has installed the release there. Only Flux writes that.
    pub installed: bool,
}

/// The state of the rollout of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Workload {
    pub desired: i64,
    /// Pods of the newest revision.
    pub updated: i64,
    /// Pods available (ready, for a StatefulSet).
    pub available: i64,
    /// Whether the controller has seen the newest specification.
    pub observed: bool,
    /// Conditions by type; a StatefulSet or DaemonSet has none.
    pub conditions: BTreeMap<String, bool>,
}

/// The content of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Knowledge {
    /// Of a release: its records, possibly none.
    History(History),
    /// Of a record: the JSON of its body.
    Body(Vec<u8>),
    /// Of a record in several Secrets: those that do not exist. Nobody can read it without them.
    MissingParts(Vec<String>),
    /// Of a release that an object names, or of a ClusterExtension. Whose records count is for the rules to say.
    Release(Vec<Located>),
    /// Of a manifest: the document of an object, `None` where it has none. An error if the document, or one that may be it, cannot
    /// be parsed.
    Document(Result<Option<Arc<Value>>, String>),
    /// Of a scaled object: its marks, if it has any.
    Parent(Marks),
    /// Of a release: the HelmReleases that drive it. Of a namespace: those in it. The oldest first.
    HelmReleases(Vec<Driver>),
    /// Of a release: its overrides, expired ones included.
    Overrides(Vec<Override>),
    /// Of workloads, in the order of the query; `None` for one that does not exist.
    Workloads(Vec<Option<Workload>>),
    /// Of a ConfigMap with leases: its annotations.
    Leases(BTreeMap<String, String>),
    /// Of an object: its JSON text.
    Object(String),
    /// Of bundles, in the order of the query; `None` for one that does not exist. An error if one cannot be parsed.
    Bundles(Result<Vec<Option<Bundle>>, String>),
    /// Of a namespace: whether it is terminating, and whether it is annotated as protected.
    Namespace { terminating: bool, protected: bool },
    /// Of a namespace: the releases in it by their names, with their records.
    Releases(Vec<(String, Located)>),
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The answer is known.
    Known(Knowledge),
    /// There is no such object.
    Absent,
    /// The answer is not available, for this reason. The rule is undecided, never silently satisfied.
    Unavailable(String),
}

/// The answers to the queries so far in one review.
#[derive(Debug, Default)]
pub struct Evidence(Vec<(Query, Answer)>);

impl Evidence {
    /// Adds an answer.
    pub fn add(&mut self, query: Query, answer: Answer) {
        self.0.push((query, answer));
    }

    /// The answer to a query, if it was asked.
    #[must_use]
    pub fn get(&self, query: &Query) -> Option<&Answer> {
        self.0.iter().find(|(asked, _)| asked == query).map(|(_, answer)| answer)
    }

    /// Whether a query that a cache can answer was sent to the API server.
    #[must_use]
    pub fn is_live(&self) -> bool {
        let live = |query: &Query| match query {
            Query::Release { freshness, .. } | Query::Extension { freshness, .. } | Query::Parent { freshness, .. } => {
                *freshness == Freshness::Live
            }
            _ => false,
        };
        self.0.iter().any(|(query, _)| live(query))
    }

    /// The number of queries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there was no query.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
