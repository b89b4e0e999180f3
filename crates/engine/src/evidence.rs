//! The rules' queries to the cluster, and the answers so far. Plain values: rules depend only on these, never on the world that
//! answers.

mod answer;
mod kinds;
mod query;
pub mod question;

pub use answer::{
    Answer, CandidateRecords, Candidates, FoundDocument, NamespaceState, ReadBundles, ReadDocument, ScaledObject,
    StoredBody, Workload,
};
pub use kinds::can_be_asked_for;
pub use query::{Knowledge, Query, Question};
pub use question::{Freshness, RecordRef, ScaledRef};

use crate::policy::Freeze;

/// The ConfigMap in which nelm and werf keep their leases.
pub const WERF_LEASES: &str = "werf-synchronization";

/// The answers to all queries of one review so far.
#[derive(Debug, Default)]
pub struct Evidence(Vec<(Query, Answer)>);

impl Query {
    /// Whether it asks the API server for the owner of an object. Overrides do not count: they are read again before each use.
    fn locates_live(&self) -> bool {
        match self {
            Self::Release(question::Release { freshness, .. })
            | Self::Extension(question::Extension { freshness, .. })
            | Self::Parent(question::Parent { freshness, .. }) => *freshness == Freshness::Live,
            _ => false,
        }
    }
}

impl Evidence {
    /// Adds an answer.
    pub fn add(&mut self, query: Query, answer: Answer) {
        self.0.push((query, answer));
    }

    /// The answer to a query; `None` if it was not sent.
    #[must_use]
    pub fn get(&self, query: &Query) -> Option<&Answer> {
        self.0.iter().find(|(asked, _)| asked == query).map(|(_, answer)| answer)
    }

    /// The Freezes that are stored in the cluster; none if they were not queried, or are unknown.
    #[must_use]
    pub fn freezes(&self) -> &[Freeze] {
        match self.get(&question::Freezes.into()) {
            Some(Answer::Known(Knowledge::Freezes(freezes))) => freezes,
            _ => &[],
        }
    }

    /// Whether a query was sent to the API server that a cache could have answered.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.0.iter().any(|(query, _)| query.locates_live())
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
