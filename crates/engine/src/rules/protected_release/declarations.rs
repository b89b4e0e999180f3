//! The doors of managers, and that of the whole namespace: deletions and edits after which a release is uninstalled, and edits that
//! take the protection away.

use super::protection::{Protection, ReleaseAtHome, is_installed, may_be_installed, refusal};
use crate::evidence::{Freshness, Knowledge, Located, Query};
use crate::facts::{Declaration, DeclarationWrite, Namespace};
use crate::object::{PROTECTED, annotation_pointer};
use crate::owners::flux::rules::release::helm_releases_in;
use crate::owners::flux::rules::retarget;
use crate::owners::flux::{self, HelmRelease, InstalledRelease};
use crate::owners::olm::{self, ClusterExtension};
use crate::owners::sveltos::rules::protected_commits;
use crate::release::{ReleaseRef, Storage};
use crate::rules::check::{CheckedAll, Refusal};
use crate::rules::declarations::case::{DeclarationCase, unread};
use crate::rules::home::{is_proven, records_of_extension};
use crate::rules::undecided::{Undecided, lookup};
use crate::rules::wording::quoted;

pub(super) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    if case.policy.controllers.contains(case.facts.actor.name) {
        return Ok(Vec::new());
    }
    match case.declaration {
        Declaration::HelmRelease(written, _) => helm_release(case, written),
        Declaration::ClusterExtension(written) => extension(case, written),
        Declaration::Namespace(written) => namespace(case, written),
        Declaration::ConfigurationGroup(..) => protected_commits::check(case),
        // Whether what cannot be parsed is annotated is not known either, and most clusters protect nothing.
        Declaration::Unparsed { .. } if case.policy.protected.names_nothing() => Ok(Vec::new()),
        Declaration::Unparsed { kind: flux::HELM_RELEASE | olm::CLUSTER_EXTENSION | "Namespace", why, .. } => {
            Err(unread(&format!("it cannot be parsed ({why})")))
        }
        Declaration::Unparsed { .. } | Declaration::ClusterObjectSet(_) => Ok(Vec::new()),
    }
}

/// How a write takes the protection of an object away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Removal {
    /// The object is deleted.
    OfObject,
    /// The annotation is removed, by somebody who is no manager: managers write what Git has.
    OfAnnotation,
}

fn removal<T>(case: &DeclarationCase<'_>, written: &DeclarationWrite<'_, T>) -> Option<Removal> {
    match &written.after {
        None => Some(Removal::OfObject),
        Some(_) if case.declaration.loses_protection() && !case.policy.managers.contains(case.facts.actor.name) => {
            Some(Removal::OfAnnotation)
        }
        Some(_) => None,
    }
}

fn helm_release(case: &DeclarationCase<'_>, written: &DeclarationWrite<'_, HelmRelease>) -> CheckedAll {
    let Some(before) = written.before.as_ref().filter(|before| before.metadata.deletion_timestamp.is_none()) else {
        return Ok(Vec::new());
    };
    let Some(installed) = before.installed() else {
        return Ok(Vec::new());
    };
    let removal = removal(case, written);
    let concerns = match (removal, &written.after) {
        // Flux leaves the release of a HelmRelease that it ignores.
        (Some(Removal::OfObject), _) => !before.spec.suspend,
        (Some(Removal::OfAnnotation), _) => true,
        (None, Some(after)) => !written.same_spec && retarget::abandons(before, after, installed),
        (None, None) => false,
    };
    if !concerns {
        return Ok(Vec::new());
    }
    let at_home = ReleaseAtHome::new(Storage::Secret, installed.release(), None);
    let Some(protection) = protection(case, &at_home, before.metadata.is_protected())? else {
        return Ok(Vec::new());
    };
    if !is_installed_by_flux(case, before, installed)? {
        return Ok(Vec::new());
    }
    let release = at_home.release;
    let sentence = || uninstalls(case, "Flux", &release, &protection);
    Ok(vec![match removal {
        Some(Removal::OfAnnotation) => annotation_removed(case, release),
        Some(Removal::OfObject) => {
            let (namespace, name) = (case.declaration.namespace(), case.declaration.name());
            let patch = r#"{"spec":{"suspend":true}}"#;
            let suspend =
                quoted(&["kubectl", "patch", "helmrelease", name, "-n", namespace, "--type", "merge", "-p", patch]);
            let keep = format!(
                "To delete the HelmRelease and keep its release, suspend it first ({suspend}), and try again. "
            );
            refusal(case.policy, release.clone(), sentence(), &keep)
        }
        None => {
            let keep = "Create another HelmRelease for the new release. ";
            refusal(case.policy, release.clone(), sentence(), keep).at("/spec")
        }
    }])
}

/// Whether a revision of the installed release was ever deployed. The records of another cluster are not known.
fn is_installed_by_flux(
    case: &DeclarationCase<'_>,
    before: &HelmRelease,
    installed: InstalledRelease<'_>,
) -> Result<bool, Undecided> {
    Ok(!matches!(retarget::deployed(case, before, installed)?, retarget::Deployed::Never))
}

