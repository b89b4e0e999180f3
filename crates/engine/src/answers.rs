//! How stored objects answer a query. Every world uses this code: the cluster, and the world in memory.

mod document;
pub mod locate;
pub mod payload;
pub mod read;
pub mod record;
mod rollout;
mod version;

pub use document::read_document;
pub use rollout::{WorkloadSpec, WorkloadStatus, rollout};
pub use version::ObjectVersion;
