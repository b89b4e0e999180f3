//! The deletion of a HelmRelease with a protected release, edits that abandon the release, and the removal of the annotation.

use crate::evidence::Evidence;
use crate::facts::DeclarationWrite;
use crate::owners::flux::rules::release::{helm_releases, helm_releases_in};
use crate::owners::flux::rules::retarget;
use crate::owners::flux::{HelmRelease, InstalledRelease, NAME};
use crate::release::{ReleaseRef, Stamps, Storage};
use crate::rules::check::{CheckedAll, Step, Way, WaysOut};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::protected_release::declarations::{Removal, annotation_removed, protection, removal, uninstalls};
use crate::rules::protected_release::protection::{self, Protection, ReleaseAtHome, by_stamps, refusal};
use crate::rules::undecided::Undecided;
use crate::rules::wording::command;

pub(crate) fn check(case: &DeclarationCase<'_>, written: &DeclarationWrite<'_, HelmRelease>) -> CheckedAll {
    let Some(before) = written.before.as_ref().filter(|before| before.metadata.deletion_timestamp.is_none()) else {
        return Ok(Vec::new());
    };
    let Some(installed) = before.installed() else {
        return Ok(Vec::new());
    };
    let removal = removal(case, written);
    let concerns = removal == Some(Removal::OfAnnotation) || retarget::leaves(written).is_some();
    if !concerns {
        return Ok(Vec::new());
    }
    let at_home = ReleaseAtHome::new(Storage::Secret, installed.release(), None);
    let Some(protection) = protection_of(case, before, &at_home)? else {
        return Ok(Vec::new());
    };
    if !is_installed(case, before, installed)? {
        return Ok(Vec::new());
    }
    let release = at_home.release;
    let sentence = || uninstalls(case, NAME, &release, &protection);
    Ok(vec![match removal {
        Some(Removal::OfAnnotation) => annotation_removed(case, release),
        Some(Removal::OfObject) => {
            let (namespace, name) = (case.declaration.namespace(), case.declaration.name());
            let patch = r#"{"spec":{"suspend":true}}"#;
            let suspend =
                command(&["kubectl", "patch", "helmrelease", name, "-n", namespace, "--type", "merge", "-p", patch]);
            let suspend = Step::run("suspend it first ({})", suspend);
            let keep = Way::from(suspend).then(Step::retry("try again"));
            let keep = WaysOut::default().when("to delete the HelmRelease and keep its release", keep);
            refusal(case.policy, release.clone(), &protection, sentence(), keep)
        }
        None => {
            let keep = "create another HelmRelease for the new release";
            refusal(case.policy, release.clone(), &protection, sentence(), keep.into()).at("/spec")
        }
    }])
}

/// What protects the installed release of the request's HelmRelease. The stamps count too: they may be of another HelmRelease, which
/// installed the release before this one.
pub(crate) fn protection_of(
    case: &DeclarationCase<'_>,
    before: &HelmRelease,
    at_home: &ReleaseAtHome,
) -> Result<Option<Protection>, Undecided> {
    let found = protection(case, at_home, before.metadata.is_protected())?;
    if found.is_some() || before.spec.kube_config.is_some() {
        return Ok(found);
    }
    by_stamps(case.evidence, &at_home.release, case.history(&at_home.release)?.protectors())
}

/// Whether a revision of the installed release may have been deployed. True if the records are on another cluster, because they
/// are unknown.
pub(crate) fn is_installed(
    case: &DeclarationCase<'_>,
    before: &HelmRelease,
    installed: InstalledRelease<'_>,
) -> Result<bool, Undecided> {
    Ok(!matches!(retarget::deployed(case, before, installed)?, retarget::Deployed::Never))
}

/// The HelmRelease in the records' namespace that has installed the release and is annotated as protected.
pub(crate) fn annotated(
    evidence: &Evidence,
    ReleaseRef { namespace, name }: &ReleaseRef,
) -> Result<Option<String>, Undecided> {
    let mut here =
        helm_releases(evidence, namespace, name, Stamps::NONE)?.iter().filter(|driver| driver.kube_config.is_none());
    let annotated = here.find(|driver| driver.protected && driver.has_installed(namespace, name));
    Ok(annotated.map(|driver| format!("HelmRelease {}/{}", driver.namespace, driver.name)))
}

/// The releases of the annotated HelmReleases in a namespace, and the names of these HelmReleases. A suspended one counts: deleting
/// the namespace deletes its records and objects too. If its status has forgotten the release, its records say whether there is one.
pub(crate) fn annotated_in(
    case: &DeclarationCase<'_>,
    namespace: &str,
) -> Result<Vec<(ReleaseRef, String)>, Undecided> {
    let annotated = helm_releases_in(case.evidence, namespace)?.iter().filter(|driver| driver.protected);
    let mut releases = Vec::new();
    for driver in annotated.filter(|driver| !driver.being_deleted) {
        let installed = match driver.installed() {
            Some(installed) => Some(installed),
            None if driver.kube_config.is_none() => with_records(case, driver.driven().next())?,
            None => None,
        };
        let name = format!("HelmRelease {}/{}", driver.namespace, driver.name);
        releases.extend(installed.map(|release| (release.clone(), name)));
    }
    Ok(releases)
}

/// The release, if its records say that it is installed.
fn with_records<'r>(
    case: &DeclarationCase<'_>,
    release: Option<&'r ReleaseRef>,
) -> Result<Option<&'r ReleaseRef>, Undecided> {
    let Some(release) = release else { return Ok(None) };
    let history = case.history_in(Storage::Secret, release)?;
    Ok(protection::is_installed(history).then_some(release))
}
