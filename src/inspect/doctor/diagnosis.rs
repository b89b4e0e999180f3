//! The results of checks.

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
    pub checks: Vec<Check>,
}

/// A diagnosis and its topic.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Check {
    /// For example `registration`.
    #[serde(rename = "check")]
    pub topic: &'static str,
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
}

/// What a check shows. It contains names and settings of Interlock's own objects, and nothing else from the content of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Diagnosis {
    pub state: DiagnosisState,
    pub evidence: String,
    /// Commands that fix a finding, or where to look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// The diagnosis of a check, or several, or why the check cannot be evaluated.
pub(super) type Checked<D = Diagnosis> = Result<D, String>;

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
    pub(super) fn new(namespace: &str, installed: bool) -> Self {
        Self { version: env!("CARGO_PKG_VERSION"), namespace: namespace.to_owned(), installed, checks: Vec::new() }
    }

    /// Adds the result of a check.
    pub(super) fn add(&mut self, topic: &'static str, found: Checked<impl IntoIterator<Item = Diagnosis>>) {
        match found {
            Ok(found) => self.checks.extend(found.into_iter().map(|diagnosis| Check { topic, diagnosis })),
            Err(why) => self.checks.push(Check { topic, diagnosis: Diagnosis::skipped(why) }),
        }
    }

    /// Whether a check found something wrong.
    #[must_use]
    pub(crate) fn has_findings(&self) -> bool {
        self.checks.iter().any(|check| matches!(check.diagnosis.state, DiagnosisState::Finding(_)))
    }
}

impl Diagnosis {
    pub(super) fn ok(evidence: impl Into<String>) -> Self {
        Self { state: DiagnosisState::Ok, evidence: evidence.into(), fix: None }
    }

    pub(super) fn note(evidence: impl Into<String>) -> Self {
        Self { state: DiagnosisState::Note, evidence: evidence.into(), fix: None }
    }

    pub(super) fn skipped(why: impl Into<String>) -> Self {
        Self { state: DiagnosisState::Skipped, evidence: why.into(), fix: None }
    }

    pub(super) fn found(severity: Severity, evidence: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { state: DiagnosisState::Finding(severity), evidence: evidence.into(), fix: Some(fix.into()) }
    }
}

/// For checks with exactly one diagnosis.
impl IntoIterator for Diagnosis {
    type Item = Self;
    type IntoIter = std::iter::Once<Self>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self)
    }
}
