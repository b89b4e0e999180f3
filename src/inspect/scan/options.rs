//! What a scan covers, and its progress.

use interlock_engine::release::{Entry, History, Status};

use crate::world::kubernetes::Reach;

/// What a scan covers.
#[derive(Debug, Clone, Default)]
pub struct ScanOptions {
    /// The name of the cluster in the report.
    pub cluster: String,
    /// The source of the policies, for the report.
    pub policy: String,
    /// The namespace to scan; `None` for all within reach.
    pub namespace: Option<String>,
    /// The namespaces that may be read, including those whose objects refer to the scanned one.
    pub reach: Reach,
    /// Which bodies are read.
    pub bodies: BodySelection,
    /// Whether to compare the objects of deployed releases with their manifests, at one read per object. Releases of
    /// OLM are excluded: OLM repairs its objects by itself.
    pub drift: bool,
}

/// Which bodies of records are read. The metadata of all records are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BodySelection {
    /// The newest and the deployed records of releases with a finding in their metadata.
    Questioned,
    /// The newest and the deployed records of every release, because helm uses these.
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

/// The progress of the examination of releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanProgress {
    /// Examined releases.
    pub done: usize,
    /// Releases to examine.
    pub total: usize,
}

impl ScanOptions {
    /// The records whose bodies are read.
    pub(super) fn wanted<'h>(&self, history: &'h History, is_questioned: bool) -> Vec<&'h Entry> {
        let newest = history.newest().map(|newest| newest.revision);
        match self.bodies {
            BodySelection::All => history.iter().collect(),
            BodySelection::Questioned if !is_questioned => Vec::new(),
            BodySelection::Questioned | BodySelection::ActedOn => history
                .iter()
                .filter(|entry| Some(entry.revision) == newest || entry.status == Status::Deployed)
                .collect(),
        }
    }
}
