//! The rule `pending-recovery`.
//!
//! Many writes end an operation: unlocking or promoting its record, uninstalling over it, marking it as uninstalled, deleting its
//! record, rolling back over it. All use the same check, [`super::standing`]. Flux unlocks the record of a running helm within
//! seconds, and waits if the unlock is refused. Deleting a stuck pending record also requires the checks of the runbook, except
//! for its holder. The policy decides about *rollbacks*.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::case::RecordCase;
use super::recovery::{RecordCondition, StuckOperation};
use super::standing::InFlight;
use super::{lease, runbook};
use crate::facts::{RecordChange, RecordVersion};
use crate::owners;
use crate::owners::goes_on_at_once;
use crate::policy::AllowRollback;
use crate::release::status::{Guard, State};
use crate::release::{Entry, Status};
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, Refusal, Rule, Step, Way, WaysOut};
use crate::rules::undecided::{Undecided, if_answered};
use crate::rules::wording;

/// The rule `pending-recovery`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "pending-recovery",
        owners: owners::OF_RELEASES,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        requests: Requests { operations: &[Operation::Create, Operation::Update, Operation::Delete], kinds: &[] },
        summary: "An operation in flight is ended by its holder, by a program that goes on with it, or by others once it counts as stuck.",
        why: "An operation that looks stuck may still run. Unlocking, promoting or deleting its record, or rolling back or \
              uninstalling over it, then leaves two records deployed, or a release without its objects.",
        allowed: "A rollback over an upgrade that has been pending for longer than staleAfter; a controller that goes on with its \
                  own operation after a restart; `helm uninstall` by a second person after the first one died.",
        refused: "`helm rollback` or `helm uninstall` by bob over an upgrade that alice started 12 s ago; `kubectl delete secret` \
                  of its record.",
        way_out: "Wait until the operation ends, or until it is older than staleAfter by the clock of the API server.",
        settings: &["staleAfter", "maxPatience", "rollback", "rollForwardOnly"],
    },
    checks: &[Check::Record(check)],
};

pub(crate) fn check(case: &RecordCase<'_>) -> Checked {
    let guard = |from: State, to: State| case.policy.transitions.guard(from, to);
    match case.change {
        RecordChange::Created(side) if side.status() == Some(Status::PendingRollback) => {
            if guard(None, side.status()) == Guard::NothingInFlight { rollback(case) } else { Ok(None) }
        }
        RecordChange::Updated { before, after, same_payload: false, .. }
            if guard(before.status(), after.status()) == Guard::Unlock =>
        {
            end(case, before, Some(after))
        }
        RecordChange::Deleted(side) if guard(side.label_status(), None) == Guard::Unlock => {
            let is_pending = side.label_status().is_some_and(Status::is_pending);
            if is_pending { delete(case, side) } else { end(case, side, None) }
        }
        _ => Ok(None),
    }
}

fn rollback(case: &RecordCase<'_>) -> Checked {
    if case.policy.tools.contains(case.facts.actor.name) {
        return Ok(None);
    }
    let recovery = &case.policy.recovery;
    let Some(newest) = case.history()?.newest() else {
        return Ok(None);
    };
    let refused = |why: &str, ways_out: WaysOut| {
        let act = case.words().roll_back();
        let sentence = format!("Cannot {act} {}: the release is {}{why}.", case.subject(), case.state(newest));
        Ok(Some(Refusal::new(sentence, ways_out)))
    };
    if newest.status == Status::Failed && recovery.roll_forward_only && case.facts.actor.is_person_on_records() {
        let forward = case.words().go_forward();
        return refused(", and the policy allows only rolling forward (rollForwardOnly)", forward);
    }
    if !newest.status.is_in_flight() {
        return Ok(None);
    }
    let operation = InFlight::of_entry(newest);
    let way = if recovery.roll_forward_only { AllowRollback::Never } else { recovery.rollback };
    let open = match way {
        AllowRollback::Always => true,
        AllowRollback::WhenStale => case.is_stuck(&operation)? || case.resumes(&operation)?,
        AllowRollback::Never => false,
    };
    if open || case.in_flight()?.is_none() || lease::is_held(case)? {
        return Ok(None);
    }
    let wait = WaysOut::from(Step::wait("wait until the operation ends"));
    let has_commands = case.words().has_commands();
    let is_closed = has_commands && matches!(way, AllowRollback::Never);
    if has_commands && !is_closed {
        let retry = once_stale(case, &operation, "you can roll back")?;
        return refused("", wait.when("if it does not end", retry));
    }
    let why = if is_closed { ", and the policy allows no rollback over an operation in flight" } else { "" };
    let go_on = go_on(case, newest, RecordCondition::Unknown)?;
    refused(why, wait.when("once it counts as stuck", go_on))
}

