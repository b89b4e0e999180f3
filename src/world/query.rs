//! The questions that rules ask of the cluster, and the answers collected so far. Plain values: rules depend on these,
//! never on who answers.

use std::collections::BTreeMap;

use crate::release::manifest::WorkloadRef;
use crate::release::{History, Storage};

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
    /// The state of some workloads, all at once: a release may have hundreds.
    Workloads(Vec<WorkloadRef>),
    /// The ConfigMap in which nelm and werf keep their leases.
    Leases {
        /// The namespace of the release.
        namespace: String,
    },
    /// A namespace.
    Namespace {
        /// Its name.
        name: String,
    },
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
    /// Of workloads, in the order of the query; `None` where there is no such one.
    Workloads(Vec<Option<Workload>>),
    /// Of a ConfigMap with leases: its annotations.
    Leases(BTreeMap<String, String>),
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
