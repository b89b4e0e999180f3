//! What stored objects say in answer to a query. The same for every world: in a cluster, and in memory.

mod document;
pub mod locate;
pub mod payload;
pub mod read;
mod rollout;
mod version;

pub use document::{FoundDocument, ReadDocument, read_document};
pub use rollout::{WorkloadSpec, WorkloadStatus, rollout};
pub use version::{ObjectVersion, changed, manifest};
