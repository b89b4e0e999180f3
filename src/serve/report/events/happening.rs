//! What an Event is about: a finding, without what differs from one time to the next.

use crate::engine::decision::{Decision, DecisionFinding, ObjectReference};
use crate::engine::outcome::Verdict;
use crate::engine::policy::Mode;
use crate::engine::release::ReleaseRef;
use crate::engine::review::Operation;
use crate::engine::rules::RuleId;

/// Somebody does something to an object that a rule has something to say of. Equal ones are one series.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Happening {
    pub(super) rule: RuleId,
    pub(super) mode: Mode,
    pub(super) verdict: Verdict,
    pub(super) operation: Operation,
    pub(super) actor: String,
    pub(super) release: Option<ReleaseRef>,
    pub(super) object: Option<ObjectReference>,
    pub(super) object_uid: String,
    pub(super) overridden: Option<String>,
}

impl Happening {
    /// Of a finding; `None` for one that is not worth an Event: what could not be decided and did not hold anybody up.
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
        })
    }

    #[cfg(test)]
    pub(super) fn object_name(&self) -> String {
        self.object.as_ref().map(|object| object.name.clone()).unwrap_or_default()
    }
}
