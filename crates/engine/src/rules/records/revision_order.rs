//! The rule `revision-order`.
//!
//! A new revision must be higher than the highest one, but need not be the next one. Pruning with a small limit leaves gaps.
//! After the deletion of the newest record, Helm uses its number again.

use super::case::RecordCase;
use super::unreadable;
use crate::facts::RecordChange;
use crate::owners;
use crate::release::Status;
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, Refusal, Rule};

/// The rule `revision-order`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "revision-order",
        owners: owners::OF_RECORDS,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        requests: Requests { operations: &[Operation::Create, Operation::Update], kinds: &[] },
        summary: "A new record has a higher revision than every other record of its release.",
        why: "Helm takes the highest revision for the newest. A lower one was computed from a history that has changed \
              since.",
        allowed: "Revision 7 after revisions 3 to 6; revision 9 after revisions 7 and 8 were pruned.",
        refused: "Revision 5 while revision 6 exists.",
        way_out: "Run the operation again, so that it reads the current history.",
        settings: &[],
    },
    checks: &[Check::Record(check)],
};

/// The most revisions that a client skips. Clients write the next one; others may have been deleted since they read the history. Helm
/// counts to 2,147,483,647.
const MOST_SKIPPED: u64 = 1_000;

pub(crate) fn check(case: &RecordCase<'_>) -> Checked {
    let (RecordChange::Created(side), Some(revision)) = (case.change, case.id.revision) else {
        return Ok(None);
    };
    if case.policy.tools.contains(case.facts.actor.name) {
        return Ok(None);
    }
    let newest = case.history()?.newest();
    if revision.0 > newest.map_or(0, |newest| newest.revision.0) + MOST_SKIPPED {
        let sentence = format!(
            "Cannot create the record of {}: it skips more than {MOST_SKIPPED} revisions, and none may be left for those that follow.",
            case.subject()
        );
        return Ok(Some(Refusal::new(sentence, case.words().look()).at("/metadata/name")));
    }
    let Some(newest) = newest.filter(|newest| newest.revision >= revision) else { return Ok(None) };
    if let Some(refusal) = unreadable::passed_over(case, newest, "create the record")? {
        return Ok(Some(refusal));
    }
    let sentence =
        format!("Cannot create the record of {}: the newest record is {}.", case.subject(), case.state(newest));
    let status = side.status().unwrap_or(Status::Unknown);
    let again = case.words().run_again(status, ", so that it starts from the newest revision");
    Ok(Some(Refusal::new(sentence, again).at("/metadata/name")))
}