fn extension(case: &DeclarationCase<'_>, written: &DeclarationWrite<'_, ClusterExtension<'_>>) -> CheckedAll {
    let before = written.before.as_ref().filter(|before| before.metadata.deletion_timestamp.is_none());
    let (Some(before), Some(removal)) = (before, removal(case, written)) else {
        return Ok(Vec::new());
    };
    // An extension has no namespace; its objects have.
    let release = ReleaseRef::new("", &*written.name);
    let at_home = ReleaseAtHome::new(Storage::OlmIndex, release, Some(&before.spec.namespace));
    let Some(protection) = protection(case, &at_home, before.metadata.is_protected())? else {
        return Ok(Vec::new());
    };
    if !is_installed_by_olm(case, before, &written.name)? {
        return Ok(Vec::new());
    }
    let release = at_home.release;
    Ok(vec![match removal {
        Removal::OfAnnotation => annotation_removed(case, release),
        Removal::OfObject => {
            let sentence = uninstalls(case, "OLM", &release, &protection);
            refusal(case.policy, release, sentence, "")
        }
    }])
}

/// Whether OLM has ever deployed the extension.
fn is_installed_by_olm(
    case: &DeclarationCase<'_>,
    before: &ClusterExtension<'_>,
    name: &str,
) -> Result<bool, Undecided> {
    if before.has_revisions() {
        return Ok(true);
    }
    let query = Query::Extension { name: name.to_owned(), freshness: Freshness::Live };
    let found = match lookup(case.evidence, query)? {
        Some(Knowledge::Release(found)) => records_of_extension(found, case.policy),
        _ => None,
    };
    Ok(found.is_some_and(|located| is_installed(&located.history)))
}

/// The namespace goes with its records, with the objects of releases whose records are elsewhere, and with its HelmReleases.
fn namespace(case: &DeclarationCase<'_>, written: &DeclarationWrite<'_, Namespace<'_>>) -> CheckedAll {
    let before = written.before.as_ref().filter(|before| before.metadata.deletion_timestamp.is_none());
    let (Some(before), Some(removal)) = (before, removal(case, written)) else {
        return Ok(Vec::new());
    };
    let is_annotated = before.metadata.is_protected();
    let mut refusals = Vec::new();
    if is_annotated || !case.policy.protected.names_nothing() {
        for (name, located) in releases_in(case, &written.name)? {
            let at_home = ReleaseAtHome::of_records(located, name);
            if !(is_annotated || at_home.is_covered(case.policy)) || !is_installed_here(case, located, &at_home)? {
                continue;
            }
            refusals.push(match removal {
                Removal::OfAnnotation => annotation_removed(case, at_home.release),
                Removal::OfObject if at_home.is_covered(case.policy) => {
                    held(case, at_home.release, &Protection::Policy)
                }
                Removal::OfObject => held(case, at_home.release, &Protection::Annotation(case.subject())),
            });
        }
    }
    if removal == Removal::OfObject && refusals.is_empty() {
        for driver in helm_releases_in(case.evidence, &written.name)?.iter().filter(|driver| driver.protected) {
            // Flux leaves the release of a HelmRelease that it ignores.
            let installed = driver.installed().filter(|_| !driver.suspended && !driver.being_deleted);
            let declaration = format!("HelmRelease {}/{}", driver.namespace, driver.name);
            refusals.extend(installed.map(|it| held(case, it.clone(), &Protection::Annotation(declaration))));
        }
    }
    Ok(refusals)
}

/// Whether a release that was found for a namespace is installed: by its records there, or by proven ones elsewhere as they are now.
/// Anybody can write a record somewhere that names this namespace, and that costs no read.
fn is_installed_here(
    case: &DeclarationCase<'_>,
    located: &Located,
    ReleaseAtHome { release, .. }: &ReleaseAtHome,
) -> Result<bool, Undecided> {
    if located.namespace == case.declaration.name() {
        return Ok(is_installed(&located.history));
    }
    let may_be = is_proven(located, case.policy) && may_be_installed(&located.history);
    Ok(may_be && is_installed(case.history_in(located.storage, release)?))
}

fn releases_in<'a>(case: &DeclarationCase<'a>, namespace: &str) -> Result<&'a [(String, Located)], Undecided> {
    match lookup(case.evidence, Query::ReleasesIn { namespace: namespace.to_owned() })? {
        Some(Knowledge::Releases(found)) => Ok(found),
        _ => Ok(&[]),
    }
}

/// What protects the release of the declaration of a request.
fn protection(
    case: &DeclarationCase<'_>,
    at_home: &ReleaseAtHome,
    is_annotated: bool,
) -> Result<Option<Protection>, Undecided> {
    at_home.protection_declared_by((case.subject(), is_annotated), case.policy, case.evidence)
}

/// `HelmRelease shop/web: Flux would uninstall release shop/web, and the policy protects it.`
fn uninstalls(case: &DeclarationCase<'_>, manager: &str, release: &ReleaseRef, protection: &Protection) -> String {
    format!("{}: {manager} would uninstall release {release}, and {} protects it.", case.subject(), protection.words())
}

/// `Namespace shop holds release shop/web, and the policy protects it.`
fn held(case: &DeclarationCase<'_>, release: ReleaseRef, protection: &Protection) -> Refusal {
    let sentence = format!("{} holds release {release}, and {} protects it.", case.subject(), protection.words());
    refusal(case.policy, release, sentence, "")
}

fn annotation_removed(case: &DeclarationCase<'_>, release: ReleaseRef) -> Refusal {
    let sentence = format!(
        "{}: the annotation {PROTECTED} protects release {release}, and only managers and controllers of the policy remove it.",
        case.subject()
    );
    refusal(case.policy, release, sentence, "Remove it where the object comes from, usually Git. ")
        .at(annotation_pointer(PROTECTED))
}
