//! The queries of rules to the cluster, and the answers collected so far. Plain values: rules depend on these, never on the world
//! that answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::freeze_resource;
use super::managed::Origin;
use super::object::ObjectKey;
use super::owners::Marks;
use super::owners::{self, Bundle, BundleRef, Driver};
use super::policy::Freeze;
use super::release::manifest::{DocumentKey, WorkloadRef};
use super::release::{History, Storage};
use super::release_override::{self, Override};

/// The ConfigMap in which nelm and werf keep their leases.
pub const WERF_LEASES: &str = "werf-synchronization";

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
    /// The HelmReleases that may be behind a release, including those whose release is on another cluster. A cache finds the
    /// candidates, a handful at most, and each is read from the API server. Asked by [`Query::helm_releases`].
    HelmReleases {
        /// The namespace of the records.
        namespace: String,
        /// The name of the release, shortened as Flux does.
        release: String,
        /// The account of another namespace that holds the newest record: a HelmRelease there may work under it.
        account: Option<String>,
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
    /// The Freezes that are stored in the cluster, as a cache has seen them last: they hold on while the API server does not answer.
    Freezes,
    /// The Freezes in a namespace, as the API server has them now.
    FreezesIn { namespace: String },
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
    /// The releases whose records are in a namespace, as the API server has them now, and those with a record elsewhere that is stamped
    /// for objects in it, as a cache has seen them.
    ReleasesIn { namespace: String },
}

impl Query {
    /// The query for the HelmReleases behind a release with these records, whose newest one this user holds.
    pub fn helm_releases(namespace: &str, release: &str, holder: Option<&str>) -> Self {
        let account = owners::account_elsewhere(holder, namespace).map(str::to_owned);
        Self::HelmReleases { namespace: namespace.to_owned(), release: release.to_owned(), account }
    }

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
            Self::Freezes | Self::FreezesIn { .. } => "freezes",
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
                let origin = origin.as_ref().map(|_| owners::HELM_RELEASES);
                [record(&Storage::Secret), record(&Storage::ConfigMap)].into_iter().chain(origin).collect()
            }
            Self::Extension { .. } => vec![record(&Storage::Index)],
            Self::Parent { object, .. } => vec![(object.group.as_str(), object.kind.as_str())],
            Self::HelmReleases { .. } | Self::HelmReleasesIn { .. } => vec![owners::HELM_RELEASES],
            Self::Overrides { .. } => vec![(release_override::GROUP, release_override::KIND)],
            Self::Freezes | Self::FreezesIn { .. } => vec![(release_override::GROUP, freeze_resource::KIND)],
            Self::Workloads(named) => {
                let kinds: BTreeSet<_> = named.iter().map(|workload| workload.kind.as_str()).collect();
                kinds.into_iter().map(|kind| ("apps", kind)).collect()
            }
            Self::Leases { .. } => vec![record(&Storage::ConfigMap)],
            Self::Object(key) => vec![(key.group.as_str(), key.kind.as_str())],
            Self::Bundles(_) => vec![owners::BUNDLES],
            Self::Namespace { .. } => vec![("", "Namespace")],
            Self::ReleasesIn { .. } => vec![record(&Storage::Secret), record(&Storage::ConfigMap)],
        }
    }
}

/// Whether a query can be about objects of this kind. There is one query about objects of any kind, [`Query::Parent`]: it needs only
/// objects with marks of an owner.
#[must_use]
pub fn can_be_asked_for(group: &str, kind: &str) -> bool {
    match group {
        "" => ["Secret", "ConfigMap", "Namespace"].contains(&kind),
        "apps" => ["Deployment", "StatefulSet", "DaemonSet"].contains(&kind),
        "batch" => kind == "Job",
        release_override::GROUP => true,
        _ => owners::has_group(group),
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
    /// Whether an account of the HelmRelease that the labels of the object name holds the newest of these records. Only the mutating
    /// half writes that stamp.
    pub held_for_origin: bool,
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
    /// Of a release: the HelmReleases of the records' namespace are too many or too large to be read, for this reason.
    HelmReleasesOverLimit(String),
    /// Of a release: its overrides, expired ones included.
    Overrides(Vec<Override>),
    /// Of a cluster: its Freezes, past ones included.
    Freezes(Arc<[Freeze]>),
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

/// The steps to read a byte of a text that the world has not read.
const TEXT_STEPS: u64 = 10;

/// The steps to look at one of many: a record, an override, a bundle.
const ITEM_STEPS: u64 = 200;

/// So many nodes of a document are many, and no more of them are counted.
const MANY_NODES: usize = 10_000;

/// What is left of a number of nodes after those of a value.
fn left_of(value: &Value, left: usize) -> usize {
    let left = left.saturating_sub(1);
    match value {
        _ if left == 0 => 0,
        Value::Array(items) => items.iter().take(left).fold(left, |left, item| left_of(item, left)),
        Value::Object(members) => members.values().take(left).fold(left, |left, member| left_of(member, left)),
        _ => left,
    }
}

impl Answer {
    /// About how many steps the rules take to read it.
    #[must_use]
    pub fn steps(&self) -> u64 {
        let Self::Known(knowledge) = self else { return 0 };
        let (bytes, items) = match knowledge {
            Knowledge::Body(json) => (json.len(), 0),
            Knowledge::Object(text) => (text.len(), 0),
            Knowledge::Leases(leases) => (leases.values().map(String::len).sum(), leases.len()),
            Knowledge::HelmReleases(drivers) => {
                return drivers.iter().map(|driver| driver.drift_detection.steps()).fold(0, u64::saturating_add);
            }
            Knowledge::History(history) => (0, history.iter().count()),
            Knowledge::Release(located) => (0, located.iter().map(|located| located.history.iter().count()).sum()),
            Knowledge::Releases(releases) => {
                (0, releases.iter().map(|(_, located)| located.history.iter().count()).sum())
            }
            Knowledge::Overrides(overrides) => (0, overrides.len()),
            Knowledge::Freezes(freezes) => (0, freezes.len()),
            Knowledge::Workloads(workloads) => (0, workloads.len()),
            Knowledge::Bundles(bundles) => (0, bundles.as_ref().map_or(0, Vec::len)),
            Knowledge::MissingParts(names) => (0, names.len()),
            Knowledge::Document(Ok(Some(document))) => (0, MANY_NODES - left_of(document, MANY_NODES)),
            Knowledge::Document(_)
            | Knowledge::Parent(_)
            | Knowledge::Namespace { .. }
            | Knowledge::HelmReleasesOverLimit(_) => (0, 0),
        };
        (bytes as u64 * TEXT_STEPS).saturating_add(items as u64 * ITEM_STEPS)
    }
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

    /// The Freezes that are stored in the cluster; none if nobody has asked for them, or if they are not known.
    #[must_use]
    pub fn freezes(&self) -> &[Freeze] {
        match self.get(&Query::Freezes) {
            Some(Answer::Known(Knowledge::Freezes(freezes))) => freezes,
            _ => &[],
        }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_steps_of_a_document_grow_with_its_nodes_up_to_a_limit() {
        let steps = |document: Value| Answer::Known(Knowledge::Document(Ok(Some(Arc::new(document))))).steps();
        assert_eq!(steps(json!({"a": [1, {"b": 2}]})), 5 * ITEM_STEPS);
        let many = steps(Value::Array(vec![json!({"a": 1}); MANY_NODES]));
        assert_eq!(many, steps(Value::Array(vec![json!({"a": 1}); 4 * MANY_NODES])));
        assert!(many > 1_000_000);
    }
}
