//! The verdict on a finding. Metrics, annotations, Events and reports use the same word.

use std::fmt;
use std::str::FromStr;

use crate::rule::Mode;
use crate::violation::ViolationKind;

/// The verdict on a finding. The verdict on a review is the greatest verdict on its findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing was found.
    Allowed,
    /// The rule could not be evaluated, and the request was admitted.
    Undecided,
    /// The rule is broken, and the user was warned.
    Warned,
    /// The rule is broken, and the request was admitted silently. The mode `enforce` would have refused it.
    WouldDeny,
    /// The rule is broken, and an override opened it.
    Overridden,
    /// The request was refused.
    Denied,
}

/// A text that is not a verdict.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected allowed, undecided, warned, would-deny, overridden or denied")]
pub struct BadVerdict;

impl Verdict {
    const ALL: [Self; 6] =
        [Self::Allowed, Self::Undecided, Self::Warned, Self::WouldDeny, Self::Overridden, Self::Denied];

    /// The verdict on one finding.
    #[must_use]
    pub fn of(kind: ViolationKind, mode: Mode, refuses: bool, overridden: bool) -> Self {
        match mode {
            _ if refuses => Self::Denied,
            _ if overridden => Self::Overridden,
            _ if kind.is_undecided() => Self::Undecided,
            Mode::Warn => Self::Warned,
            Mode::Audit | Mode::Enforce | Mode::Off => Self::WouldDeny,
        }
    }

    /// The name in annotations, metrics and Events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Undecided => "undecided",
            Self::Warned => "warned",
            Self::WouldDeny => "would-deny",
            Self::Overridden => "overridden",
            Self::Denied => "denied",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for Verdict {
    type Err = BadVerdict;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|verdict| verdict.as_str() == text).ok_or(BadVerdict)
    }
}
