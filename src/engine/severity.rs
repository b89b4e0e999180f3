//! How much a finding matters.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How much a finding matters, in the words of the reports too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Legal, and worth knowing.
    Info,
    /// It has no effect yet.
    Low,
    /// The next operation may do something else than is meant.
    Medium,
    /// The next operation fails or does damage.
    High,
}

impl Severity {
    /// All of them, the worst first.
    pub const ALL: [Self; 4] = [Self::High, Self::Medium, Self::Low, Self::Info];

    /// As it is spelled.
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
