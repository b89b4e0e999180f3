//! The result of a review, by the strictest rule that is broken.

use serde::Deserialize;

use super::Replayed;

/// The result of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReviewResult {
    /// No rule is broken.
    Allowed,
    /// A rule in mode audit is broken; the user does not see it.
    Audited,
    /// The request is admitted with a warning.
    Warned,
    /// The request is refused.
    Denied,
}

impl ReviewResult {
    pub(crate) fn of(replayed: &Replayed) -> Self {
        match replayed {
            Replayed { allowed: false, .. } => Self::Denied,
            Replayed { warnings, .. } if !warnings.is_empty() => Self::Warned,
            Replayed { violations, .. } if !violations.is_empty() => Self::Audited,
            _ => Self::Allowed,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Audited => "audited",
            Self::Warned => "warned",
            Self::Denied => "denied",
        }
    }
}
