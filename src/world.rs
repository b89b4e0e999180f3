//! What the cluster knows: the questions that rules ask, and who answers them.

mod body;
mod documents;
pub mod kubernetes;
mod locate;
mod manifests;
pub mod memory;
mod policy_directory;
pub(crate) mod read;

use std::pin::Pin;

use crate::engine::evidence::{Answer, Query};
use crate::engine::release::{Entry, Storage};

/// The ConfigMap in which nelm and werf keep their leases.
const LEASES: &str = "werf-synchronization";

/// The newest record of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newest {
    /// How it is stored.
    pub storage: Storage,
    /// Its namespace.
    pub namespace: String,
    /// What its metadata say.
    pub entry: Entry,
}

/// An answer on its way.
pub type Answering<'w> = Pin<Box<dyn Future<Output = Answer> + Send + 'w>>;

/// Something that answers the questions of rules.
pub trait World: Send + Sync {
    /// Answers one query. Never fails: what cannot be learnt is [`Answer::Unavailable`] with the reason.
    fn answer<'w>(&'w self, query: &'w Query) -> Answering<'w>;
}
