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

/// Answers the queries of rules.
pub trait World: Send + Sync {
    /// Answers one query. Never fails: what cannot be found out is [`Answer::Unavailable`] with the reason.
    fn answer<'w>(&'w self, query: &'w Query) -> AnswerFuture<'w>;
}
