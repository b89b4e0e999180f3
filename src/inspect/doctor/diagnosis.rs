//! What one check came to.

use serde::Serialize;

use crate::engine::severity::Severity;

/// All checks of an installation, in the order in which they are read.
#[derive(Debug, Clone, Serialize)]
pub struct DoctorReport {
    /// Of this binary.
    pub version: &'static str,
    /// Interlock's own namespace.
    pub namespace: String,
    /// What was looked at.
    pub checks: Vec<Diagnosis>,
}

/// One thing that was looked at. Nothing that an object contains is in it, names and settings of our own objects apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// What it is about, one of few words.
    pub check: &'static str,
    /// How it stands.
    pub state: DiagnosisState,
    /// What was seen.
    pub evidence: String,
    /// What to do about it: commands, or where to look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// How it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiagnosisState {
    /// As it should be.
    Ok,
    /// Different from what is shipped, as somebody may want it.
    Note,
    /// Could not be looked at.
    Skipped,
    /// Wrong.
    #[serde(untagged)]
    Finding(Severity),
}

impl DiagnosisState {
    /// As it is printed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Skipped => "skipped",
            Self::Finding(severity) => severity.as_str(),
        }
    }
}

impl DoctorReport {
    /// Whether anything is wrong.
    #[must_use]
    pub fn has_findings(&self) -> bool {
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
