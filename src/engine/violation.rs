//! What is wrong with a request: a rule that it breaks, or that could not be evaluated.

use jiff::Timestamp;

use super::release::ReleaseRef;
use super::rule::RuleId;

/// A rule that a request breaks, or that could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: RuleId,
    /// Whether it is broken or undecided.
    pub kind: ViolationKind,
    /// What is refused, the release and its state.
    pub sentence: String,
    pub way_out: String,
    /// JSON pointers to the fields concerned.
    pub pointers: Vec<String>,
    /// The release concerned, if one is known.
    pub release: Option<ReleaseRef>,
    /// The override that opens the rule to this request.
    pub overridden: Option<Relief>,
}

impl Violation {
    /// The sentence for the user, with the way out and the name of the rule.
    #[must_use]
    pub fn message(&self) -> String {
        format!("{} {} [{}]", self.sentence, self.way_out, self.rule)
    }
}

/// Whether a rule is broken, or why it could not be evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ViolationKind {
    /// The rule is broken.
    Refused,
    /// The cluster gave no answer.
    Unavailable,
    /// The cluster gave no answer before the deadline of the review.
    Late,
    /// There was no memory to read the record.
    Overloaded,
    /// The cluster answered, and the answer does not decide the rule.
    Unclear,
}

impl ViolationKind {
    /// As annotations, metrics and the log spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::Late => "late",
            Self::Overloaded => "overloaded",
            Self::Unclear => "unclear",
        }
    }
}

/// The override that opens a rule to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relief {
    /// The override's namespace and name.
    pub name: String,
    /// Why it was created, in the words of its creator.
    pub reason: String,
    /// When it closes.
    pub until: Timestamp,
}
