//! Who changed which release from what to what, when, and by whose leave: the transitions of releases from several sources.
//!
//! The surest source is Interlock's log, then the audit log of the API server, then the records themselves, which keep the last
//! revisions of a release and what their stamps say. A transition that several sources know is one change.

mod change;
mod merge;
mod newest;
mod of_cluster;
mod of_records;

pub(crate) use change::{Certainty, Change, ChangeSource, ChangedRelease};
pub(crate) use merge::merged;
pub(crate) use newest::Newest;
pub(crate) use of_cluster::of_cluster;

/// The most changes that are kept from each source: some 60 MiB, and twice as much while a log is read.
pub(crate) const MAX_CHANGES: usize = 100_000;
