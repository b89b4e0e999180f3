//! The doors of managers, and that of the whole namespace: what is deleted or changed so that a release goes.

use super::protection::{Reason, refusal, stands};
use crate::engine::evidence::{Freshness, Knowledge, Query};
use crate::engine::facts::{ActorKind, Declaration, DeclarationWrite, Namespace};
use crate::engine::flux::{self, HelmRelease, InstalledRelease};
use crate::engine::object::{PROTECTED, annotation_pointer};
use crate::engine::olm::{self, ClusterExtension};
use crate::engine::release::{History, ReleaseRef};
use crate::engine::rules::check::{CheckedAll, Refusal};
use crate::engine::rules::declarations::case::{DeclarationCase, unread};
use crate::engine::rules::declarations::retarget;
use crate::engine::rules::home::records_of_extension;
use crate::engine::rules::undecided::{Undecided, lookup};
use crate::engine::rules::wording::quoted;

pub(super) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    if case.policy.controllers.contains(case.facts.actor.name) {
        return Ok(Vec::new());
    }
    match case.declaration {
        Declaration::HelmRelease(written, _) => helm_release(case, written),
        Declaration::ClusterExtension(written) => extension(case, written),
        Declaration::Namespace(written) => namespace(case, written),
        // Whether what cannot be parsed is annotated is not known either, and most clusters protect nothing.
        Declaration::Unparsed { .. } if case.policy.protected.names_nothing() => Ok(Vec::new()),
        Declaration::Unparsed { kind: flux::HELM_RELEASE | olm::CLUSTER_EXTENSION | "Namespace", why, .. } => {
            Err(unread(&format!("it cannot be parsed ({why})")))
        }
        Declaration::Unparsed { .. } | Declaration::ClusterObjectSet(_) | Declaration::ConfigurationGroup(..) => {
            Ok(Vec::new())
        }
    }
}

/// What a write does to a protected object.
enum Act {
    /// It is deleted.
    Deletes,
    /// A person takes the annotation off.
    TakesOff,
    /// Neither.
    Other,
}

impl Act {
    fn of<T>(case: &DeclarationCase<'_>, written: &DeclarationWrite<'_, T>, is_protected: impl Fn(&T) -> bool) -> Self {
        let was_protected = written.before.as_ref().is_some_and(&is_protected);
        match &written.after {
            None => Self::Deletes,
            Some(after) if was_protected && !is_protected(after) && case.facts.actor.kind == ActorKind::Person => {
                Self::TakesOff
            }
            Some(_) => Self::Other,
        }
    }
}

fn helm_release(case: &DeclarationCase<'_>, written: &DeclarationWrite<'_, HelmRelease>) -> CheckedAll {
    let Some(before) = written.before.as_ref().filter(|before| before.metadata.deletion_timestamp.is_none()) else {
        return Ok(Vec::new());
    };
    let Some(installed) = before.installed() else {
        return Ok(Vec::new());
    };
    let act = Act::of(case, written, |side| side.metadata.is_protected());
    let gives_up = match (&act, &written.after) {
        // Flux leaves the release of a HelmRelease that it ignores.
        (Act::Deletes, _) => !before.spec.suspend,
        (Act::TakesOff, _) => true,
        (Act::Other, after) => {
            !written.same_spec && after.as_ref().is_some_and(|after| retarget::abandons(before, after, installed))
        }
    };
    let release = installed.release();
    let reason = if case.policy.protected.covers(&release) { Reason::Policy } else { Reason::Annotation };
    if !gives_up
        || (reason == Reason::Annotation && !before.metadata.is_protected())
        || !stands_in_flux(case, before, installed)?
    {
        return Ok(Vec::new());
    }
    Ok(vec![match act {
        Act::TakesOff => taken_off(case, release),
        Act::Deletes => {
            let (namespace, name) = (case.declaration.namespace(), case.declaration.name());
            let patch = r#"{"spec":{"suspend":true}}"#;
            let suspend =
                quoted(&["kubectl", "patch", "helmrelease", name, "-n", namespace, "--type", "merge", "-p", patch]);
            let keep = format!(
                "To delete the HelmRelease and keep its release, suspend it first ({suspend}), and try again. "
            );
            refusal(case.policy, release.clone(), uninstalls(case, "Flux", &release, reason), &keep)
        }
        Act::Other => {
            let keep = "Create another HelmRelease for the new release. ";
            refusal(case.policy, release.clone(), uninstalls(case, "Flux", &release, reason), keep).at("/spec")
        }
    }])
}

