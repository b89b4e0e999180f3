//! What a scan tells.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::Finding;
use crate::engine::severity::Severity;

/// The findings that are kept, at most: more are counted alone.
const MAX_FINDINGS: usize = 50_000;

/// What was found, and what was looked at for it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScanReport {
    /// Which cluster, by the address of its API server.
    pub cluster: String,
    /// When the scan began.
    pub time: Timestamp,
    /// The namespace that was looked at; all of them where there is none.
    pub namespace: Option<String>,
    /// Releases that have records.
    pub releases: usize,
    /// Records, by their metadata.
    pub records: usize,
    /// Bodies of records that were read.
    pub bodies: usize,
    /// Managed objects that were compared with their manifests.
    pub objects: usize,
    /// Calls of the API server.
    pub calls: u64,
    /// How long it took, in seconds.
    pub took_seconds: f64,
    /// The most memory that this process has had resident, in bytes; unknown outside of Linux.
    pub peak_memory_bytes: Option<u64>,
    /// What was looked at. Kinds that are not installed are not named.
    pub looked_at: Vec<String>,
    /// What was not, or not wholly, and why.
    pub not_looked_at: Vec<Gap>,
    /// How many findings of each severity there are.
    pub counts: BTreeMap<Severity, usize>,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
    /// Findings beyond the 50,000 that are kept.
    pub left_out: usize,
}

/// Something that could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// What.
    pub what: String,
    /// How often; 1 for a part as a whole.
    pub times: usize,
    /// Why, the first time.
    pub why: String,
}

impl ScanReport {
    /// Whether everything was looked at and is told: what a whole report does not say is not so.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.not_looked_at.is_empty() && self.left_out == 0
    }

    /// The severity of the worst finding.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.first().map(Finding::severity)
    }

    /// How many findings of a severity there are.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.counts.get(&severity).copied().unwrap_or_default()
    }

    /// Takes in all the findings.
    pub(super) fn take(&mut self, mut findings: Vec<Finding>) {
        let rank = |finding: &Finding| {
            let object = finding.object.as_ref();
            let object = object.map(|object| (object.namespace.clone(), object.kind.clone(), object.name.clone()));
            (finding.kind, finding.namespace().to_owned(), finding.name().to_owned(), object)
        };
        findings.sort_by_cached_key(rank);
        for finding in &findings {
            *self.counts.entry(finding.severity()).or_default() += 1;
        }
        self.left_out = findings.len().saturating_sub(MAX_FINDINGS);
        findings.truncate(MAX_FINDINGS);
        self.findings = findings;
    }
}

/// The most memory that this process has had resident, in bytes.
pub(super) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
