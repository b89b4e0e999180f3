//! The rule `foreign-edit-in-transition`.
//!
//! While this rule is off, [`super::manual_edit`] and its siblings judge the same requests.

use super::case::ObjectCase;
use super::conflict::OwnershipConflict;
use super::manual_edit::declared;
use crate::owners;
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, Refusal, Rule, Step, Way};
use crate::rules::undecided::Undecided;

/// The rule `foreign-edit-in-transition`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "foreign-edit-in-transition",
        owners: owners::OF_RELEASES,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::Never,
        requests: Requests { operations: &[Operation::Update, Operation::Delete], kinds: &[] },
        summary: "While an operation is in flight, the fields that the release declares change through it.",
        why: "The operation overwrites half of an edit that is made meanwhile, and `--wait` waits for a state that nobody \
              asked for.",
        allowed: "helm's own writes for alice during alice's upgrade, and those of its hook Jobs; drift correction by a manager.",
        refused: "`kubectl set image`, `scale` or `delete` by bob during that upgrade.",
        way_out: "Wait until the operation ends, then change the object through the release.",
        settings: &[],
    },
    checks: &[Check::Object(check)],
};

fn check(case: &ObjectCase<'_>) -> Checked {
    match case.conflict() {
        Ok(Some(conflict)) if conflict.in_flight => Ok(Some(refusal(case, conflict))),
        Err(need @ Undecided::Ask(_)) => Err(need),
        // An undecided result is reported once, by the rule over this kind of request.
        Ok(_) | Err(_) => Ok(None),
    }
}

fn refusal(case: &ObjectCase<'_>, conflict: &OwnershipConflict) -> Refusal {
    let declared = if conflict.fields.is_empty() {
        format!("it is declared by {}", conflict.declarer)
    } else {
        declared(conflict)
    };
    let sentence = format!("{} is managed by {}: {declared}.", case.subject(), conflict.owner);
    let wait = Way::from(Step::wait("wait until the operation ends"));
    // An uninstall leaves nothing to change.
    let wait = if conflict.uninstall.is_some() { wait } else { wait.then(conflict.through("change")) };
    let ways_out = case.or_exempt(wait);
    Refusal::new(sentence, ways_out).at_fields(&conflict.fields).about(conflict.release.clone())
}
