//! The subject of an Event: a finding, without the parts that differ between repetitions.

use std::hash::{DefaultHasher, Hash, Hasher};

use interlock_engine::decision::{Decision, DecisionFinding, ObjectReference};
use interlock_engine::outcome::Verdict;
use interlock_engine::release::ReleaseRef;
use interlock_engine::review::Operation;
use interlock_engine::rule::{Mode, RuleId};
use interlock_engine::violation::Frozen;

/// A user's operation on an object, and the verdict of a rule. Equal keys belong to one series.
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
    /// A hash of the message without its numbers. The API server never changes the text of an Event, so another cause needs another Event.
    pub(super) cause: u64,
}

impl SeriesKey {
    /// The key of a finding. `None` for an undecided rule that did not deny: these have no Event.
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
            cause: cause(&finding.message),
        })
    }

    /// The namespace of the release, or of the object if no release is known. Empty for neither.
    pub(super) fn namespace(&self) -> &str {
        match (&self.release, &self.object) {
            (Some(release), _) => &release.namespace,
            (None, Some(object)) => &object.namespace,
            (None, None) => "",
        }
    }

    #[cfg(test)]
    pub(super) fn object_name(&self) -> String {
        self.object.as_ref().map(|object| object.name.clone()).unwrap_or_default()
    }
}

/// A hash of a message without its numbers. Ages, revisions and replica counts differ each time, but the cause is the same.
fn cause(message: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    message
        .split(|letter: char| letter.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .for_each(|part| part.hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_a_sentence_without_its_numbers() {
        let stuck = |age: &str| format!("revision 2, held by alice for {age}");
        assert_eq!(cause(&stuck("9 s")), cause(&stuck("14 s")));
        assert_ne!(cause(&stuck("9 s")), cause(&stuck("9 min")));
        assert_ne!(cause("spec.replicas"), cause("spec.template"));
    }
}
