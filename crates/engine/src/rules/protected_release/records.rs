//! The record of an uninstall, and the stamp of what protects the release.

use super::protection::{ReleaseAtHome, by_stamps, is_installed, refusal};
use crate::facts::{ActorKind, RecordChange, RecordVersion};
use crate::object::annotation_pointer;
use crate::release::stamps::PROTECTED_BY;
use crate::release::{ReleaseRef, Status};
use crate::rules::check::{Checked, WaysOut};
use crate::rules::records::case::RecordCase;
use crate::stamp::removes_only_protector;

pub(super) fn check(case: &RecordCase<'_>) -> Checked {
    if case.policy.controllers.contains(case.facts.actor.name) {
        return Ok(None);
    }
    if !uninstalls(case) {
        return unprotects(case);
    }
    let release = ReleaseRef::new(&case.id.namespace, &case.id.release);
    let at_home = ReleaseAtHome { storage: case.id.storage, release, home: case.home()? };
    let history = case.history()?;
    let Some(protection) = at_home.protection(case.policy, case.evidence, history)? else {
        return Ok(None);
    };
    let is_base = history.newest_deployed().is_some_and(|newest| newest.name == case.id.object);
    let is_pruned = matches!(case.change, RecordChange::Deleted(_)) && !is_base;
    if is_pruned || !is_installed(history) {
        return Ok(None);
    }
    let sentence = format!("Cannot uninstall {}: {} protects it.", case.subject(), protection.words());
    Ok(Some(refusal(case.policy, at_home.release, &protection, sentence, WaysOut::default())))
}

/// The refusal of the removal of the stamp, while what it names protects the release. Like the annotation, managers may remove it.
fn unprotects(case: &RecordCase<'_>) -> Checked {
    let actor = case.facts.actor;
    let Some(write) = case.change.write().filter(removes_only_protector) else {
        return Ok(None);
    };
    if actor.kind == ActorKind::Interlock || case.policy.managers.contains(actor.name) {
        return Ok(None);
    }
    let release = ReleaseRef::new(&case.id.namespace, &case.id.release);
    let stamps = write.before.map(RecordVersion::stamps).unwrap_or_default();
    let Some(protection) = by_stamps(case.evidence, &release, stamps.protected_by().into_iter())? else {
        return Ok(None);
    };
    if !is_installed(case.history()?) {
        return Ok(None);
    }
    let words = protection.words();
    let sentence =
        format!("The annotation {PROTECTED_BY} on the record of {} must stay: {words} protects it.", case.subject());
    let refused = refusal(case.policy, release, &protection, sentence, WaysOut::default());
    Ok(Some(refused.at(annotation_pointer(PROTECTED_BY))))
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