/// Whether a revision of the installed release was ever deployed. The records of another cluster are not known.
fn stands_in_flux(
    case: &DeclarationCase<'_>,
    before: &HelmRelease,
    installed: InstalledRelease<'_>,
) -> Result<bool, Undecided> {
    Ok(!matches!(retarget::deployed(case, before, installed)?, retarget::Deployed::Never))
}

fn extension(case: &DeclarationCase<'_>, written: &DeclarationWrite<'_, ClusterExtension<'_>>) -> CheckedAll {
    let Some(before) = written.before.as_ref().filter(|before| before.metadata.deletion_timestamp.is_none()) else {
        return Ok(Vec::new());
    };
    let act = Act::of(case, written, |side| side.metadata.is_protected());
    // An extension has no namespace; its objects have.
    let by_policy = case.policy.protected.covers(&ReleaseRef::new(&*before.spec.namespace, &written.name));
    let reason = if by_policy { Reason::Policy } else { Reason::Annotation };
    let is_protected = by_policy || before.metadata.is_protected();
    if matches!(act, Act::Other) || !is_protected || !stands_in_olm(case, before, &written.name)? {
        return Ok(Vec::new());
    }
    let release = ReleaseRef::new("", &*written.name);
    Ok(vec![match act {
        Act::TakesOff => taken_off(case, release),
        Act::Deletes | Act::Other => {
            let sentence = uninstalls(case, "OLM", &release, reason);
            refusal(case.policy, release, sentence, "")
        }
    }])
}

/// Whether OLM has ever deployed the extension.
fn stands_in_olm(case: &DeclarationCase<'_>, before: &ClusterExtension<'_>, name: &str) -> Result<bool, Undecided> {
    if before.has_revisions() {
        return Ok(true);
    }
    let query = Query::Extension { name: name.to_owned(), freshness: Freshness::Live };
    let found = match lookup(case.evidence, query)? {
        Some(Knowledge::Release(found)) => records_of_extension(found, case.policy),
        _ => None,
    };
    Ok(found.is_some_and(|located| stands(&located.history)))
}

fn namespace(case: &DeclarationCase<'_>, written: &DeclarationWrite<'_, Namespace<'_>>) -> CheckedAll {
    let Some(before) = written.before.as_ref().filter(|before| before.metadata.deletion_timestamp.is_none()) else {
        return Ok(Vec::new());
    };
    let act = Act::of(case, written, |side| side.metadata.is_protected());
    let is_annotated = before.metadata.is_protected();
    if matches!(act, Act::Other) || (!is_annotated && case.policy.protected.names_nothing()) {
        return Ok(Vec::new());
    }
    let standing = releases_in(case, &written.name)?.iter().filter(|(_, history)| stands(history));
    let refusals = standing.filter_map(|(release, _)| {
        let reason = match case.policy.protected.covers(release) {
            true => Reason::Policy,
            false if is_annotated => Reason::Annotation,
            false => return None,
        };
        if matches!(act, Act::TakesOff) {
            return Some(taken_off(case, release.clone()));
        }
        let sentence = format!("{} holds release {release}, and {} protects it.", case.subject(), reason.words());
        Some(refusal(case.policy, release.clone(), sentence, ""))
    });
    Ok(refusals.collect())
}

fn releases_in<'a>(case: &DeclarationCase<'a>, namespace: &str) -> Result<&'a [(ReleaseRef, History)], Undecided> {
    match lookup(case.evidence, Query::ReleasesIn { namespace: namespace.to_owned() })? {
        Some(Knowledge::Releases(found)) => Ok(found),
        _ => Ok(&[]),
    }
}

/// `HelmRelease shop/web cannot go: Flux would uninstall release shop/web, and the policy protects it.`
fn uninstalls(case: &DeclarationCase<'_>, manager: &str, release: &ReleaseRef, reason: Reason) -> String {
    format!("{}: {manager} would uninstall release {release}, and {} protects it.", case.subject(), reason.words())
}

fn taken_off(case: &DeclarationCase<'_>, release: ReleaseRef) -> Refusal {
    let sentence = format!(
        "{}: the annotation {PROTECTED} protects release {release}, and people do not take it off.",
        case.subject()
    );
    refusal(case.policy, release, sentence, "Remove it where the object comes from, usually Git. ")
        .at(annotation_pointer(PROTECTED))
}
