//! The rule `record-deletion`.
//!
//! Pruning never deletes the newest deployed record. `helm uninstall` first marks the newest record `uninstalling`. So both are
//! allowed. If no record is deployed, Helm upgrades from a superseded newest record. So superseding a record and then deleting it
//! must not be easier than deleting it. OLM can store a record in several Secrets. Deleting one of them counts as deleting the
//! record, because nobody can read it afterwards.

use super::case::RecordCase;
use super::lease;
use super::standing::InFlight;
use super::unreadable;
use crate::facts::{RecordChange, RecordVersion};
use crate::owners::rules::record_part;
use crate::owners::{self, Driver};
use crate::release::status::Guard;
use crate::release::{Entry, History, Status};
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, Refusal, Rule, Step, Way, WaysOut};
use crate::rules::undecided::{Undecided, if_answered};

/// The rule `record-deletion`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "record-deletion",
        owners: owners::OF_RECORDS,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        requests: Requests { operations: &[Operation::Delete], kinds: &[] },
        summary: "The record that the next upgrade starts from stays: the newest deployed one, or the newest superseded one.",
        why: "Without it helm reports that there are no deployed releases, and the next upgrade is an install over live \
              objects.",
        allowed: "Pruning of superseded records; every deletion by whoever uninstalls the release, or once it is uninstalled; a \
                  record that no client can read; the records of a release whose objects another owner has adopted.",
        refused: "`kubectl delete secret` of the newest deployed record, or of a part of a record in several Secrets; a person deleting several \
                  records at once.",
        way_out: "Use `helm uninstall` to remove the release, or delete the object that declares it. Or delete one superseded or \
                  failed record by name.",
        settings: &[],
    },
    checks: &[Check::Record(check), Check::RecordPart(record_part::deletion)],
};

/// What to do instead of deleting the record that a live release depends on.
fn ways_out(case: &RecordCase<'_>) -> Result<WaysOut, Undecided> {
    Ok(WaysOut::from(remove(case)?).or("delete one superseded or failed record by name"))
}

/// What to do instead of deleting the record of a live release. OLM would install the extension again.
fn live(case: &RecordCase<'_>) -> Result<WaysOut, Undecided> {
    let ways_out = ways_out(case)?;
    if !case.words().has_commands() {
        return Ok(ways_out);
    }
    let name = case.words().name();
    Ok(ways_out.note(format!(
        "For {name} to forget it and keep its objects, delete its records under an override of this rule."
    )))
}

/// How to remove the release. Flux would install again what helm uninstalls.
fn remove(case: &RecordCase<'_>) -> Result<Step, Undecided> {
    Ok(Step::run("run {} to remove the release", remove_command(case)?))
}

fn remove_command(case: &RecordCase<'_>) -> Result<String, Undecided> {
    let driver = if_answered(case.driven(case.history()?.stamps()).at_work(case.evidence, case.policy))?;
    Ok(driver.map_or_else(|| case.words().remove_command(), Driver::delete_command))
}

pub(crate) fn check(case: &RecordCase<'_>) -> Checked {
    let RecordChange::Deleted(side) = case.change else {
        return Ok(None);
    };
    if side.stored.metadata.deletion_timestamp.is_some() {
        return Ok(None);
    }
    if case.facts.collection && case.facts.actor.is_person_on_records() {
        let sentence = format!("Cannot delete the record of {} together with other records.", case.subject());
        return Ok(Some(Refusal::new(sentence, ways_out(case)?)));
    }
    let guard = case.policy.transitions.guard(side.label_status(), None);
    if guard != Guard::Deletion || case.is_misnamed() {
        return Ok(None);
    }
    let history = case.history()?;
    let base = history.newest_deployed().or_else(|| history.iter().find(|entry| !entry.status.is_in_flight()));
    let is_base = base.is_none_or(|base| base.name == case.id.object);
    if !is_base || may_go(case, side, history)? {
        return Ok(None);
    }
    // nelm purges in any order, and holds its lease meanwhile.
    if lease::is_held(case)? {
        return Ok(None);
    }
    if let Some(error) = case.why_unreadable(&case.id.object)? {
        return unreadable::deletion(case, side, history, &error);
    }
    if case.is_moved()? {
        return Ok(None);
    }
    let (subject, words) = (case.subject(), case.words());
    let (sentence, ways_out) = match (operation_over(side, history), side.label_status()) {
        (Some(newest), _) => (
            format!("Cannot delete the record of {subject}: the release is {}.", case.state(newest)),
            Way::from(Step::wait("wait until that operation ends")).then(remove(case)?).into(),
        ),
        (None, Some(Status::Superseded)) => (
            format!(
                "Cannot delete the newest record of {subject}: no record is deployed, and {} would upgrade from this one.",
                words.name()
            ),
            words.change().when("to remove it", Step::run("run {}", remove_command(case)?)),
        ),
        _ => (format!("Cannot delete the newest deployed record of {subject}: the release is live."), live(case)?),
    };
    Ok(Some(Refusal::new(sentence, ways_out)))
}

/// The operation in flight that the deletion belongs to, or that may still need the record. An uninstall deletes all records. A
/// pending operation needs a superseded record if it fails.
fn operation_over<'h>(side: &RecordVersion<'_>, history: &'h History) -> Option<&'h Entry> {
    let needs_it = side.label_status() == Some(Status::Superseded);
    history.newest().filter(|newest| newest.status == Status::Uninstalling || (newest.status.is_pending() && needs_it))
}

/// Whether the record may be deleted with its release: by a user who may continue the uninstall, after the uninstall, or by a
/// manager that gives up a manager's record. Such a manager may keep the objects, as Fleet does on request.
fn may_go(case: &RecordCase<'_>, side: &RecordVersion<'_>, history: &History) -> Result<bool, Undecided> {
    if let Some(newest) = operation_over(side, history) {
        return case.may_end(&InFlight::of_entry(newest));
    }
    if history.newest().is_some_and(|newest| newest.status == Status::Uninstalled) {
        return Ok(true);
    }
    let (managers, stamps) = (&case.policy.managers, side.stamps());
    let of_manager = stamps.holder().is_none_or(|holder| managers.contains(holder));
    Ok(managers.contains(case.facts.actor.name) && of_manager)
}
