//! A violation with what the policy makes of it.

use super::verdict::Verdict;
use crate::engine::rule::Mode;
use crate::engine::violation::Violation;

/// A violation with what the policy makes of it.
#[derive(Debug, PartialEq, Eq)]
pub struct WeighedViolation {
    /// What a rule found.
    pub violation: Violation,
    /// The mode of that rule.
    pub mode: Mode,
    /// Whether this one refuses the request.
    pub refuses: bool,
}

impl WeighedViolation {
    /// What it came to.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict::of(self.violation.kind, self.mode, self.refuses, self.violation.overridden.is_some())
    }
}
