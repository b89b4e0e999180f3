//! What is wrong with the releases of a cluster, found by reads alone: by `interlock scan`, and in the background by the
//! leader.
//!
//! Metadata come first, in pages. A body is read only where [`BodySelection`] says so, and an object only for [`ScanOptions::drift`];
//! reads are made a few at a time, and nothing is kept of them but findings.
//!
//! What is judged is judged by the rules' own notions: integrity of records, staleness, HelmReleases that collide, bundles
//! that are missing, declared fields. `check`, `finding`, `history`, `integrity`, `declarations` and `drift` are pure.

mod background;
mod calls;
mod context;
mod declarations;
mod drift;
mod examine;
mod finding;
mod finding_kind;
pub(crate) mod gather;
mod groups;
mod history;
mod integrity;
pub(crate) mod inventory;
pub(crate) mod listing;
mod options;
pub mod page;
mod releases;
mod report;
mod run;
mod served;

pub use background::{SCAN_INTERVAL, background};
pub use finding::Finding;
pub use finding_kind::FindingKind;
pub use options::{BodySelection, ScanOptions, ScanProgress};
pub use report::{Gap, ScanReport};
pub(crate) use run::DECODE_BYTES;
pub use run::{ScanError, scan};

#[cfg(test)]
mod tests;
