//! Who changed which release from what to what, when, and with which override: the transitions of releases from several sources.
//!
//! The surest source is Interlock's log, then the audit log of the API server, then the records themselves, which keep the last
//! revisions of a release and what their stamps say. A transition that several sources know is one change.

mod change;
mod covered;
mod merge;
mod newest;
mod of_cluster;
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

/// The most changes that are kept from each source, and twice as many while a log is read. A change has some 600 bytes, and at most
/// 4 KiB with the longest names; the groups of users, at most 8 KiB each, are shared.
pub(crate) const MAX_CHANGES: usize = 100_000;
