//! The rule `freeze`.
//!
//! Applies only at the start of an operation. Operations that started before a freeze may finish, and so may their remedies: the
//! rollback by the same user right after a failure (`helm upgrade --rollback-on-failure`), the rollback by a manager of a
//! manager's operation, the uninstall instead if no revision was ever deployed (`helm install --atomic`), and the rest of an
//! uninstall.

use jiff::Timestamp;

use super::case::RecordCase;
use super::standing::InFlight;
use crate::evidence::{Evidence, question};
use crate::facts::{Actor, ObjectChange, RecordVersion};
use crate::owners;
use crate::policy::{ActiveFreeze, Freeze, Policy, in_force};
use crate::release::{Entry, ReleaseRef, Status};
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, Refusal, Rule, Step, Way, WaysOut};
use crate::rules::objects::case::ObjectCase;
use crate::rules::undecided::{Undecided, ask};
use crate::rules::wording;

/// The rule `freeze`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "freeze",
        owners: owners::OF_RELEASES,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        requests: Requests { operations: &[Operation::Create, Operation::Update, Operation::Delete], kinds: &[] },
        summary: "No operation starts while a freeze of the policy, or a Freeze of the namespace, is in force.",
        why: "Before a weekend or during a sale, nobody is available to fix a bad change.",
        allowed: "The end of an upgrade that started before the freeze, and its rollback if it fails; the uninstall of a first \
                  install that failed; an upgrade by a user that the freeze exempts.",
        refused: "`helm upgrade`, `helm rollback` and `helm uninstall` in a window that denies, or outside of the windows that \
                  `allowOnly` names.",
        way_out: "Wait until the freeze ends: the refusal says when, and `interlock wait NAMESPACE/RELEASE --until open` waits for it. \
                  Controllers try again by themselves. For an urgent fix, use a ReleaseOverride.",
        settings: &[],
    },
    checks: &[Check::Record(check), Check::Object(uninstalls)],
};

fn check(case: &RecordCase<'_>) -> Checked {
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

/// Refuses the deletions of an uninstall that starts in a freeze. If the write of its record is refused, Helm only logs that and
/// continues to delete. It stops when a deletion is refused.
fn uninstalls(case: &ObjectCase<'_>) -> Checked {
    let actor = case.facts.actor;
    let deletes = matches!(case.write.change, ObjectChange::Deleted { .. });
    if !deletes {
        return Ok(None);
    }
    let stored = stored(case.evidence)?;
    if !stops_something(case.policy, stored, actor, case.now) {
        return Ok(None);
    }
    let Some(conflict) = case.conflict_of_uninstall()? else {
        return Ok(None);
    };
    let ReleaseRef { namespace, name } = &conflict.release;
    let home = conflict.declaring.as_ref().map_or(namespace.as_str(), |declaring| {
        declaring.record.storage.home(namespace, Some(&declaring.target_namespace))
    });
    let active = in_force(case.policy.all_freezes(stored), &ReleaseRef::new(home, name), actor, case.now);
    Ok(active.map(|active| {
        let sentence = format!("{} is managed by {}: {}.", case.subject(), conflict.owner, active.sentence());
        Refusal::new(sentence, ways_out(active)).about(conflict.release.clone()).in_freeze(active)
    }))
}

/// The Freezes that are stored in the cluster. Freezes that cannot be read stop nothing.
fn stored(evidence: &Evidence) -> Result<&[Freeze], Undecided> {
    match ask(evidence, question::Freezes) {
        Err(Undecided::Ask(query)) => Err(Undecided::Ask(query)),
        _ => Ok(evidence.freezes()),
    }
}

/// Whether any freeze stops the actor. If not, nothing more needs to be read.
fn stops_something(policy: &Policy, stored: &[Freeze], actor: Actor<'_>, now: Timestamp) -> bool {
    policy.all_freezes(stored).any(|freeze| freeze.stops(actor, now))
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

fn ways_out(active: ActiveFreeze<'_>) -> WaysOut {
    if active.until.is_none() {
        return Step::release_override().into();
    }
    let retry = Step::retry("try again; controllers do so by themselves");
    let wait = Step { when: active.until, ..Step::wait("wait until the freeze ends") };
    WaysOut::from(Way::from(wait).then(retry)).when("if a fix cannot wait", Step::release_override())
}
