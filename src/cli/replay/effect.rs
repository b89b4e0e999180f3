//! The effect of a rule on a request.

use comfy_table::{Cell, Color};

use crate::cli::table;
use crate::offline::replay::{Replayed, ReplayedViolation};

/// The effect of one rule on a request, the most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Effect {
    Denied,
    Warned,
    Audited,
    Undecided,
}

impl Effect {
    pub(super) const ALL: [Self; 4] = [Self::Denied, Self::Warned, Self::Audited, Self::Undecided];

    pub(super) fn of(violation: &ReplayedViolation) -> Self {
        match violation.mode {
            _ if violation.refuses => Self::Denied,
            _ if violation.undecided => Self::Undecided,
            "audit" => Self::Audited,
            _ => Self::Warned,
        }
    }

    /// The violation with the most severe effect, and that effect. `None` if no rule is broken.
    pub(super) fn worst(replayed: &Replayed) -> Option<(Self, &ReplayedViolation)> {
        replayed.violations.iter().map(|it| (Self::of(it), it)).min_by_key(|(effect, _)| *effect)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Warned => "warned",
            Self::Audited => "audited",
            Self::Undecided => "undecided",
        }
    }

    pub(super) fn cell(self) -> Cell {
        match self {
            Self::Denied => table::verdict(false),
            Self::Warned => Cell::new(self.as_str()).fg(Color::Yellow),
            Self::Audited | Self::Undecided => Cell::new(self.as_str()),
        }
    }
}
