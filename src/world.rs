//! What the cluster knows: the questions that rules ask, and who answers them.

mod body;
mod caches;
pub mod cluster;
mod custom;
mod definition;
mod documents;
mod helm_releases;
mod index;
pub(crate) mod kinds;
mod learn;
pub(crate) mod listed;
mod locate;
mod losses;
mod manifests;
pub mod memory;
mod override_file;
mod parents;
pub(crate) mod policies;
mod query;
pub(crate) mod reach;
pub(crate) mod read;
mod release_overrides;
mod watch;

use std::pin::Pin;

pub use caches::Watches;
pub use losses::{Loss, Losses};
pub use override_file::OverrideFile;
pub use query::{Answer, Evidence, Freshness, Knowledge, Located, ObjectKey, Query, RecordRef, ScaledRef, Workload};
pub use reach::Reach;

use crate::release::{Entry, Storage};

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