/// The next step for a stuck operation, the same as in `interlock status`.
pub(super) fn go_on(case: &RecordCase<'_>, newest: &Entry, condition: RecordCondition) -> Result<Way, Undecided> {
    let driver = if_answered(case.driven(&newest.stamps).at_work(case.evidence, case.policy))?;
    let (words, history, settings) = (case.words(), case.history()?, &case.policy.recovery);
    let is_live_in_sibling = history.newest_deployed().is_none() && is_live_in_sibling(case)?;
    let stuck =
        StuckOperation { words, history, newest, settings, condition, is_opened: false, is_live_in_sibling, driver };
    Ok(stuck.way_on().way(&stuck))
}

/// Whether the release is live in Helm's other storage.
fn is_live_in_sibling(case: &RecordCase<'_>) -> Result<bool, Undecided> {
    Ok(if_answered(case.in_the_other_storage())?.is_some_and(|(_, history)| history.is_live()))
}

/// The time at which an operation counts as stuck, if its start is known.
pub(super) fn stuck_from(case: &RecordCase<'_>, newest: &Entry) -> Result<Option<Timestamp>, Undecided> {
    Ok(patience(case, &InFlight::of_entry(newest))?.1)
}

/// A moment, to the minute.
pub(super) fn minute(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// The time at which an operation counts as stuck, and the next step after that.
fn once_stuck(case: &RecordCase<'_>, newest: &Entry) -> Result<WaysOut, Undecided> {
    let from = stuck_from(case, newest)?;
    let until = match from.map(minute) {
        Some(time) => format!("wait until {time}, when the operation counts as stuck"),
        None => "wait until the operation counts as stuck".to_owned(),
    };
    let wait = Step { when: from, ..Step::wait(until) };
    let go_on = go_on(case, newest, RecordCondition::Unknown)?;
    Ok(go_on.steps.into_iter().fold(Way::from(wait), Way::then).into())
}

/// How long an operation may take, and the time at which it counts as stuck, if its start is known.
fn patience(case: &RecordCase<'_>, operation: &InFlight) -> Result<(SignedDuration, Option<Timestamp>), Undecided> {
    let patience = case.stale_after(operation.started(), operation.stamps())?;
    Ok((patience, operation.started().and_then(|started| started.checked_add(patience).ok())))
}

/// The step to repeat the request when the operation counts as stuck.
fn once_stale(case: &RecordCase<'_>, operation: &InFlight, allowed: &str) -> Result<Step, Undecided> {
    let (patience, from) = patience(case, operation)?;
    let text = format!("{allowed} {} after it started", wording::span(patience));
    Ok(Step { when: from, ..Step::retry(text) })
}

/// Checks a write that ends an operation: by another status, or by deletion.
fn end(case: &RecordCase<'_>, before: &RecordVersion<'_>, after: Option<&RecordVersion<'_>>) -> Checked {
    let to = after.and_then(RecordVersion::status);
    let operation = InFlight::of_side(before);
    if case.may_end(&operation)? {
        return Ok(None);
    }
    let (Some(status), Some(revision)) = (before.status(), case.id.revision) else {
        return Ok(None);
    };
    // A rollback over the record has already ended its operation. If that rollback fails, it writes this record again, and
    // pruning may delete it.
    if to.is_none_or(|to| to == status) && case.history()?.above(revision).next().is_some() {
        return Ok(None);
    }
    let (namespace, name, words) = (&case.id.namespace, &case.id.release, case.words());
    let (verb, way) = match to {
        // An owner without commands does none of these; its records are removed by deletion.
        Some(_) if !words.has_commands() => ("change the record of", ""),
        Some(Status::Failed) => ("unlock", "unlock the release"),
        Some(Status::Deployed) => ("promote", "end it"),
        Some(Status::Uninstalling | Status::Uninstalled) => ("uninstall", "uninstall the release"),
        _ => ("delete the record of", "delete its record"),
    };
    let state = wording::state(status, revision, operation.holder(), operation.started(), case.now);
    let sentence = format!(
        "Cannot {verb} release {namespace}/{name}: the release is {state}, and that operation may still be running."
    );
    let newest = case.history()?.newest();
    let ways_out = if let (false, Some(newest)) = (words.has_commands(), newest) {
        once_stuck(case, newest)?
    } else {
        let unlocked = after.filter(|_| to == Some(Status::Failed));
        let go_on = unlocked.map_or(Ok(None), |unlocked| driver_goes_on(case, &operation, unlocked))?;
        let wait = go_on.into_iter().fold(Way::from(Step::wait("wait until the operation ends")), Way::then);
        let retry = once_stale(case, &operation, &format!("anyone can {way}"))?;
        WaysOut::from(wait).when("if it does not end", retry)
    };
    Ok(Some(Refusal::new(sentence, ways_out)))
}

/// How to wake the controller whose unlock is refused. By itself it retries at growing intervals, which reach minutes after a
/// long operation. `None` if the user is not such a controller.
fn driver_goes_on(
    case: &RecordCase<'_>,
    operation: &InFlight,
    unlocked: &RecordVersion<'_>,
) -> Result<Option<Step>, Undecided> {
    let release = case.driven(operation.stamps());
    let driver = if_answered(release.reconciled_by(case.evidence, case.policy, case.facts.actor))?;
    let is_driven = driver.is_some() || unlocked.is_unlocked_by_controller();
    Ok(is_driven.then(|| goes_on_at_once(driver)))
}

fn delete(case: &RecordCase<'_>, side: &RecordVersion<'_>) -> Checked {
    let history = case.history()?;
    // Pruning deletes stuck records of earlier operations from the middle of the history.
    let Some(revision) = case.id.revision else {
        return Ok(None);
    };
    if history.above(revision).next().is_some() || case.is_misnamed() {
        return Ok(None);
    }
    let operation = InFlight::of_side(side);
    // `helm rollback` prunes before it creates its record. With a small limit, pruning deletes the record that the rollback
    // recovers from.
    let is_own = case.facts.actor.holds(operation.stamps()) && case.is_stuck(&operation)?;
    let resumes = match case.resumes(&operation) {
        // The checks may already be enough for a refusal.
        Err(Undecided::Unavailable(_)) => false,
        resumes => resumes?,
    };
    if is_own || resumes {
        return Ok(None);
    }
    let failed = runbook::failed_checks(case, side)?;
    if failed.sentences.is_empty() {
        return Ok(None);
    }
    let status = side.label_status().map_or("pending", Status::as_str);
    let sentence = format!(
        "Cannot delete the {status} record of {}. These checks fail: {}.",
        case.subject(),
        failed.sentences.join("; ")
    );
    // Workloads may never become healthy, and the policy may forbid rollbacks.
    let holder = operation.holder().map(|holder| {
        let holder = wording::user(Some(holder));
        format!("The holder {holder} may delete it as soon as it counts as stuck, whatever the workloads say.")
    });
    let ways_out: WaysOut = match history.newest() {
        Some(newest) if failed.is_stuck => go_on(case, newest, failed.condition)?.into(),
        Some(newest) => once_stuck(case, newest)?,
        // The record is newer than the known history of the release.
        None => case.words().look().into(),
    };
    Ok(Some(Refusal::new(sentence, holder.into_iter().fold(ways_out, WaysOut::note))))
}
