//! Requests to managers, and requests about the namespace: deletions and edits that lead to an uninstall of the release, and
//! edits that remove the protection.

use super::peers;
use super::protection::{Protection, ReleaseAtHome, by_stamps, is_installed, may_be_installed, refusal};
use crate::evidence::{CandidateRecords, question};
use crate::facts::{Declaration, DeclarationWrite, Namespace};
use crate::object::{PROTECTED, annotation_pointer};
use crate::owners::{self, Upstream};
use crate::release::{ReleaseRef, Storage};
use crate::rules::check::{CheckedAll, Refusal, WaysOut};
use crate::rules::declarations::case::{DeclarationCase, unread};
use crate::rules::home::is_proven;
use crate::rules::undecided::{Undecided, ask};

pub(super) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    if case.policy.controllers.contains(case.facts.actor.name) {
        return Ok(Vec::new());
    }
    if let Some(mark) = peers::mark(case.facts, case.policy) {
        return Ok(vec![peers::refusal(mark, &case.subject(), case.declaration.release_ref())]);
    }
    match case.declaration {
        Declaration::Namespace(written) => namespace(case, written),
        Declaration::Upstream(written, kind) => upstream(case, written, kind.loss),
        // An object that cannot be parsed may be annotated. Without protected releases in the policy it passes, because most
        // clusters protect nothing.
        Declaration::Unparsed { .. } if case.policy.protected.names_nothing() => Ok(Vec::new()),
        Declaration::Unparsed { kind, why, .. } if *kind == "Namespace" || owners::rules::can_be_protected(kind) => {
            Err(unread(&format!("it cannot be parsed ({why})")))
        }
        _ => owners::rules::removals_of_protected(case),
    }
}

/// How a write removes the protection of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    /// The object is deleted.
    OfObject,
    /// The annotation is removed by a user who is not a manager. Managers may remove it: they write what is in Git.
    OfAnnotation,
}

pub(crate) fn removal<T>(case: &DeclarationCase<'_>, written: &DeclarationWrite<'_, T>) -> Option<Removal> {
    match &written.after {
        None => Some(Removal::OfObject),
        Some(_) if case.declaration.loses_protection() && !case.policy.managers.contains(case.facts.actor.name) => {
            Some(Removal::OfAnnotation)
        }
        Some(_) => None,
    }
}

/// Deleting a namespace deletes the records in it, its HelmReleases, and the objects of releases whose records are elsewhere.
fn namespace(case: &DeclarationCase<'_>, written: &DeclarationWrite<'_, Namespace<'_>>) -> CheckedAll {
    let before = written.before.as_ref().filter(|before| before.metadata.deletion_timestamp.is_none());
    let (Some(before), Some(removal)) = (before, removal(case, written)) else {
        return Ok(Vec::new());
    };
    let is_annotated = before.metadata.is_protected();
    let mut refusals = Vec::new();
    for (name, candidate) in releases_in(case, &written.name)? {
        let at_home = ReleaseAtHome::of_records(candidate, name);
        let Some(protection) = protection_here(case, candidate, &at_home, is_annotated)? else { continue };
        if !is_installed_here(case, candidate, &at_home)? {
            continue;
        }
        match removal {
            Removal::OfObject => refusals.push(held(case, at_home.release, &protection)),
            Removal::OfAnnotation if is_annotated => refusals.push(annotation_removed(case, at_home.release)),
            Removal::OfAnnotation => {}
        }
    }
    if removal == Removal::OfObject && refusals.is_empty() {
        for (release, protection) in owners::rules::protected_in(case, &written.name)? {
            refusals.push(held(case, release, &protection));
        }
    }
    Ok(refusals)
}

/// What protects a release found for a namespace. For records elsewhere, the annotation of their declaration counts too; those of
/// declarations in the namespace are asked for all at once.
fn protection_here(
    case: &DeclarationCase<'_>,
    candidate: &CandidateRecords,
    at_home: &ReleaseAtHome,
    is_annotated: bool,
) -> Result<Option<Protection>, Undecided> {
    if at_home.is_covered(case.policy) {
        return Ok(Some(Protection::Policy));
    }
    if is_annotated {
        return Ok(Some(Protection::Annotation(case.subject())));
    }
    let is_elsewhere = candidate.namespace != case.declaration.name();
    if is_elsewhere {
        if !is_proven(candidate, case.policy) {
            return Ok(None);
        }
        let declared = owners::rules::annotated_declaration(case.evidence, at_home.storage, &at_home.release)?;
        if let Some(declaration) = declared {
            return Ok(Some(Protection::Annotation(declaration)));
        }
    }
    by_stamps(case.evidence, &at_home.release, candidate.history.protectors())
}

/// Whether a release found for the namespace is installed: by its records there, or by proven records elsewhere. Proven records
/// are read again, live. Unproven ones cost no read, because anybody can write a record that names this namespace.
fn is_installed_here(
    case: &DeclarationCase<'_>,
    candidate: &CandidateRecords,
    ReleaseAtHome { release, .. }: &ReleaseAtHome,
) -> Result<bool, Undecided> {
    if candidate.namespace == case.declaration.name() {
        return Ok(is_installed(&candidate.history));
    }
    let may_be = is_proven(candidate, case.policy) && may_be_installed(&candidate.history);
    Ok(may_be && is_installed(case.history_in(candidate.storage, release)?))
}

fn releases_in<'a>(case: &DeclarationCase<'a>, namespace: &str) -> Result<&'a [(String, CandidateRecords)], Undecided> {
    let found = ask(case.evidence, question::ReleasesIn { namespace: namespace.to_owned() })?;
    Ok(found.map_or(&[], Vec::as_slice))
}

