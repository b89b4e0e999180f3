//! The importance of a finding.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The importance of a finding. OpenReports uses the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Legal, but worth knowing.
    Info,
    /// No effect yet.
    Low,
    /// The next operation may do something unintended.
    Medium,
    /// The next operation fails or does damage.
    High,
}

impl Severity {
    /// All severities, the worst first.
    pub const ALL: [Self; 4] = [Self::High, Self::Medium, Self::Low, Self::Info];

    /// The spelling in output and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
