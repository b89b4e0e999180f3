//! The second door: the deletions of an uninstall, whatever account sends them, and edits after which nobody would know whose object it
//! is.

use super::protection::{Reason, refusal, stands};
use crate::engine::evidence::{Freshness, Located};
use crate::engine::facts::{ActorKind, ObjectChange};
use crate::engine::managed::{Marks, Owner};
use crate::engine::release::{ReleaseRef, Status, Storage};
use crate::engine::rules::check::Checked;
use crate::engine::rules::objects::case::{ObjectCase, declaring};
use crate::engine::rules::undecided::{Undecided, is_protected_namespace};

pub(super) fn check(case: &ObjectCase<'_>) -> Checked {
    let marks = match &case.write.change {
        ObjectChange::Deleted { marks } => marks,
        ObjectChange::Edited { marks, marks_after, .. } if leaves(marks, marks_after.as_deref()) => marks,
        ObjectChange::Edited { .. } | ObjectChange::Scaled { .. } => return Ok(None),
    };
    let actor = case.facts.actor;
    let is_exempt = actor.kind == ActorKind::Node || case.policy.controllers.contains(actor.name);
    if is_exempt || case.write.being_deleted {
        return Ok(None);
    }
    // A cache may say that the deletion is allowed, and only the API server that it is refused.
    if !case.evidence.is_live() {
        match protected(case, marks, Freshness::Cached) {
            Ok(None) => return Ok(None),
            Err(Undecided::Ask(query)) => return Err(Undecided::Ask(query)),
            Ok(Some(_)) | Err(_) => {}
        }
    }
    Ok(protected(case, marks, Freshness::Live)?.map(|(release, reason)| {
        let sentence = format!("{} belongs to release {release}, and {} protects it.", case.subject(), reason.words());
        refusal(case.policy, release, sentence, "")
    }))
}

/// Whether the marks after an edit name another release or none, or one of them is missing.
fn leaves(before: &Marks, after: Option<&Marks>) -> bool {
    let Owner::Release { name, target_namespace, .. } = &before.owner else {
        return false;
    };
    let stays = |after: &Marks| match &after.owner {
        Owner::Release { name: new, target_namespace: into, .. } => new == name && into == target_namespace,
        Owner::Profile { .. } => false,
    };
    !after.is_some_and(|after| stays(after) && (after.contradiction.is_none() || before.contradiction.is_some()))
}

/// The protected release that declares the object, and why it is protected.
fn protected(
    case: &ObjectCase<'_>,
    marks: &Marks,
    freshness: Freshness,
) -> Result<Option<(ReleaseRef, Reason)>, Undecided> {
    let Owner::Release { name, target_namespace, .. } = &marks.owner else {
        return Ok(None);
    };
    let Some(located) = case.records_of(&marks.owner, freshness)? else {
        return Ok(None);
    };
    if !may_stand(located, freshness) {
        return Ok(None);
    }
    let Located { storage, namespace, history, .. } = located;
    let release = ReleaseRef::new(namespace, name);
    // The records of all extensions are in one namespace.
    let home = if *storage == Storage::OlmIndex { target_namespace } else { namespace };
    let by_policy = case.policy.protected.covers(&ReleaseRef::new(home, name));
    // What an operation deletes is rarely worth a read for an annotation.
    let is_own = history
        .newest()
        .is_some_and(|newest| newest.status.is_pending() && newest.stamps.holder() == Some(case.facts.actor.name));
    if !by_policy && is_own {
        return Ok(None);
    }
    let Some(record) = declaring(located) else {
        return Ok(None);
    };
    if case.document(record, target_namespace.clone())?.is_none() {
        return Ok(None);
    }
    if by_policy {
        return Ok(Some((release, Reason::Policy)));
    }
    Ok(is_protected_namespace(case.evidence, namespace)?.then_some((release, Reason::Annotation)))
}

/// Whether the release stands, or may: caches leave superseded records out.
fn may_stand(located: &Located, freshness: Freshness) -> bool {
    let is_failed = located.history.newest().is_some_and(|newest| newest.status == Status::Failed);
    stands(&located.history) || (freshness == Freshness::Cached && is_failed)
}
