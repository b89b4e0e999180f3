//! The report of a scan.

use std::collections::BTreeMap;

use interlock_engine::severity::Severity;
use jiff::Timestamp;
use serde::Serialize;

use super::{Finding, FindingKind};

/// The maximum number of findings in a report; further ones are only counted.
const MAX_FINDINGS: usize = 50_000;

/// The findings, and what was scanned.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScanReport {
    /// The address of the API server.
    pub cluster: String,
    /// The source of the policies.
    pub policy: String,
    /// The start of the scan.
    pub time: Timestamp,
    /// `None` for all namespaces.
    pub namespace: Option<String>,
    pub releases: usize,
    pub records: usize,
    /// Bodies that were read.
    pub bodies: usize,
    /// Objects that were compared with their manifests.
    pub objects: usize,
    /// Calls of the API server.
    pub calls: u64,
    pub took_seconds: f64,
    /// The most memory that this process has had resident, in bytes; unknown outside of Linux.
    pub peak_memory_bytes: Option<u64>,
    /// What was scanned, without kinds that are not installed.
    pub looked_at: Vec<String>,
    /// What could not be scanned, or not completely, and why.
    pub not_looked_at: Vec<Gap>,
    pub counts: BTreeMap<Severity, usize>,
    /// Most severe first.
    pub findings: Vec<Finding>,
    /// The number of findings beyond the maximum of 50,000.
    pub left_out: usize,
}

/// A part that could not be scanned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// The part.
    pub what: String,
    /// The number of times.
    pub times: usize,
    /// The first reason why.
    pub why: String,
}

impl Gap {
    pub(crate) fn new(what: &str, why: String) -> Self {
        Self { what: what.to_owned(), times: 1, why }
    }
}

impl ScanReport {
    /// Whether everything was scanned and every finding is listed, so that a missing finding means no problem.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.not_looked_at.is_empty() && self.left_out == 0
    }

    /// The highest severity.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.first().map(Finding::severity)
    }

    /// How many findings of a severity there are.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.counts.get(&severity).copied().unwrap_or_default()
    }

    /// Adds all findings.
    pub(super) fn take(&mut self, mut findings: Vec<Finding>) {
        findings.sort_by_cached_key(sort_key);
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

/// The order of findings: by kind, then by release, then by object.
fn sort_key(finding: &Finding) -> (FindingKind, String, String, Option<(String, String, String)>) {
    let object = finding.object.as_ref();
    let object = object.map(|object| (object.namespace.clone(), object.kind.clone(), object.name.clone()));
    (finding.kind, finding.namespace().to_owned(), finding.name().to_owned(), object)
}
