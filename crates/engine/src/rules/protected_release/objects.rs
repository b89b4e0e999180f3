//! Deletions of objects during an uninstall, by any account, and edits that lead to the deletion of an object or hide its owner.

use super::peers;
use super::protection::{Protection, ReleaseAtHome, is_installed, may_be_installed, refusal};
use crate::evidence::{CandidateRecords, Freshness};
use crate::facts::{ActorKind, ObjectChange};
use crate::managed::Owner;
use crate::owners;
use crate::owners::Marks;
use crate::release::{ReleaseRef, Storage};
use crate::rules::check::{Checked, WaysOut};
use crate::rules::objects::case::ObjectCase;
use crate::rules::objects::declared_fields::Declaration;
use crate::rules::objects::operation_holder::declaring;
use crate::rules::undecided::Undecided;

/// How an object leaves its release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Departure {
    Deletion,
    /// A mark changes or is removed.
    LostMarks,
    /// A person adds an owner reference. The garbage collector deletes objects whose owners do not exist.
    AddedOwner,
    /// The annotation that keeps it from being deleted is removed.
    LostKeep,
}

pub(super) fn check(case: &ObjectCase<'_>) -> Checked {
    if let Some(mark) = peers::mark(case.facts, case.policy) {
        return Ok(Some(peers::refusal(mark, &case.subject(), case.write.release())));
    }
    let actor = case.facts.actor;
    let is_exempt =
        matches!(actor.kind, ActorKind::Platform | ActorKind::Node) || case.policy.controllers.contains(actor.name);
    let Some((departure, marks)) = departure(case).filter(|_| !is_exempt && !case.write.being_deleted) else {
        return Ok(None);
    };
    let found = case.confirmed(|freshness| protected(case, marks, departure, freshness))?;
    Ok(found.map(|(release, protection)| {
        let belongs =
            format!("{} belongs to release {release}, and {} protects it", case.subject(), protection.words());
        match departure {
            Departure::Deletion => {
                refusal(case.policy, release, &protection, format!("{belongs}."), WaysOut::default())
            }
            Departure::LostMarks => {
                let sentence = format!("{belongs}: its ownership marks must stay.");
                refusal(case.policy, release, &protection, sentence, WaysOut::default())
            }
            Departure::LostKeep => {
                let sentence = format!("{belongs}: the annotation that keeps it from being deleted must stay.");
                refusal(case.policy, release, &protection, sentence, WaysOut::default())
            }
            Departure::AddedOwner => {
                let sentence = format!("{belongs}: with an owner reference the garbage collector may delete it.");
                refusal(case.policy, release, &protection, sentence, WaysOut::default()).at("/metadata/ownerReferences")
            }
        }
    }))
}

fn departure<'c>(case: &'c ObjectCase<'_>) -> Option<(Departure, &'c Marks)> {
    match &case.write.change {
        ObjectChange::Deleted { marks, .. } => Some((Departure::Deletion, marks)),
        ObjectChange::Edited { marks, marks_after, .. }
            if loses_marks(marks, marks_after.as_deref())
                || (loses_origin(marks, marks_after.as_deref()) && !is_manager(case)) =>
        {
            Some((Departure::LostMarks, marks))
        }
        ObjectChange::Edited { marks, marks_after, .. } if loses_keep(marks, marks_after.as_deref()) => {
            Some((Departure::LostKeep, marks))
        }
        // Only persons are checked, because operators adopt objects of releases.
        ObjectChange::Edited { marks, sides, .. } if sides.adds_owner && case.facts.actor.kind == ActorKind::Person => {
            Some((Departure::AddedOwner, marks))
        }
        ObjectChange::Edited { .. } | ObjectChange::Scaled { .. } => None,
    }
}

/// Whether the marks after an edit name another release, or none, or are incomplete.
fn loses_marks(before: &Marks, after: Option<&Marks>) -> bool {
    let is_lost = |marks: &Marks| {
        matches!(marks.owner, Owner::Applied { .. }) && marks.contradiction.is_none() && !marks.stay_in(after)
    };
    if before.all().any(is_lost) {
        return true;
    }
    let Owner::Release { name, target_namespace, .. } = &before.owner else {
        return false;
    };
    let stays = |after: &Marks| match &after.owner {
        Owner::Release { name: new, target_namespace: into, .. } => new == name && into == target_namespace,
        Owner::Profile { .. } | Owner::Applied { .. } => false,
    };
    !after.is_some_and(|after| stays(after) && (after.contradiction.is_none() || before.contradiction.is_some()))
}

