//! The deletion of a protected ClusterExtension, and the removal of its annotation.

use crate::evidence::{CandidateRecords, Evidence, Freshness, question};
use crate::facts::DeclarationWrite;
use crate::owners::olm::rules::extension::extension;
use crate::owners::olm::rules::revision::{Removed, removed};
use crate::owners::olm::{CLUSTER_EXTENSION, ClusterExtension, ClusterObjectSet, NAME};
use crate::release::{ReleaseRef, Storage};
use crate::rules::check::{CheckedAll, WaysOut};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::home::records_of_extension;
use crate::rules::protected_release::declarations::{Removal, annotation_removed, protection, removal, uninstalls};
use crate::rules::protected_release::protection::{self, Protection, ReleaseAtHome, by_stamps, refusal};
use crate::rules::undecided::{Undecided, ask};

pub(crate) fn check(case: &DeclarationCase<'_>, written: &DeclarationWrite<'_, ClusterExtension<'_>>) -> CheckedAll {
    let before = written.before.as_ref().filter(|before| before.metadata.deletion_timestamp.is_none());
    let (Some(before), Some(removal)) = (before, removal(case, written)) else {
        return Ok(Vec::new());
    };
    // An extension has no namespace, only its objects do.
    let release = ReleaseRef::new("", &*written.name);
    let at_home = ReleaseAtHome::new(Storage::Index, release, Some(&before.spec.namespace));
    let Some(protection) = protection_of(case, before, &at_home)? else {
        return Ok(Vec::new());
    };
    if !is_installed(case, before, &written.name)? {
        return Ok(Vec::new());
    }
    let release = at_home.release;
    Ok(vec![match removal {
        Removal::OfAnnotation => annotation_removed(case, release),
        Removal::OfObject => {
            let sentence = uninstalls(case, NAME, &release, &protection);
            refusal(case.policy, release, &protection, sentence, WaysOut::default())
        }
    }])
}

/// The refusal of a write that removes the only revision of a protected extension. OLM itself archives a revision once another one has
/// taken over its objects, perhaps before the status of the extension lists that one.
pub(crate) fn check_revision(
    case: &DeclarationCase<'_>,
    written: &DeclarationWrite<'_, ClusterObjectSet<'_>>,
) -> CheckedAll {
    if written.after.is_some() && case.policy.managers.contains(case.facts.actor.name) {
        return Ok(Vec::new());
    }
    let Some(Removed { extension, read, .. }) = removed(case, written)?.filter(|removed| removed.is_only) else {
        return Ok(Vec::new());
    };
    if read.metadata.deletion_timestamp.is_some() {
        return Ok(Vec::new());
    }
    let at_home = ReleaseAtHome::new(Storage::Index, ReleaseRef::new("", &*extension), Some(&read.spec.namespace));
    let declared = (format!("{CLUSTER_EXTENSION} {extension}"), read.metadata.is_protected());
    let Some(protection) = at_home.protection_declared_by(declared, case.policy, case.evidence)? else {
        return Ok(Vec::new());
    };
    let sentence = format!(
        "{} is the only revision of {CLUSTER_EXTENSION} {extension}: its objects would go with it, and {} protects them.",
        case.subject(),
        protection.words()
    );
    Ok(vec![refusal(case.policy, at_home.release, &protection, sentence, WaysOut::default())])
}

/// The protected extensions that OLM has installed into a namespace as revisions, without records of Helm.
pub(crate) fn protected_in(
    case: &DeclarationCase<'_>,
    namespace: &str,
) -> Result<Vec<(ReleaseRef, Protection)>, Undecided> {
    let texts = ask(case.evidence, question::ExtensionsIn { namespace: namespace.to_owned() })?;
    let mut protected = Vec::new();
    for text in texts.into_iter().flatten() {
        let Ok(read) = serde_json::from_str::<ClusterExtension<'_>>(text) else { continue };
        if !read.has_revisions() || read.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let name = &*read.metadata.name;
        let at_home = ReleaseAtHome::new(Storage::Index, ReleaseRef::new("", name), Some(namespace));
        let declared = (format!("{CLUSTER_EXTENSION} {name}"), read.metadata.is_protected());
        let protection = at_home.protection_declared_by(declared, case.policy, case.evidence)?;
        protected.extend(protection.map(|protection| (at_home.release, protection)));
    }
    Ok(protected)
}

/// Whether OLM has ever deployed the extension.
pub(crate) fn is_installed(
    case: &DeclarationCase<'_>,
    before: &ClusterExtension<'_>,
    name: &str,
) -> Result<bool, Undecided> {
    if before.has_revisions() {
        return Ok(true);
    }
    Ok(records(case, name)?.is_some_and(|candidate| protection::is_installed(&candidate.history)))
}

/// The records of an extension, read live.
fn records<'a>(case: &DeclarationCase<'a>, name: &str) -> Result<Option<&'a CandidateRecords>, Undecided> {
    let found = ask(case.evidence, question::Extension { name: name.to_owned(), freshness: Freshness::Live })?;
    Ok(found.and_then(|found| records_of_extension(found, case.policy)))
}

/// What protects the request's ClusterExtension. The stamps on its records may be of an earlier extension of this name.
fn protection_of(
    case: &DeclarationCase<'_>,
    before: &ClusterExtension<'_>,
    at_home: &ReleaseAtHome,
) -> Result<Option<Protection>, Undecided> {
    let found = protection(case, at_home, before.metadata.is_protected())?;
    if found.is_some() || before.has_revisions() {
        return Ok(found);
    }
    let name = &at_home.release.name;
    let Some(candidate) = records(case, name)? else { return Ok(None) };
    by_stamps(case.evidence, &ReleaseRef::new(&candidate.namespace, name), candidate.history.protectors())
}

/// The ClusterExtension of a release, if it is annotated as protected.
pub(crate) fn annotated(evidence: &Evidence, name: &str) -> Result<Option<String>, Undecided> {
    let annotated = extension(evidence, name)?.filter(|it| it.metadata.is_protected());
    Ok(annotated.map(|_| format!("{CLUSTER_EXTENSION} {name}")))
}
