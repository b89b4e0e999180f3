//! A violation: a rule that a request breaks, or that could not be evaluated.

use std::mem::take;

use jiff::Timestamp;

use super::release::ReleaseRef;
use super::rule::RuleId;
use super::text::{MAX_LABEL_BYTES, MAX_NAME_BYTES, into_printable, printable};
use super::ways_out::WaysOut;

/// The longest sentence, in bytes. The longest ones name five releases and quote 300 characters of an error for each.
pub(crate) const MAX_SENTENCE_BYTES: usize = 3 * 1024;

/// The longest printed ways out, in bytes. The longest ones are 300 bytes and three names.
const MAX_WAYS_OUT_BYTES: usize = 1024;

/// The longest reason of an override, in bytes, as in an Event.
const MAX_REASON_BYTES: usize = 1024;

/// The longest ticket of an override, in bytes: more than the 200 ASCII characters that its definition allows, and less
/// than the parsed part of an Event's annotation.
const MAX_TICKET_BYTES: usize = 400;

/// The longest JSON pointer that is shown, in bytes.
const MAX_POINTER_BYTES: usize = 512;

/// The largest number of JSON pointers that are shown.
pub(crate) const MAX_POINTERS: usize = 20;

/// A rule that a request breaks, or that could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: RuleId,
    /// Whether the rule is broken or undecided.
    pub kind: ViolationKind,
    /// What is refused, the release and its state.
    pub sentence: String,
    pub ways_out: WaysOut,
    /// JSON pointers to the fields concerned, unchanged. To show them, use [`Self::shown_pointers`].
    pub pointers: Vec<String>,
    /// The release concerned, if known.
    pub release: Option<ReleaseRef>,
    /// The override that opens the rule to this request.
    pub overridden: Option<AppliedOverride>,
    /// The freeze in force, if a freeze is violated.
    pub frozen: Option<Frozen>,
}

impl Violation {
    /// The sentence for the user, with the ways out and the name of the rule.
    #[must_use]
    pub fn message(&self) -> String {
        self.shortened_message(MAX_SENTENCE_BYTES)
    }

    /// The same message with at most `sentence_bytes` bytes of the sentence.
    #[must_use]
    pub(crate) fn shortened_message(&self, sentence_bytes: usize) -> String {
        let ways_out = into_printable(self.ways_out.to_string(), MAX_WAYS_OUT_BYTES);
        let space = if ways_out.is_empty() { "" } else { " " };
        format!("{}{space}{ways_out} [{}]", printable(&self.sentence, sentence_bytes), self.rule)
    }

    /// The JSON pointers for people and logs: at most 20, printable and of bounded length.
    pub(crate) fn shown_pointers(&self) -> impl Iterator<Item = String> {
        self.pointers.iter().take(MAX_POINTERS).map(|pointer| printable(pointer, MAX_POINTER_BYTES).into_owned())
    }

    /// Makes every text printable and bounds its length. Rules quote text from clients.
    pub(crate) fn make_printable(&mut self) {
        limit(&mut self.sentence, MAX_SENTENCE_BYTES);
        self.ways_out.make_printable();
        if let Some(ReleaseRef { namespace, name }) = &mut self.release {
            limit(namespace, MAX_LABEL_BYTES);
            limit(name, MAX_NAME_BYTES);
        }
        if let Some(Frozen { name, .. }) = &mut self.frozen {
            limit(name, MAX_NAME_BYTES);
        }
        if let Some(AppliedOverride { name, reason, ticket, .. }) = &mut self.overridden {
            limit(name, MAX_LABEL_BYTES + "/".len() + MAX_NAME_BYTES);
            limit(reason, MAX_REASON_BYTES);
            if let Some(ticket) = ticket {
                limit(ticket, MAX_TICKET_BYTES);
            }
        }
    }
}

fn limit(text: &mut String, bytes: usize) {
    *text = into_printable(take(text), bytes);
}

/// Whether a rule is broken, or why it could not be evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ViolationKind {
    /// The rule is broken.
    Refused,
    /// The request is reported, and never refused: an enforced rule warns of it.
    Advice,
    /// The cluster gave no answer.
    Unavailable,
    /// The cluster gave no answer before the deadline of the review, or the review did not finish.
    Late,
    /// The request, or others of the same user, need more work than is available.
    Overloaded,
    /// An internal error of Interlock ended the review.
    Failed,
    /// The cluster answered, and the answer does not decide the rule.
    Unclear,
}

impl ViolationKind {
    /// Whether the rule could not be evaluated.
    #[must_use]
    pub fn is_undecided(self) -> bool {
        !matches!(self, Self::Refused | Self::Advice)
    }

    /// The spelling in annotations, metrics and the log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Advice => "advice",
            Self::Unavailable => "unavailable",
            Self::Late => "late",
            Self::Overloaded => "overloaded",
            Self::Failed => "failed",
            Self::Unclear => "unclear",
        }
    }
}

/// A freeze that keeps an operation from starting.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frozen {
    /// The name of the freeze.
    pub name: String,
    /// Its end; `None` if it does not end.
    pub until: Option<Timestamp>,
}

/// The override that opens a rule to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedOverride {
    /// The override's namespace and name.
    pub name: String,
    /// The reason, in the words of its creator.
    pub reason: String,
    /// The ticket of the override, if its creator named one.
    pub ticket: Option<String>,
    /// When the override closes.
    pub until: Timestamp,
}
