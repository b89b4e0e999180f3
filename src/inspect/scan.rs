//! Finds problems with the releases of a cluster, without a write: for `interlock scan`, and in the background on the
//! leader.
//!
//! A scan reads metadata first, in pages. It reads a body only where [`BodySelection`] says so, and an object only for
//! [`ScanOptions::drift`]. It makes a few reads at a time and keeps only findings.
//!
//! A scan uses the definitions of the rules: integrity of records, staleness, colliding HelmReleases, missing bundles,
//! declared fields. `finding_kind`, `finding`, `history`, `integrity`, `declarations` and `drift` are pure.

mod background;
mod calls;
mod contested;
mod context;
mod declarations;
mod definitions;
mod drift;
mod examine;
mod field_managers;
mod finding;
mod finding_kind;
pub(crate) mod gather;
mod groups;
mod history;
mod integrity;
pub(crate) mod inventory;
pub(crate) mod listing;
mod options;
pub(crate) mod page;
mod releases;
mod report;
mod run;
mod served;
mod shared_objects;
mod stream;

pub use background::{SCAN_INTERVAL, ScanSource, background};
pub(crate) use context::DECODE_BYTES;
pub(crate) use field_managers::{FieldManager, field_managers};
pub use finding::Finding;
pub use finding_kind::FindingKind;
pub use options::{BodySelection, ScanOptions, ScanProgress};
pub use report::{Gap, ScanReport};
pub use run::{ScanError, scan};

#[cfg(test)]
mod tests;
