//! `resume-interrupted`: an operation that was interrupted is finished before the next version is tried.
//!
//! The step from one version to the next presumes that the one before is whole. When the record of a dead upgrade is deleted
//! or unlocked, only its beginning is applied, and nothing of Helm remembers: OLM would resolve its next step from the last
//! deployed version, over the head of the one that is half there. A note on the newest deployed record, or on the failed one
//! that was unlocked, remembers; it goes with the next promotion.
//!
//! Allowed: the upgrade to the interrupted version again; a rollback; any upgrade after either succeeded, or after a person
//! has taken the note off.
//! Denied: CREATE of an upgrade to version 3 after the upgrade to version 2 was killed and its record deleted.

use super::case::Case;
use crate::engine::facts::RecordChange;
use crate::engine::release::Status;
use crate::engine::release::stamps::INTERRUPTED;
use crate::engine::rules::{Finding, Refusal};

pub(crate) fn check(case: &Case<'_>) -> Finding {
    let RecordChange::Created(side) = case.change else {
        return Ok(None);
    };
    if side.status() != Some(Status::PendingUpgrade) || case.policy.tools.contains(case.facts.actor.name) {
        return Ok(None);
    }
    let (Some((entry, interrupted)), Some(chart)) = (case.history()?.interrupted(), side.chart()) else {
        return Ok(None);
    };
    if interrupted.chart == chart {
        return Ok(None);
    }
    let sentence = format!(
        "Cannot upgrade {} to {chart}: its upgrade to {} (revision {}) was interrupted and never finished.",
        case.subject(),
        interrupted.chart,
        interrupted.revision
    );
    let rollback = if case.policy.recovery.roll_forward_only { "" } else { ", or roll back," };
    let way_out = format!(
        "Upgrade to {} again{rollback} and go on from there. If it is never to be finished, take the annotation {INTERRUPTED} \
         off the record {}.",
        interrupted.chart, entry.name
    );
    Ok(Some(Refusal::new(sentence, way_out)))
}
