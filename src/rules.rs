//! The ordered table of rules, and the pure decision over it.

mod case;
mod concurrent_operation;
mod forged_stamp;
mod illegal_transition;
mod lease;
mod pending_recovery;
mod record_deletion;
mod record_integrity;
mod record_tampering;
mod revision_order;
mod runbook;
mod unusual_create;
mod wording;

use std::fmt;

use jiff::Timestamp;
use serde::Deserialize;

use crate::facts::{ActorKind, Facts, RecordChange};
use crate::policy::{Mode, Policy};
use crate::world::{Evidence, Query};
use case::{Case, Need};

/// The public name of a rule: policies, metrics and messages use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(usize)]
pub enum RuleId {
    /// No install or upgrade starts while another operation holds the release.
    ConcurrentOperation,
    /// Which way out of an operation in flight is open.
    PendingRecovery,
    /// A new record has a higher revision than every other one.
    RevisionOrder,
    /// A record comes to be in a pending status.
    UnusualCreate,
    /// A status changes only along edges that some client makes.
    IllegalTransition,
    /// Object name, labels and body of a record say the same.
    RecordIntegrity,
    /// What a record says of its release never changes.
    RecordTampering,
    /// The newest deployed record of a live release stays.
    RecordDeletion,
    /// The holder stamps are those that the mutating half wrote.
    ForgedStamp,
}

impl RuleId {
    /// Every rule, in the order in which they are evaluated and reported.
    pub const ALL: [Self; 9] = [
        Self::ConcurrentOperation,
        Self::PendingRecovery,
        Self::RevisionOrder,
        Self::UnusualCreate,
        Self::IllegalTransition,
        Self::RecordIntegrity,
        Self::RecordTampering,
        Self::RecordDeletion,
        Self::ForgedStamp,
    ];

    /// As policies and messages spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConcurrentOperation => "concurrent-operation",
            Self::PendingRecovery => "pending-recovery",
            Self::RevisionOrder => "revision-order",
            Self::UnusualCreate => "unusual-create",
            Self::IllegalTransition => "illegal-transition",
            Self::RecordIntegrity => "record-integrity",
            Self::RecordTampering => "record-tampering",
            Self::RecordDeletion => "record-deletion",
            Self::ForgedStamp => "forged-stamp",
        }
    }

    fn check(self, case: &Case<'_>) -> Finding {
        match self {
            Self::ConcurrentOperation => concurrent_operation::check(case),
            Self::PendingRecovery => pending_recovery::check(case),
            Self::RevisionOrder => revision_order::check(case),
            Self::UnusualCreate => unusual_create::check(case),
            Self::IllegalTransition => illegal_transition::check(case),
            Self::RecordIntegrity => record_integrity::check(case),
            Self::RecordTampering => record_tampering::check(case),
            Self::RecordDeletion => record_deletion::check(case),
            Self::ForgedStamp => forged_stamp::check(case),
        }
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// What a rule says of a request: nothing, what is wrong, or what it still needs.
type Finding = Result<Option<Refusal>, Need>;

/// What is wrong, before the rule's name is put to it.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    sentence: String,
    way_out: String,
    pointers: Vec<String>,
}

impl Refusal {
    fn new(sentence: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), way_out: way_out.into(), pointers: Vec::new() }
    }

    fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointers.push(pointer.into());
        self
    }
}

/// A rule that a request breaks, or that could not be decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub rule: RuleId,
    /// Broken or undecided.
    pub kind: Kind,
    /// What was refused, the release and its state.
    pub sentence: String,
    /// What to do about it.
    pub way_out: String,
    /// The places in the object that are concerned.
    pub pointers: Vec<String>,
}

impl Violation {
    /// The sentence for the user, with the way out and the rule's name.
    #[must_use]
    pub fn message(&self) -> String {
        format!("{} {} [{}]", self.sentence, self.way_out, self.rule)
    }
}

/// Whether a rule is broken or could not be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The rule is broken.
    Refused,
    /// The rule could not learn what it needs.
    Undecided,
}

/// The next step of a decision.
#[derive(Debug)]
pub enum Step {
    /// A rule needs to know this; decide again with the answer.
    Ask(Query),
    /// The rules have spoken.
    Done(Vec<Violation>),
}

/// Judges a request. Pure: the same arguments give the same step.
#[must_use]
pub fn decide(facts: &Facts<'_>, policy: &Policy, evidence: &Evidence, now: Timestamp) -> Step {
    let Some((target, change)) = &facts.record else {
        return Step::Done(Vec::new());
    };
    if facts.actor.kind == ActorKind::ControlPlane {
        return Step::Done(Vec::new());
    }
    let case = Case { facts, target, change, policy, evidence, now };
    let mut violations = Vec::new();
    for rule in RuleId::ALL {
        if policy.rule(rule).mode == Mode::Off {
            continue;
        }
        match rule.check(&case) {
            Ok(None) => {}
            Ok(Some(refusal)) => violations.push(Violation {
                rule,
                kind: Kind::Refused,
                sentence: refusal.sentence,
                way_out: refusal.way_out,
                pointers: refusal.pointers,
            }),
            Err(Need::Ask(query)) => return Step::Ask(query),
            Err(Need::Unavailable(why)) => violations.push(Violation {
                rule,
                kind: Kind::Undecided,
                sentence: format!("{} could not be judged: {why}.", case.subject()),
                way_out: "Try again once the API server answers.".to_owned(),
                pointers: Vec::new(),
            }),
        }
    }
    if !violations.is_empty() && matches!(change, RecordChange::Deleted(_)) {
        // A namespace on its way out takes its records along; nothing that is asked of it then is ours to refuse.
        match case.terminating() {
            Ok(true) => violations.clear(),
            Ok(false) | Err(Need::Unavailable(_)) => {}
            Err(Need::Ask(query)) => return Step::Ask(query),
        }
    }
    Step::Done(violations)
}

#[cfg(test)]
mod tests;
