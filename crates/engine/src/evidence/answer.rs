//! The answers of the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::query::Knowledge;
use crate::effort::Effort;
use crate::losses::Losses;
use crate::owners::{Bundle, Driver, Marks};
use crate::release::{DecodeError, History, Record, Storage};

/// Records that may belong to the release that an object names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateRecords {
    pub storage: Storage,
    /// The namespace of the records.
    pub namespace: String,
    /// From the metadata of the records. Cached answers omit superseded records.
    pub history: History,
    /// Whether the stamp says that an account of the HelmRelease in the object's labels holds the newest record. Only the
    /// mutating half writes that stamp.
    pub held_for_origin: bool,
}

/// The rollout state of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Workload {
    pub desired: i64,
    /// Pods of the newest revision.
    pub updated: i64,
    /// Available pods; for a StatefulSet, ready pods.
    pub available: i64,
    /// Whether the controller has seen the newest specification.
    pub observed: bool,
    /// Conditions by type; a StatefulSet or DaemonSet has none.
    pub conditions: BTreeMap<String, bool>,
}

/// An object that a Scale belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaledObject {
    pub marks: Marks,
    /// The JSON of its `managedFields`. `None` from a cache, which does not store them.
    pub managed_fields: Option<String>,
}

/// The body of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredBody {
    /// The JSON of the body.
    Json(Vec<u8>),
    /// It cannot be decoded.
    Broken(DecodeError),
}

impl StoredBody {
    /// Why no client can read the body; `None` if one can, or if that is unknown.
    #[must_use]
    pub fn why_unreadable(&self, effort: &Effort) -> Option<DecodeError> {
        let error = match self {
            Self::Json(json) => Record::read(json, effort).err()?,
            Self::Broken(error) => error.clone(),
        };
        Some(error).filter(DecodeError::stops_every_client)
    }
}

/// The HelmReleases that drive a release, oldest first. The error says why those in the records' namespace cannot be read: they
/// are too many or too large.
pub type Candidates = Result<Vec<Driver>, String>;

/// The document of an object; `None` if the manifest has none.
pub type FoundDocument = Option<Arc<Value>>;

/// The document of an object in a manifest. The error names a document that cannot be parsed, without its content.
pub type ReadDocument = Result<FoundDocument, String>;

/// Bundles in the order of the query; `None` for one that does not exist. The error names one that cannot be parsed.
pub type ReadBundles = Result<Vec<Option<Bundle>>, String>;

/// The state of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamespaceState {
    /// Whether it is being deleted.
    pub terminating: bool,
    /// Whether it is annotated as protected.
    pub protected: bool,
}

/// What an object has lost, in a version of the place that all replicas share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownLosses {
    pub losses: Losses,
    /// The resource version of that place.
    pub version: String,
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

/// Steps to parse one byte of a text that the world has not parsed.
const TEXT_STEPS: u64 = 10;

/// Steps to check one of several items: a record, an override, a bundle.
const ITEM_STEPS: u64 = 200;

/// The maximum number of counted nodes in a document.
const MANY_NODES: usize = 10_000;

/// The rest of a number of nodes after those of a value are subtracted.
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
    /// About how many steps the rules take to read the answer.
    #[must_use]
    pub fn steps(&self) -> u64 {
        let Self::Known(knowledge) = self else { return 0 };
        let (bytes, items) = match knowledge {
            Knowledge::Body(StoredBody::Json(json)) => (json.len(), 0),
            Knowledge::Body(StoredBody::Broken(DecodeError::MissingChunks(names))) => (0, names.len()),
            Knowledge::Body(StoredBody::Broken(_)) => (0, 0),
            Knowledge::Object(text) => (text.len(), 0),
            Knowledge::ExtensionsIn(texts) => (texts.iter().map(String::len).sum(), texts.len()),
            Knowledge::AppliersIn(found) => (found.iter().map(|(_, text)| text.len()).sum(), found.len()),
            Knowledge::Parent(scaled) => (scaled.managed_fields.as_ref().map_or(0, String::len), 0),
            Knowledge::Leases(leases) => (leases.values().map(String::len).sum(), leases.len()),
            Knowledge::HelmReleases(Ok(drivers)) | Knowledge::HelmReleasesIn(drivers) => {
                return drivers.iter().map(|driver| driver.drift_detection.steps()).fold(0, u64::saturating_add);
            }
            Knowledge::History(history) => (0, history.iter().count()),
            Knowledge::Release(candidates) | Knowledge::Extension(candidates) => {
                (0, candidates.iter().map(|candidate| candidate.history.iter().count()).sum())
            }
            Knowledge::ReleasesIn(releases) => {
                (0, releases.iter().map(|(_, candidate)| candidate.history.iter().count()).sum())
            }
            Knowledge::Overrides(overrides) => (0, overrides.len()),
            Knowledge::Freezes(freezes) | Knowledge::FreezesIn(freezes) => (0, freezes.len()),
            Knowledge::Workloads(workloads) => (0, workloads.len()),
            Knowledge::Bundles(bundles) => (0, bundles.as_ref().map_or(0, Vec::len)),
            Knowledge::Document(Ok(Some(document))) => (0, MANY_NODES - left_of(document, MANY_NODES)),
            Knowledge::Document(_)
            | Knowledge::Namespace(_)
            | Knowledge::AnyAccount(_)
            | Knowledge::Losses(_)
            | Knowledge::HelmReleases(Err(_)) => (0, 0),
        };
        (bytes as u64 * TEXT_STEPS).saturating_add(items as u64 * ITEM_STEPS)
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