/// Whether an edit removes what keeps the object from being deleted once its source no longer declares it.
fn loses_keep(before: &Marks, after: Option<&Marks>) -> bool {
    after.is_some_and(|after| before.keeping().any(|kept| !after.keeping().any(|still| still == kept)))
}

fn is_manager(case: &ObjectCase<'_>) -> bool {
    case.policy.is_manager_or_tool(case.facts.actor.name)
}

/// Whether an edit changes or removes the labels that lead to records elsewhere. Managers change them, when a release moves from one
/// declaration to another.
fn loses_origin(before: &Marks, after: Option<&Marks>) -> bool {
    let origin = |marks: &Marks| match &marks.owner {
        Owner::Release { origin, of_extension, .. } => (origin.clone(), *of_extension),
        Owner::Profile { .. } | Owner::Applied { .. } => (None, false),
    };
    let had = origin(before);
    let has = after.map(origin).unwrap_or_default();
    (had.0.is_some() && had.0 != has.0) || (had.1 && !has.1)
}

/// The protected release that declares the object, and its protection. The document is checked first, because most deleted
/// objects are ones that an operation's revision no longer declares.
fn protected(
    case: &ObjectCase<'_>,
    marks: &Marks,
    departure: Departure,
    freshness: Freshness,
) -> Result<Option<(ReleaseRef, Protection)>, Undecided> {
    let marks = case.owning(marks, freshness)?;
    let (name, target_namespace) = match &marks.owner {
        Owner::Release { name, target_namespace, .. } => (name, target_namespace),
        Owner::Applied { namespace, name, .. } => {
            return protected_by_applier(case, marks, (namespace, name), freshness);
        }
        Owner::Profile { .. } => return Ok(None),
    };
    let Some(candidate) = case.records_of(&marks.owner, freshness)? else {
        return Ok(None);
    };
    let CandidateRecords { storage, namespace, history, .. } = candidate;
    let may_be_installed = match freshness {
        Freshness::Cached => may_be_installed(history),
        Freshness::Live => is_installed(history),
    };
    let Some(record) = declaring(candidate).filter(|_| may_be_installed) else {
        return Ok(None);
    };
    match case.declaration(record, target_namespace.clone())? {
        Declaration::Nothing => return Ok(None),
        // A chart may declare owners itself.
        Declaration::Document(document) if departure == Departure::AddedOwner => {
            if document.pointer("/metadata/ownerReferences").is_some() {
                return Ok(None);
            }
        }
        Declaration::Document(_) | Declaration::Unreadable(_) => {}
    }
    let at_home = ReleaseAtHome::new(*storage, ReleaseRef::new(namespace, name), Some(target_namespace));
    let Some(protection) = at_home.protection(case.policy, case.evidence, history)? else {
        return Ok(None);
    };
    if owners::rules::are_outdated(case.evidence, case.policy, *storage, name)? {
        return Ok(None);
    }
    Ok(Some((at_home.release, protection)))
}

/// The protected object that applies this one, and its protection. What works for it deletes what left its source.
fn protected_by_applier(
    case: &ObjectCase<'_>,
    marks: &Marks,
    (namespace, name): (&str, &str),
    freshness: Freshness,
) -> Result<Option<(ReleaseRef, Protection)>, Undecided> {
    let actor = case.facts.actor;
    if is_manager(case) || actor.kind == ActorKind::ControlPlane || marks.contradiction.is_some() {
        return Ok(None);
    }
    let Some(applier) = case.applier(marks, freshness)?.filter(|applier| applier.user.as_deref() != Some(actor.name))
    else {
        return Ok(None);
    };
    let at_home = ReleaseAtHome::new(Storage::Index, ReleaseRef::new(namespace, name), Some(&applier.home));
    let declaration = (applier.title, applier.is_protected);
    let protection = at_home.protection_declared_by(declaration, case.policy, case.evidence)?;
    Ok(protection.map(|protection| (at_home.release, protection)))
}
