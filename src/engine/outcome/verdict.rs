//! What a finding came to, in one word for every place that tells of it.

use std::fmt;
use std::str::FromStr;

use crate::engine::rule::Mode;
use crate::engine::violation::ViolationKind;

/// What a finding came to; a review comes to the last of these that one of its findings did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing was found.
    Allowed,
    /// The rule could not be decided, and the request went on.
    Undecided,
    /// The rule is broken, and the user was warned.
    Warned,
    /// The rule is broken, and nobody was told: in mode `enforce` it would have been a denial.
    WouldDeny,
    /// The rule is broken, and an override let the request go on.
    Overridden,
    /// The request was refused.
    Denied,
}

/// A text that is no verdict.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected allowed, undecided, warned, would-deny, overridden or denied")]
pub struct BadVerdict;

impl Verdict {
    const ALL: [Self; 6] =
        [Self::Allowed, Self::Undecided, Self::Warned, Self::WouldDeny, Self::Overridden, Self::Denied];

    /// Of one finding.
    #[must_use]
    pub fn of(kind: ViolationKind, mode: Mode, refuses: bool, overridden: bool) -> Self {
        match mode {
            _ if refuses => Self::Denied,
            _ if overridden => Self::Overridden,
            _ if kind != ViolationKind::Refused => Self::Undecided,
            Mode::Warn => Self::Warned,
            Mode::Audit | Mode::Enforce | Mode::Off => Self::WouldDeny,
        }
    }

    /// As annotations, metrics and events name it.
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
