//! The record of an uninstall.

use super::protection::{ReleaseAtHome, is_installed, refusal};
use crate::facts::RecordChange;
use crate::release::{ReleaseRef, Status};
use crate::rules::check::{Checked, WaysOut};
use crate::rules::records::case::RecordCase;

pub(super) fn check(case: &RecordCase<'_>) -> Checked {
    if case.policy.controllers.contains(case.facts.actor.name) || !uninstalls(case) {
        return Ok(None);
    }
    let release = ReleaseRef::new(&case.id.namespace, &case.id.release);
    let at_home = ReleaseAtHome { storage: case.id.storage, release, home: case.home()? };
    let Some(protection) = at_home.protection(case.policy, case.evidence)? else {
        return Ok(None);
    };
    let history = case.history()?;
    let is_base = history.newest_deployed().is_some_and(|newest| newest.name == case.id.object);
    let is_pruned = matches!(case.change, RecordChange::Deleted(_)) && !is_base;
    if is_pruned || !is_installed(history) {
        return Ok(None);
    }
    let sentence = format!("Cannot uninstall {}: {} protects it.", case.subject(), protection.words());
    Ok(Some(refusal(case.policy, at_home.release, sentence, WaysOut::default())))
}

/// Whether the write belongs to an uninstall: its start, its end without a start, or the deletion of the record that the release
/// depends on.
fn uninstalls(case: &RecordCase<'_>) -> bool {
    match case.change {
        RecordChange::Created(_) => false,
        RecordChange::Deleted(side) => side.label_status() == Some(Status::Deployed) && !case.is_misnamed(),
        RecordChange::Updated { .. } => {
            case.change.write().is_some_and(|write| write.uninstalls() || write.starts(case.facts.actor))
        }
    }
}
