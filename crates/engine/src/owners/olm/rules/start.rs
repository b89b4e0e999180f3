//! Writes with which OLM starts an operation: a new revision, and the removal of an extension.

use super::extension::{extension, namespace_of_extension};
use super::protected_release::is_installed;
use super::revision::{Removed, removed};
use crate::facts::DeclarationWrite;
use crate::owners::olm::{ClusterExtension, ClusterObjectSet, MIGRATED_LABEL, NAME};
use crate::release::{ReleaseRef, Storage};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::freeze::started::StartedOperation;
use crate::rules::protected_release::protection::ReleaseAtHome;
use crate::rules::undecided::Undecided;

pub(crate) fn by_extension(
    case: &DeclarationCase<'_>,
    written: &DeclarationWrite<'_, ClusterExtension<'_>>,
) -> Result<Option<StartedOperation>, Undecided> {
    let before = written.before.as_ref().filter(|before| before.metadata.deletion_timestamp.is_none());
    let Some(before) = before.filter(|_| written.after.is_none()) else {
        return Ok(None);
    };
    if !is_installed(case, before, &written.name)? {
        return Ok(None);
    }
    let sentence = format!("{}: {NAME} would uninstall it", case.subject());
    Ok(Some(StartedOperation::of(at_home(&written.name, Some(&before.spec.namespace)), sentence)))
}

pub(crate) fn by_revision(
    case: &DeclarationCase<'_>,
    written: &DeclarationWrite<'_, ClusterObjectSet<'_>>,
) -> Result<Option<StartedOperation>, Undecided> {
    let (name, act) = match (&written.before, &written.after) {
        (None, Some(after)) => {
            // The first revision after a migration deploys what is there already.
            let is_migration =
                after.metadata.label(MIGRATED_LABEL).is_some() && case.policy.managers.contains(case.facts.actor.name);
            let name = after.extension().filter(|_| !is_migration);
            let Some(name) = name else { return Ok(None) };
            if extension(case.evidence, name)?.is_none() {
                return Ok(None);
            }
            (name.to_owned(), "starts")
        }
        _ => match removed(case, written)? {
            Some(Removed { extension, .. }) => (extension, "removes"),
            None => return Ok(None),
        },
    };
    let namespace = namespace_of_extension(case.evidence, &name)?;
    let sentence = format!("{} {act} a revision of ClusterExtension {name}", case.subject());
    Ok(Some(StartedOperation::of(at_home(&name, namespace.as_deref()), sentence)))
}

/// An extension has no namespace, only its objects do.
fn at_home(extension: &str, namespace: Option<&str>) -> ReleaseAtHome {
    ReleaseAtHome::new(Storage::Index, ReleaseRef::new("", extension), namespace)
}
