//! Access to the state of the cluster: a [`World`] answers the queries of rules.

mod documents;
pub mod kubernetes;
mod locate;
mod manifests;
pub mod memory;
mod payload;
mod policy_directory;
pub(crate) mod read;

use std::pin::Pin;

use crate::budget::Holdings;
use crate::engine::effort::Effort;
use crate::engine::evidence::{Answer, Query};
use crate::engine::release::{Entry, Storage};

/// The ConfigMap in which nelm and werf keep their leases.
const WERF_LEASES: &str = "werf-synchronization";

/// The newest record of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestRecord {
    pub storage: Storage,
    pub namespace: String,
    pub entry: Entry,
}

/// A pending answer.
pub type AnswerFuture<'w> = Pin<Box<dyn Future<Output = Answer> + Send + 'w>>;

/// On whose behalf a query is answered, and what that may cost.
#[derive(Debug, Clone, Copy)]
pub struct Payer<'p> {
    /// The user of the review.
    pub user: &'p str,
    /// The steps that the review has left.
    pub effort: &'p Effort,
    /// The memory of answers, held until the review ends.
    pub holdings: &'p Holdings,
}

/// Answers the queries of rules.
pub trait World: Send + Sync {
    /// Answers one query of a review. Never fails: what cannot be found out is [`Answer::Unavailable`] with the reason.
    fn answer_for<'w>(&'w self, query: &'w Query, payer: Payer<'w>) -> AnswerFuture<'w>;

    /// Answers a query that belongs to no review, with a budget of its own.
    fn answer<'w>(&'w self, query: &'w Query) -> AnswerFuture<'w> {
        Box::pin(async move {
            let (effort, holdings) = (Effort::of_review(), Holdings::default());
            self.answer_for(query, Payer { user: "", effort: &effort, holdings: &holdings }).await
        })
    }
}