/// What protects the release that the request's object declares.
pub(crate) fn protection(
    case: &DeclarationCase<'_>,
    at_home: &ReleaseAtHome,
    is_annotated: bool,
) -> Result<Option<Protection>, Undecided> {
    at_home.protection_declared_by((case.subject(), is_annotated), case.policy, case.evidence)
}

/// `HelmRelease shop/web: its controller would uninstall release shop/web, and the policy protects it.`
pub(crate) fn uninstalls(
    case: &DeclarationCase<'_>,
    manager: &str,
    release: &ReleaseRef,
    protection: &Protection,
) -> String {
    format!("{}: {manager} would uninstall release {release}, and {} protects it.", case.subject(), protection.words())
}

/// An object that applies others without a release, as it is stored.
pub(crate) struct Applying<'o> {
    /// The program that would delete its objects.
    pub(crate) manager: &'static str,
    /// The namespaces of its objects.
    pub(crate) homes: Vec<&'o str>,
    pub(crate) is_annotated: bool,
    /// Whether its objects are deleted with it.
    pub(crate) takes_objects: bool,
    /// How it is deleted and leaves them.
    pub(crate) keep: WaysOut,
    /// The field that the write changes so that objects may be deleted, or are no longer those of this object.
    pub(crate) leaves: Option<String>,
}

/// Of how many namespaces the protection is looked up, because each may have to be read.
const MOST_HOMES: usize = 16;

/// The deletion of such an object together with those that it applies, an edit with which it deletes some of them, and the removal of its
/// annotation. Managers edit it: they write what is in Git.
pub(crate) fn of_applying<T>(
    case: &DeclarationCase<'_>,
    written: &DeclarationWrite<'_, T>,
    applying: Applying<'_>,
) -> CheckedAll {
    let Applying { manager, homes, is_annotated, takes_objects, keep, leaves } = applying;
    let leaves = leaves.filter(|_| written.after.is_some() && !case.policy.managers.contains(case.facts.actor.name));
    let removal = removal(case, written).filter(|removal| takes_objects || *removal == Removal::OfAnnotation);
    if removal.is_none() && leaves.is_none() {
        return Ok(Vec::new());
    }
    let release = ReleaseRef::new(written.namespace, &*written.name);
    let mut protected = None;
    for home in homes.into_iter().take(MOST_HOMES) {
        let at_home = ReleaseAtHome::new(Storage::Index, release.clone(), Some(home));
        protected = protection(case, &at_home, is_annotated)?;
        if protected.is_some() {
            break;
        }
    }
    let Some(protection) = protected else { return Ok(Vec::new()) };
    if removal == Some(Removal::OfAnnotation) {
        return Ok(vec![annotation_removed(case, release)]);
    }
    let (subject, by) = (case.subject(), protection.words());
    let sentence = match &leaves {
        Some(field) => {
            format!("{subject}: with this {field}, {manager} may delete objects of it, and {by} protects it.")
        }
        None => format!("{subject}: {manager} would delete its objects, and {by} protects it."),
    };
    let refusal = refusal(case.policy, release, &protection, sentence, keep);
    Ok(vec![match leaves {
        Some(field) => refusal.at(format!("/{}", field.replace('.', "/"))),
        None => refusal,
    }])
}

/// The deletion of an object that others are made from, and the removal of its annotation.
fn upstream(case: &DeclarationCase<'_>, written: &DeclarationWrite<'_, Upstream<'_>>, loss: &str) -> CheckedAll {
    let before = written.before.as_ref().filter(|before| before.metadata.deletion_timestamp.is_none());
    let (Some(before), Some(removal)) = (before, removal(case, written)) else {
        return Ok(Vec::new());
    };
    if removal == Removal::OfObject && before.preserves() {
        return Ok(Vec::new());
    }
    let release = ReleaseRef::new(written.namespace, &*written.name);
    let at_home = ReleaseAtHome::new(Storage::Index, release, before.home());
    let is_annotated = before.is_protected();
    let protection = match before.home() {
        Some(_) => protection(case, &at_home, is_annotated)?,
        None => is_annotated.then(|| Protection::Annotation(case.subject())),
    };
    let Some(protection) = protection else { return Ok(Vec::new()) };
    Ok(vec![match removal {
        Removal::OfAnnotation => annotation_removed(case, at_home.release),
        Removal::OfObject => {
            let sentence = format!("Without {}, {loss}, and {} protects it.", case.subject(), protection.words());
            refusal(case.policy, at_home.release, &protection, sentence, WaysOut::default())
        }
    }])
}

/// `Namespace shop holds release shop/web, and the policy protects it.`
fn held(case: &DeclarationCase<'_>, release: ReleaseRef, protection: &Protection) -> Refusal {
    let sentence = format!("{} holds release {release}, and {} protects it.", case.subject(), protection.words());
    refusal(case.policy, release, protection, sentence, WaysOut::default())
}

pub(crate) fn annotation_removed(case: &DeclarationCase<'_>, release: ReleaseRef) -> Refusal {
    let sentence = format!(
        "{}: the annotation {PROTECTED} protects release {release}: managers and controllers of the policy remove it.",
        case.subject()
    );
    let at_source = "remove it where the object comes from, usually Git";
    refusal(case.policy, release, &Protection::Annotation(case.subject()), sentence, at_source.into())
        .at(annotation_pointer(PROTECTED))
}
