//! The rule `record-deletion`.
//!
//! Pruning never deletes the newest deployed record, and `helm uninstall` marks the newest record `uninstalling` first, so both are
//! allowed. Deleting a part of a record that OLM stores in several Secrets is deleting the record: nobody can read it afterwards.

use super::case::RecordCase;
use super::{lease, record_part};
use crate::engine::facts::{ActorKind, RecordChange};
use crate::engine::release::Status;
use crate::engine::rule::{FORBIDDEN, FailsClosed, Mode, Specification};
use crate::engine::rules::check::{Check, Checked, Refusal, Rule};

/// The rule `record-deletion`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "record-deletion",
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        summary: "The newest deployed record of a live release stays.",
        why: "Without it helm reports that there are no deployed releases, and the next upgrade is an install over live \
              objects.",
        allowed: "Pruning of superseded records; every deletion while the release is uninstalling or uninstalled.",
        refused: "`kubectl delete secret` of the newest deployed record; a person deleting several records at once.",
        way_out: "Use `helm uninstall` to remove the release, or delete one superseded or failed record by name.",
        settings: &[],
    },
    checks: &[Check::Record(check), Check::RecordPart(record_part::check)],
};

const WAY_OUT: &str = "Use `helm uninstall` to remove the release, or delete one superseded or failed record by name.";

pub(crate) fn check(case: &RecordCase<'_>) -> Checked {
    let RecordChange::Deleted(side) = case.change else {
        return Ok(None);
    };
    if side.stored.metadata.deletion_timestamp.is_some() {
        return Ok(None);
    }
    if case.facts.collection && case.facts.actor.kind == ActorKind::Person {
        let sentence = format!("Cannot delete the record of {} together with other records.", case.subject());
        return Ok(Some(Refusal::new(sentence, WAY_OUT)));
    }
    if side.label_status() != Some(Status::Deployed) {
        return Ok(None);
    }
    let history = case.history()?;
    let newest_status = history.newest().map(|newest| newest.status);
    if matches!(newest_status, Some(Status::Uninstalling | Status::Uninstalled)) {
        return Ok(None);
    }
    let is_newest = history.newest_deployed().is_none_or(|newest| newest.name == case.target.object);
    // nelm purges in no particular order, and holds its lease meanwhile.
    if !is_newest || lease::is_held(case)? {
        return Ok(None);
    }
    let sentence = format!("Cannot delete the newest deployed record of {}: the release is live.", case.subject());
    Ok(Some(Refusal::new(sentence, WAY_OUT)))
}
