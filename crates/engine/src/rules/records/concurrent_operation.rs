//! The rule `concurrent-operation`.
//!
//! Helm looks for a pending record only in `upgrade`, only in its own process, and only in its driver's storage. A rollback over
//! an operation in flight, and an uninstall over its record, are also ways to recover from a dead operation. So
//! [`super::pending_recovery`] decides about them.
//!
//! nelm and werf ignore pending records on purpose, and use their own lease. While they hold a lease that has not expired, they
//! may create the record of another operation. Their uninstall marks the newest record, like Helm's.

use super::case::RecordCase;
use super::lease;
use super::pending_recovery::{go_on, minute, stuck_from};
use super::recovery::RecordCondition;
use super::standing::InFlight;
use crate::facts::{RecordVersion, RecordWrite};
use crate::owners;
use crate::release::status::Guard;
use crate::release::{Entry, Status};
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, Refusal, Rule, Step, Way, WaysOut};
use crate::rules::undecided::{Undecided, if_answered};
use crate::rules::wording;

/// The rule `concurrent-operation`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "concurrent-operation",
        owners: owners::OF_OPERATIONS,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        requests: Requests { operations: &[Operation::Create, Operation::Update], kinds: owners::KINDS_OF_OPERATIONS },
        summary: "No operation starts while another one holds the release.",
        why: "Helm looks for a running operation only in `upgrade`, only in its own process, and only with its own driver. Two \
              operations at once leave two records deployed.",
        allowed: "An upgrade to revision 6 while revision 5 is deployed or failed, or while it is in an uninstall that died and \
                  revision 4 is deployed.",
        refused: "The same upgrade while revision 5 is pending-upgrade, however old it is, or in an uninstall that may still run. \
                  Replacing or removing the operation of an Application while its sync runs.",
        way_out: "Wait for the operation that holds the release, or recover from it if it is dead: see pending-recovery.",
        settings: &[],
    },
    checks: &[Check::Record(check), Check::Declaration(owners::rules::conflicts_with_operation)],
};

pub(crate) fn check(case: &RecordCase<'_>) -> Checked {
    let starts = case.change.write().filter(|write| write.starts(case.facts.actor) && is_guarded(case, write));
    let Some(status) = starts.and_then(|write| write.after.status()) else {
        return Ok(None);
    };
    if case.policy.tools.contains(case.facts.actor.name) {
        return Ok(None);
    }
    match in_the_way(case, status)? {
        Some(_) if status.is_pending() && lease::is_held(case)? => Ok(None),
        Some(newest) => refusal(case, status, newest).map(Some),
        None => under_the_other_driver(case, status),
    }
}

/// Whether the transition table has a condition for the start of this operation.
fn is_guarded(case: &RecordCase<'_>, write: &RecordWrite<'_>) -> bool {
    let from = write.before.and_then(RecordVersion::status);
    case.policy.transitions.guard(from, write.after.status()) != Guard::Free
}

/// The record of the operation that a new one must wait for.
fn in_the_way<'c>(case: &RecordCase<'c>, status: Status) -> Result<Option<&'c Entry>, Undecided> {
    match status {
        Status::PendingInstall => case.in_flight(),
        Status::PendingUpgrade => Ok(match case.in_flight()? {
            Some(newest) if newest.status == Status::Uninstalling && starts_below(case, newest)? => None,
            newest => newest,
        }),
        // Helm uninstalls the newest record. A record created in the meantime may be in flight.
        Status::Uninstalling => Ok(case.in_flight()?.filter(|newest| newest.name != case.id.object)),
        _ => Ok(None),
    }
}

/// Whether an upgrade may start from the revision that is still deployed below an uninstall. The uninstall must be stuck, or the
/// actor must be allowed to resume it. Flux needs this if it was killed while it uninstalled a failed upgrade: it does not
/// uninstall again.
fn starts_below(case: &RecordCase<'_>, uninstall: &Entry) -> Result<bool, Undecided> {
    let mut below = case.history()?.below(uninstall.revision);
    let operation = InFlight::of_entry(uninstall);
    Ok(below.any(|entry| entry.status == Status::Deployed)
        && (case.is_stuck(&operation)? || case.resumes(&operation)?))
}

fn refusal(case: &RecordCase<'_>, status: Status, newest: &Entry) -> Result<Refusal, Undecided> {
    let operation = wording::operation(status);
    let sentence =
        format!("Cannot start the {operation} of {}: the release is {}.", case.subject(), case.state(newest));
    let stale = match case.is_stuck(&InFlight::of_entry(newest)) {
        // Only the way out depends on the result.
        Err(Undecided::Unavailable(_) | Undecided::Unclear { .. }) => false,
        stale => stale?,
    };
    let ways_out = if stale {
        let go_on = go_on(case, newest, RecordCondition::Unknown)?;
        WaysOut::default().note("That operation counts as stuck.").and(go_on)
    } else {
        let reason = ", so that it starts from the new state of the release";
        let again = case.words().run_again(status, reason);
        let wait = WaysOut::from(Way::from(Step::wait("wait until that operation ends")).then(again));
        // Only the text depends on the time.
        match if_answered(stuck_from(case, newest))? {
            Some(from) => wait.note(format!("That operation counts as stuck from {}.", minute(from))),
            None => wait,
        }
    };
    Ok(Refusal::new(sentence, ways_out))
}

/// The refusal if another operation on the same objects is in flight, with its records in Helm's other storage.
fn under_the_other_driver(case: &RecordCase<'_>, status: Status) -> Checked {
    let Some((storage, history)) = case.in_the_other_storage()? else {
        return Ok(None);
    };
    let Some(newest) = history.newest().filter(|newest| newest.status.is_in_flight()) else {
        return Ok(None);
    };
    let operation = InFlight::of_entry(newest);
    if case.is_stuck(&operation)? || case.resumes(&operation)? || lease::is_held(case)? {
        return Ok(None);
    }
    let sentence = format!(
        "Cannot start the {} of {}: a release of this name, with its records in {}s, is {}.",
        wording::operation(status),
        case.subject(),
        storage.kind(),
        case.state(newest)
    );
    let wait = Way::from(Step::wait("wait until that operation ends"));
    Ok(Some(Refusal::new(sentence, wait.then("use the driver of that release (HELM_DRIVER)"))))
}
