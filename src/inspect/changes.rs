//! The history of releases from several sources: who changed a release, when, from which status to which, and with which override. And
//! of the operations that other objects carry.
//!
//! The most reliable source is Interlock's log, then the audit log of the API server, then the cluster: records keep the last
//! revisions of a release with their stamps, and other objects their last operation. A transition that several sources report is one change.

mod change;
mod covered;
mod merge;
mod newest;
mod of_cluster;
mod of_objects;
mod of_records;
mod shared_groups;
mod wanted;

pub(crate) use change::{Certainty, Change, ChangeSource, ChangedRelease};
pub(crate) use covered::Covered;
pub(crate) use merge::merged;
pub(crate) use newest::Newest;
pub(crate) use of_cluster::of_cluster;
pub(crate) use shared_groups::SharedGroups;
pub(crate) use wanted::Wanted;

/// The maximum number of changes that are kept from each source. While a log is read, twice as many are kept. A change takes some
/// 600 bytes, and at most 4 KiB with the longest names. The groups of users, at most 8 KiB each, are shared.
pub(crate) const MAX_CHANGES: usize = 100_000;
