//! The first door: the record of an uninstall.

use super::protection::{Reason, refusal, stands};
use crate::engine::facts::RecordChange;
use crate::engine::release::{ReleaseRef, Status};
use crate::engine::rules::check::Checked;
use crate::engine::rules::records::case::RecordCase;
use crate::engine::rules::undecided::is_protected_namespace;

pub(super) fn check(case: &RecordCase<'_>) -> Checked {
    if case.policy.controllers.contains(case.facts.actor.name) || !takes_away(case) {
        return Ok(None);
    }
    let release = ReleaseRef::new(&case.target.namespace, &case.target.release);
    let reason = match case.policy.protected.covers(&release) {
        true => Reason::Policy,
        false if is_protected_namespace(case.evidence, &release.namespace)? => Reason::Annotation,
        false => return Ok(None),
    };
    let history = case.history()?;
    let is_base = history.newest_deployed().is_some_and(|newest| newest.name == case.target.object);
    let is_pruned = matches!(case.change, RecordChange::Deleted(_)) && !is_base;
    if is_pruned || !stands(history) {
        return Ok(None);
    }
    let sentence = format!("Cannot uninstall {}: {} protects it.", case.subject(), reason.words());
    Ok(Some(refusal(case.policy, release, sentence, "")))
}

/// Whether the write belongs to an uninstall: its start, its end without a start, or the deletion of the record that the release rests
/// on.
fn takes_away(case: &RecordCase<'_>) -> bool {
    match case.change {
        RecordChange::Created(_) => false,
        RecordChange::Deleted(side) => side.label_status() == Some(Status::Deployed) && !case.is_misnamed(),
        RecordChange::Updated { before, after, .. } => {
            let starts = case.change.write().is_some_and(|write| write.starts(case.facts.actor.name));
            let has_begun = matches!(before.status(), Some(Status::Uninstalling | Status::Uninstalled));
            starts || (after.status() == Some(Status::Uninstalled) && !has_begun)
        }
    }
}
