//! The questions that rules ask of the cluster, and the answers collected so far. Plain values: rules depend on these,
//! never on who answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::flux::Driver;
use super::managed::{Marks, Origin};
use super::object::ObjectKey;
use super::release::manifest::{DocumentKey, WorkloadRef};
use super::release::{History, Storage};
use super::release_override::Override;
use super::sveltos::{Bundle, BundleRef};

/// How old an answer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// A copy that lags behind will do: it may say that a request is fine, never that it is not.
    Cached,
    /// As the API server has it now.
    Live,
}

/// Everything that a rule can ask.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Query {
    /// The records of a release, by their metadata.
    History {
        /// How they are stored.
        storage: Storage,
        /// The namespace of the records.
        namespace: String,
        /// The release.
        release: String,
    },
    /// The body of one record, with the further parts that OLM may have cut it into.
    Body {
        /// How it is stored.
        storage: Storage,
        /// The namespace of the record.
        namespace: String,
        /// The object's name.
        object: String,
    },
    /// The release that an object names as its own: where its records are, and what they say by their metadata.
    Release {
        /// The name of the release.
        name: String,
        /// The namespace that its objects go to, which need not be that of its records.
        target_namespace: String,
        /// The HelmRelease that the object's labels name, where Flux put some.
        origin: Option<Origin>,
        /// How old the answer may be.
        freshness: Freshness,
    },
    /// The records of a ClusterExtension, wherever OLM keeps them: its name is the release's, and there is no other of it.
    Extension {
        /// Its name.
        name: String,
        /// How old the answer may be.
        freshness: Freshness,
    },
    /// Whether there is any object of a kind with a label.
    Exists {
        /// The API group.
        group: &'static str,
        /// The kind, in whatever version the cluster serves it.
        kind: &'static str,
        /// The label.
        label: &'static str,
        /// Its value.
        value: String,
    },
    /// What the manifest of one state of a record says of an object. Neither ever changes.
    Document {
        /// The record.
        record: RecordRef,
        /// The object.
        object: DocumentKey,
    },
    /// The marks of an object that is scaled, which its Scale does not carry.
    Parent {
        /// The object.
        object: ScaledRef,
        /// How old the answer may be.
        freshness: Freshness,
    },
    /// The HelmReleases that drive a release by its records, those whose release is on another cluster included. Which may
    /// be among them is told by a copy that lags behind, and each is read from the API server itself.
    HelmReleases {
        /// The namespace of the records.
        namespace: String,
        /// The release, its name as Flux shortens it.
        release: String,
    },
    /// The ReleaseOverrides of a release. A copy that is not whole knows of none.
    Overrides {
        /// Where they are.
        namespace: String,
        /// The name of the release.
        release: String,
        /// How old the answer may be.
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
    Namespace {
        /// Its name.
        name: String,
    },
}

impl Query {
    /// What is asked for, in a word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::History { .. } => "history",
            Self::Body { .. } => "body",
            Self::Release { .. } => "release",
            Self::Extension { .. } => "extension",
            Self::Exists { .. } => "exists",
            Self::Document { .. } => "document",
            Self::Parent { .. } => "parent",
            Self::HelmReleases { .. } => "helm-releases",
            Self::Overrides { .. } => "overrides",
            Self::Workloads(_) => "workloads",
            Self::Leases { .. } => "leases",
            Self::Object(_) => "object",
            Self::Bundles(_) => "bundles",
            Self::Namespace { .. } => "namespace",
        }
    }
}

/// One state of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecordRef {
    /// How it is stored.
    pub storage: Storage,
    /// The namespace of the record.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The object's uid.
    pub uid: String,
    /// The object's resourceVersion.
    pub resource_version: String,
}

/// An object with a scale subresource, as a request on that names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScaledRef {
    /// Empty for the core group.
    pub group: String,
    /// For example `v1`.
    pub version: String,
    /// For example `deployments`.
    pub resource: String,
    /// For example `Deployment`.
    pub kind: String,
    /// The object's namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

/// The records of a release, found from one of its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// How they are stored.
    pub storage: Storage,
    /// The namespace of the records.
    pub namespace: String,
    /// What they say by their metadata. A cached answer leaves out superseded ones.
    pub history: History,
}

/// How the rollout of a workload stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Workload {
    /// Pods wanted.
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

/// What there is to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Knowledge {
    /// Of a release: its records, none at all included.
    History(History),
    /// Of a record: the JSON of its body.
    Body(Vec<u8>),
    /// Of a release that an object names, or of a ClusterExtension.
    Release(Located),
    /// Of a manifest: the document of an object, `None` where it has none.
    Document(Option<Arc<Value>>),
    /// Of a scaled object: its marks, if it has any.
    Parent(Marks),
    /// Of a release: the HelmReleases that drive it, the oldest first.
    HelmReleases(Vec<Driver>),
    /// Of a release: its overrides, expired ones included.
    Overrides(Vec<Override>),
    /// Of workloads, in the order of the query; `None` where there is no such one.
    Workloads(Vec<Option<Workload>>),
    /// Of a ConfigMap with leases: its annotations.
    Leases(BTreeMap<String, String>),
    /// Whether there is such an object.
    Exists(bool),
    /// Of an object: its JSON text.
    Object(String),
    /// Of bundles, in the order of the query; `None` where there is no such one, and what is wrong where one does not read.
    Bundles(Result<Vec<Option<Bundle>>, String>),
    /// Of a namespace: whether it is terminating.
    Terminating(bool),
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// This is how it is.
    Known(Knowledge),
    /// There is no such object.
    Absent,
    /// It could not be learnt, for this reason. The rule is undecided, never silently satisfied.
    Unavailable(String),
}

/// The answers to the questions asked so far in one review.
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

    /// Whether the API server itself was asked for what a cache may know.
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

    /// How many questions were asked.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
