//! A rule with its checks, and the result of a check.

use super::declarations::case::DeclarationCase;
use super::objects::case::ObjectCase;
use super::records::case::RecordCase;
use super::undecided::Undecided;
use crate::json::FieldPath;
use crate::owners::rules::record_part::RecordPartCase;
use crate::policy::ActiveFreeze;
use crate::release::ReleaseRef;
use crate::rule::{RuleId, Specification};
use crate::violation::Frozen;
pub(crate) use crate::ways_out::{Step, StepKind, Way, WaysOut};

/// A rule: its specification and its checks.
pub struct Rule {
    pub(crate) specification: Specification,
    /// Usually one. A rule about several kinds of objects has one per kind.
    pub(crate) checks: &'static [Check],
}

impl Rule {
    /// The public name of the rule.
    pub const fn id(&'static self) -> RuleId {
        RuleId::of(&self.specification)
    }
}

/// How a rule checks one kind of request.
pub(crate) enum Check {
    Record(fn(&RecordCase<'_>) -> Checked),
    /// A part of a record that OLM stores in several Secrets.
    RecordPart(fn(&RecordPartCase<'_>) -> Checked),
    Object(fn(&ObjectCase<'_>) -> Checked),
    /// One write of a declaration can be wrong in several ways.
    Declaration(fn(&DeclarationCase<'_>) -> CheckedAll),
}

/// What a rule refuses, or why it is undecided.
pub(crate) type Checked = Result<Option<Refusal>, Undecided>;

/// Like [`Checked`], for a rule that can find several problems at once.
pub(crate) type CheckedAll = Result<Vec<Refusal>, Undecided>;

/// What a rule refuses and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) sentence: String,
    pub(crate) ways_out: WaysOut,
    pub(crate) pointers: Vec<String>,
    /// Set if the violation is about a different release than the request.
    pub(crate) release: Option<ReleaseRef>,
    /// Whether the rule only warns, even in mode `enforce`.
    pub(crate) is_advice: bool,
    /// The freeze that is the reason.
    pub(crate) frozen: Option<Frozen>,
}

impl Refusal {
    pub(crate) fn new(sentence: impl Into<String>, ways_out: impl Into<WaysOut>) -> Self {
        Self {
            sentence: sentence.into(),
            ways_out: ways_out.into(),
            pointers: Vec::new(),
            release: None,
            is_advice: false,
            frozen: None,
        }
    }

    /// Sets the release that the violation is about. Users must not be able to choose the release that their request is judged
    /// by.
    pub(crate) fn about(mut self, release: ReleaseRef) -> Self {
        self.release = Some(release);
        self
    }

    /// Sets the freeze that is the reason.
    pub(crate) fn in_freeze(mut self, active: ActiveFreeze<'_>) -> Self {
        self.frozen = Some(Frozen { name: active.freeze.name.clone(), until: active.until });
        self
    }

    /// Turns the refusal into a warning.
    pub(crate) fn into_advice(mut self) -> Self {
        self.is_advice = true;
        self
    }

    pub(crate) fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointers.push(pointer.into());
        self
    }

    pub(crate) fn at_fields(mut self, fields: &[FieldPath]) -> Self {
        self.pointers.extend(fields.iter().map(|field| field.pointer().to_string()));
        self
    }
}
