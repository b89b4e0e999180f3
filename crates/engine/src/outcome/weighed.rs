//! A violation weighed by the policy.

use super::verdict::Verdict;
use crate::rule::Mode;
use crate::violation::Violation;

/// A violation with the mode of its rule.
#[derive(Debug, PartialEq, Eq)]
pub struct WeighedViolation {
    pub violation: Violation,
    pub mode: Mode,
    /// Whether this violation refuses the request.
    pub refuses: bool,
}

impl WeighedViolation {
    /// The verdict on this violation.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict::of(self.violation.kind, self.mode, self.refuses, self.violation.overridden.is_some())
    }
}
