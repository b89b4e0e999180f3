//! What is wrong with the releases of a cluster, found by reads alone: by `interlock scan`, and in the background by the
//! leader.
//!
//! Metadata come first, in pages. A body is read only where [`Bodies`] says so, and an object only for [`Options::drift`];
//! reads are made a few at a time, and nothing is kept of them but findings.
//!
//! What is judged is judged by the rules' own notions: integrity of records, staleness, HelmReleases that collide, bundles
//! that are missing, declared fields. `check`, `finding`, `history`, `integrity`, `declarations` and `drift` are pure.

mod background;
mod calls;
mod check;
mod declarations;
mod drift;
mod examine;
mod finding;
pub(crate) mod gather;
mod history;
mod integrity;
pub(crate) mod inventory;
pub(crate) mod listing;
pub mod page;
mod report;
mod run;
mod served;

pub use background::{EVERY, background};
pub use check::{Check, Severity};
pub use finding::Finding;
pub use report::{Gap, Report};
pub use run::scan;

use crate::world::kubernetes::Reach;

/// What to look at.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What the report calls the cluster.
    pub cluster: String,
    /// The one namespace to look at; all within reach where there is none.
    pub namespace: Option<String>,
    /// Where anything is read, what other namespaces say of the one to look at included.
    pub reach: Reach,
    /// Which bodies are read.
    pub bodies: Bodies,
    /// Whether the objects of deployed releases are compared with their manifests. Costs a read an object. OLM's are left
    /// out: it puts them right by itself.
    pub drift: bool,
}

/// Which bodies of records are read. The metadata of all are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bodies {
    /// Of releases with a finding in their metadata: the newest record and the deployed ones.
    Questioned,
    /// Of every release: the newest record and the deployed ones, which are those that helm acts on.
    #[default]
    ActedOn,
    /// All.
    All,
}

impl Bodies {
    fn sentence(self) -> &'static str {
        match self {
            Self::Questioned => "bodies of records with a finding in their metadata",
            Self::ActedOn => "bodies of the newest and the deployed records",
            Self::All => "bodies of all records",
        }
    }
}

/// How far the closer look at releases is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Releases that are done.
    pub done: usize,
    /// All that are looked into.
    pub total: usize,
}

/// Why nothing is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to list the records in Secrets: {why}")]
pub struct ScanError {
    why: String,
}

#[cfg(test)]
mod tests;
