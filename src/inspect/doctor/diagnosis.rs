//! The result of one check.

use interlock_engine::severity::Severity;
use serde::Serialize;

/// All checks of an installation, in display order.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct DoctorReport {
    /// The version of this binary.
    pub version: &'static str,
    pub namespace: String,
    /// Whether any part of Interlock exists. If not, the checks cover the requirements of an installation.
    pub installed: bool,
    pub checks: Vec<Diagnosis>,
}

/// The result of one check. It contains names and settings of Interlock's own objects, and nothing else from the
/// content of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Diagnosis {
    /// The topic, for example `registration`.
    pub check: &'static str,
    pub state: DiagnosisState,
    pub evidence: String,
    /// Commands that fix a finding, or where to look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DiagnosisState {
    /// As expected.
    Ok,
    /// Different from the shipped manifests, possibly on purpose.
    Note,
    /// The check could not be evaluated.
    Skipped,
    /// Wrong.
    #[serde(untagged)]
    Finding(Severity),
}

impl DiagnosisState {
    /// The spelling in output and JSON.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Skipped => "skipped",
            Self::Finding(severity) => severity.as_str(),
        }
    }
}

impl DoctorReport {
    /// Whether a check found something wrong.
    #[must_use]
    pub(crate) fn has_findings(&self) -> bool {
        self.checks.iter().any(|check| matches!(check.state, DiagnosisState::Finding(_)))
    }
}

impl Diagnosis {
    pub(super) fn ok(check: &'static str, evidence: impl Into<String>) -> Self {
        Self { check, state: DiagnosisState::Ok, evidence: evidence.into(), fix: None }
    }

    pub(super) fn note(check: &'static str, evidence: impl Into<String>) -> Self {
        Self { check, state: DiagnosisState::Note, evidence: evidence.into(), fix: None }
    }

    pub(super) fn skipped(check: &'static str, why: impl Into<String>) -> Self {
        Self { check, state: DiagnosisState::Skipped, evidence: why.into(), fix: None }
    }

    pub(super) fn found(
        check: &'static str,
        severity: Severity,
        evidence: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { check, state: DiagnosisState::Finding(severity), evidence: evidence.into(), fix: Some(fix.into()) }
    }
}
