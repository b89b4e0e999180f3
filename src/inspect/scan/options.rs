//! What a scan looks at, and how far it is.

use crate::engine::release::{Entry, History, Status};
use crate::world::kubernetes::Reach;

/// What to look at.
#[derive(Debug, Clone, Default)]
pub struct ScanOptions {
    /// What the report calls the cluster.
    pub cluster: String,
    /// The one namespace to look at; all within reach where there is none.
    pub namespace: Option<String>,
    /// Where anything is read, what other namespaces say of the one to look at included.
    pub reach: Reach,
    /// Which bodies are read.
    pub bodies: BodySelection,
    /// Whether the objects of deployed releases are compared with their manifests. Costs a read an object. OLM's are left
    /// out: it puts them right by itself.
    pub drift: bool,
}

/// Which bodies of records are read. The metadata of all are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BodySelection {
    /// Of releases with a finding in their metadata: the newest record and the deployed ones.
    Questioned,
    /// Of every release: the newest record and the deployed ones, which are those that helm acts on.
    #[default]
    ActedOn,
    /// All.
    All,
}

impl BodySelection {
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Self::Questioned => "bodies of records with a finding in their metadata",
            Self::ActedOn => "bodies of the newest and the deployed records",
            Self::All => "bodies of all records",
        }
    }
}

/// How far the closer look at releases is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanProgress {
    /// Releases that are done.
    pub done: usize,
    /// All that are looked into.
    pub total: usize,
}

impl ScanOptions {
    /// The records whose bodies are to be read.
    pub(super) fn wanted<'h>(&self, history: &'h History, is_questioned: bool) -> Vec<&'h Entry> {
        let newest = history.newest().map(|newest| newest.revision);
        let acted_on = |entry: &&Entry| Some(entry.revision) == newest || entry.status == Status::Deployed;
        match self.bodies {
            BodySelection::All => history.iter().collect(),
            BodySelection::Questioned if !is_questioned => Vec::new(),
            BodySelection::Questioned | BodySelection::ActedOn => history.iter().filter(acted_on).collect(),
        }
    }
}
