//! Access to the state of the cluster: a [`World`] answers the queries of rules.

mod documents;
pub mod kubernetes;
mod manifests;
pub mod memory;
pub(crate) mod metadata_only;
mod override_file;
pub mod policy_directory;
mod turns;
mod workload;

pub use override_file::OverrideFile;

use std::pin::Pin;
use std::sync::Arc;

use interlock_engine::effort::Effort;
use interlock_engine::evidence::{Answer, KnownLosses, Query, Question};
use interlock_engine::losses::Loss;
use interlock_engine::owners::Driver;
use interlock_engine::policy::{Freeze, NamespaceLabels};
use interlock_engine::release::{Entry, ReleaseRef, Storage};
use interlock_engine::release_override::Override;
use jiff::Timestamp;

use crate::budget::{Flow, Holdings};

/// The newest record of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestRecord {
    pub storage: Storage,
    pub namespace: String,
    pub entry: Entry,
}

/// The records of a release with an operation in flight, as far as the copies have them: superseded records may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InFlight {
    /// When the operation started, by the API server's clock; `None` if unknown.
    pub(crate) started: Option<Timestamp>,
    pub(crate) release: ReleaseRef,
    pub(crate) storage: Storage,
    pub(crate) entries: Vec<Entry>,
}

impl InFlight {
    /// The oldest operations, at most `limit`. Operations with an unknown start come first.
    fn oldest(mut found: Vec<Self>, limit: usize) -> Vec<Self> {
        found.sort_by(|one, other| one.order().cmp(&other.order()));
        found.truncate(limit);
        found
    }

    fn order(&self) -> (Option<Timestamp>, &str, &str) {
        (self.started, &self.release.namespace, &self.release.name)
    }
}

/// A world that has copies, and can answer from them without a read.
pub(crate) trait Known: World {
    /// The oldest operations in flight, at most `limit`, and their total number. The last value says whether the copies are in
    /// sync.
    fn in_flight(&self, limit: usize) -> (Vec<InFlight>, usize, bool);

    /// All HelmReleases; `None` if the copy is not in sync.
    fn drivers(&self) -> Option<Vec<Driver>>;

    /// The matching overrides that expire first, at most `limit`, and their total number; `None` if the copy is not in sync.
    fn overrides_that(&self, matches: &dyn Fn(&Override) -> bool, limit: usize) -> Option<(Vec<Override>, usize)>;

    /// The Freezes that are stored in the cluster, as last known.
    fn freezes(&self) -> Arc<[Freeze]>;
}

/// A pending answer.
pub type AnswerFuture<'w> = Pin<Box<dyn Future<Output = Answer> + Send + 'w>>;

/// Whether a note was taken: `false` if what it is based on no longer holds.
pub type NoteFuture<'w> = Pin<Box<dyn Future<Output = Result<bool, String>> + Send + 'w>>;

/// A loss, what was known when it was judged, and its verdict.
#[derive(Debug, Clone, Copy)]
pub struct LossVerdict<'w> {
    pub loss: &'w Loss,
    pub known: &'w KnownLosses,
    pub admitted: bool,
    pub now: Timestamp,
}

/// The flow that a query is charged to, and its limits.
#[derive(Debug, Clone, Copy)]
pub struct QueryBudget<'p> {
    /// The flow of the review.
    pub flow: Flow<'p>,
    /// The remaining steps of the review.
    pub effort: &'p Effort,
    /// The memory of answers, held until the review ends.
    pub holdings: &'p Holdings,
}

/// Asks a question that belongs to no review; `None` if there is no such object.
///
/// # Errors
/// Why there is no answer.
pub(crate) async fn ask<Q: Question>(world: &(impl World + ?Sized), question: Q) -> Result<Option<Q::Answer>, String> {
    match world.answer(&question.into()).await {
        Answer::Known(known) => Q::take(known).map(Some).ok_or_else(|| "the answer was to another question".to_owned()),
        Answer::Absent => Ok(None),
        Answer::Unavailable(why) => Err(why),
    }
}

/// Answers the queries of rules.
pub trait World: Send + Sync {
    /// Answers one query of a review. Never fails: an unknown answer is [`Answer::Unavailable`] with the reason.
    fn answer_for<'w>(&'w self, query: &'w Query, budget: QueryBudget<'w>) -> AnswerFuture<'w>;

    /// The labels of Namespaces, as far as they are known without a read. The value stays the same until a label changes; `None` if
    /// this world keeps no labels.
    fn namespace_labels(&self) -> Option<Arc<NamespaceLabels>> {
        None
    }

    /// The HelmReleases that name these records and match, as far as they are known without a read.
    fn drivers_naming(&self, _records: &ReleaseRef, _matches: &dyn Fn(&Driver) -> bool) -> Vec<Driver> {
        Vec::new()
    }

    /// The stamp of what protects a release, on the records in one storage, as far as they are known without a read.
    fn protector_of(&self, _storage: Storage, _records: &ReleaseRef) -> Option<String> {
        None
    }

    /// Notes the verdict about a loss, before it is sent. Nothing is to be noted in a world that does not know of losses.
    fn note_loss<'w>(&'w self, _verdict: LossVerdict<'w>) -> NoteFuture<'w> {
        Box::pin(async { Ok(true) })
    }

    /// Answers a query that belongs to no review. The query has its own limits.
    fn answer<'w>(&'w self, query: &'w Query) -> AnswerFuture<'w> {
        Box::pin(async move {
            let (effort, holdings) = (Effort::of_review(), Holdings::default());
            self.answer_for(query, QueryBudget { flow: Flow::own(), effort: &effort, holdings: &holdings }).await
        })
    }
}
