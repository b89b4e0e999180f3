//! Records that start an operation.

use jiff::Timestamp;

use super::standing::{stops_something, stored, ways_out};
use crate::facts::RecordVersion;
use crate::policy::in_force;
use crate::release::{Entry, ReleaseRef, Status};
use crate::rules::check::{Checked, Refusal};
use crate::rules::records::case::RecordCase;
use crate::rules::records::standing::InFlight;
use crate::rules::undecided::Undecided;
use crate::rules::wording;

pub(super) fn check(case: &RecordCase<'_>) -> Checked {
    let actor = case.facts.actor;
    let Some(write) = case.change.write().filter(|write| write.starts(actor)) else {
        return Ok(None);
    };
    let stored = stored(case.evidence)?;
    if !stops_something(case.policy, stored, actor, case.now) {
        return Ok(None);
    }
    let release = ReleaseRef::new(&case.home()?, &case.id.release);
    let Some(active) = in_force(case.policy.all_freezes(stored), &release, actor, case.now) else {
        return Ok(None);
    };
    let status = write.after.status();
    if goes_on(case, write.before, status)? {
        return Ok(None);
    }
    let operation = status.map_or("operation", wording::operation);
    let sentence = format!("Cannot start the {operation} of {}: {}.", case.subject(), active.sentence());
    Ok(Some(Refusal::new(sentence, ways_out(active)).in_freeze(active)))
}

/// Whether a start is part of an earlier operation: its remedy, or the rest of an uninstall.
fn goes_on(
    case: &RecordCase<'_>,
    before: Option<&RecordVersion<'_>>,
    status: Option<Status>,
) -> Result<bool, Undecided> {
    match (before, status) {
        // An uninstall updates the record that it removes. It is a remedy only if no revision was deployed before the failure.
        (Some(before), _) => {
            let has_begun = before.status() == Some(Status::Uninstalling);
            let ended = before.stamps().ended().or(before.stored.metadata.creation_timestamp);
            Ok((has_begun || !case.history()?.was_deployed())
                && remedies(case, before.status(), &InFlight::of_side(before), ended)?)
        }
        (None, Some(Status::PendingRollback)) => case.history()?.newest().map_or(Ok(false), |newest: &Entry| {
            remedies(case, Some(newest.status), &InFlight::of_entry(newest), newest.stamps.ended().or(newest.created))
        }),
        _ => Ok(false),
    }
}

/// Whether the actor remedies or finishes an operation that it may end.
fn remedies<'c>(
    case: &'c RecordCase<'_>,
    status: Option<Status>,
    operation: &'c InFlight,
    ended: Option<Timestamp>,
) -> Result<bool, Undecided> {
    let actor = case.facts.actor.name;
    match status {
        Some(status) if status.is_in_flight() => case.may_end(operation),
        Some(Status::Failed) => {
            let managers = &case.policy.managers;
            let by_managers =
                managers.contains(actor) && operation.holder().is_some_and(|holder| managers.contains(holder));
            let recent = |ended: Timestamp| case.now.duration_since(ended) <= case.policy.grace_after_failure;
            Ok(by_managers || case.facts.actor.holds(operation.stamps()) && ended.is_some_and(recent))
        }
        _ => Ok(false),
    }
}
