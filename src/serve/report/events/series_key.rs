//! What an Event is about: a finding, without what differs between repetitions.

use crate::engine::decision::{Decision, DecisionFinding, ObjectReference};
use crate::engine::outcome::Verdict;
use crate::engine::release::ReleaseRef;
use crate::engine::review::Operation;
use crate::engine::rule::{Mode, RuleId};
use crate::engine::violation::Frozen;

/// A user's operation on an object, as a rule judged it. Equal keys are one series.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SeriesKey {
    pub(super) rule: RuleId,
    pub(super) mode: Mode,
    pub(super) verdict: Verdict,
    pub(super) operation: Operation,
    pub(super) actor: String,
    pub(super) release: Option<ReleaseRef>,
    pub(super) object: Option<ObjectReference>,
    pub(super) object_uid: String,
    pub(super) overridden: Option<String>,
    /// The ticket of that override.
    pub(super) ticket: Option<String>,
    pub(super) frozen: Option<Frozen>,
}

impl SeriesKey {
    /// The key of a finding; `None` for an undecided rule that did not deny, which gets no Event.
    pub(super) fn of(decision: &Decision, finding: &DecisionFinding) -> Option<Self> {
        let verdict = finding.verdict();
        (verdict > Verdict::Undecided).then(|| Self {
            rule: finding.rule,
            mode: finding.mode,
            verdict,
            operation: decision.operation,
            actor: decision.user.clone(),
            release: decision.release.clone(),
            object: decision.object.clone(),
            object_uid: decision.object_uid.clone(),
            overridden: finding.overridden.clone(),
            ticket: finding.ticket.clone(),
            frozen: finding.frozen.clone(),
        })
    }

    /// The namespace of the release, or of the object if no release is known; empty for neither.
    pub(super) fn namespace(&self) -> &str {
        let of_object = || self.object.as_ref().map(|object| object.namespace.as_str());
        self.release.as_ref().map(|release| release.namespace.as_str()).or_else(of_object).unwrap_or_default()
    }

    #[cfg(test)]
    pub(super) fn object_name(&self) -> String {
        self.object.as_ref().map(|object| object.name.clone()).unwrap_or_default()
    }
}
