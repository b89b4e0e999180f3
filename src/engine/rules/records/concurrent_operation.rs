//! The rule `concurrent-operation`.
//!
//! Helm looks for a pending record only in `upgrade`, and only in its own process. A rollback over an operation in flight is left
//! to [`super::pending_recovery`], because it is also the official way out of a dead one.
//!
//! nelm and werf ignore pending records on purpose and rely on a lease of their own: while they hold one that has not expired, the
//! rule allows the operation.

use super::case::RecordCase;
use super::lease;
use crate::engine::facts::RecordChange;
use crate::engine::release::Status;
use crate::engine::rule::{FORBIDDEN, FailsClosed, Mode, Specification};
use crate::engine::rules::check::{Check, Checked, Refusal, Rule};
use crate::engine::rules::undecided::Undecided;
use crate::engine::rules::wording;

/// The rule `concurrent-operation`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "concurrent-operation",
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        summary: "No install or upgrade starts while another operation holds the release.",
        why: "Helm looks for a running operation only in `upgrade`, and only in its own process. Two operations at once \
              leave two records deployed.",
        allowed: "An upgrade to revision 6 while revision 5 is deployed or failed.",
        refused: "The same upgrade while revision 5 is pending-upgrade or uninstalling, however old it is.",
        way_out: "Wait for the operation that holds the release, or recover from it if it is dead: see pending-recovery.",
        settings: &[],
    },
    checks: &[Check::Record(check)],
};

pub(crate) fn check(case: &RecordCase<'_>) -> Checked {
    let RecordChange::Created(side) = case.change else {
        return Ok(None);
    };
    let Some(status @ (Status::PendingInstall | Status::PendingUpgrade)) = side.status() else {
        return Ok(None);
    };
    if case.policy.tools.contains(case.facts.actor.name) {
        return Ok(None);
    }
    let Some(newest) = case.in_flight()? else { return Ok(None) };
    if lease::is_held(case)? {
        return Ok(None);
    }
    let operation = wording::operation(status);
    let sentence =
        format!("Cannot start the {operation} of {}: the release is {}.", case.subject(), case.state(newest));
    let stale = match case.is_stale(newest.started(), newest.stamps.holder()) {
        // Only the way out depends on it.
        Err(Undecided::Unavailable(_) | Undecided::Unclear { .. }) => false,
        stale => stale?,
    };
    let way_out = if stale {
        let ways = if case.policy.recovery.closes_rollback() { "Check" } else { "Roll back; or check" };
        format!(
            "That operation counts as stuck. {ways} the workloads, delete only the record {} with kubectl, and run the \
             {operation} again.",
            newest.name
        )
    } else {
        format!(
            "Wait until that operation ends. Then run the {operation} again, so that it starts from the new state of the \
             release."
        )
    };
    Ok(Some(Refusal::new(sentence, way_out)))
}
