//! The rules' queries to the cluster, and the answers so far. Plain values: rules depend only on these, never on the world that
//! answers.

mod answer;
mod kinds;
mod query;
pub mod question;

pub use answer::{
    Answer, CandidateRecords, Candidates, FoundDocument, KnownLosses, NamespaceState, ReadBundles, ReadDocument,
    ScaledObject, StoredBody, Workload,
};
pub use kinds::can_be_asked_for;
pub use query::{Knowledge, Query, Question};
pub use question::{Freshness, RecordRef, ScaledRef};

use crate::losses::Loss;
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

    /// The loss that the request was judged by, with what was known then; `None` if it is none, or nothing was known.
    #[must_use]
    pub fn loss(&self) -> Option<(&Loss, &KnownLosses)> {
        self.0.iter().find_map(|(query, answer)| match (query, answer) {
            (Query::Losses(question::Losses(loss)), Answer::Known(Knowledge::Losses(known))) => Some((loss, known)),
            _ => None,
        })
    }

    /// Forgets what is known of losses, because it is known no longer. With a reason, it cannot be known.
    pub fn forget_losses(&mut self, unavailable: Option<String>) {
        let is_about_losses = |(query, _): &mut (Query, Answer)| matches!(query, Query::Losses(_));
        let forgotten: Vec<_> = self.0.extract_if(.., is_about_losses).collect();
        if let Some(why) = unavailable {
            self.0.extend(forgotten.into_iter().map(|(query, _)| (query, Answer::Unavailable(why.clone()))));
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
