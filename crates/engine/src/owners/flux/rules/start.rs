//! Writes of a HelmRelease with which Flux starts to uninstall its release.

use super::protected_release::is_installed;
use super::retarget;
use crate::facts::DeclarationWrite;
use crate::owners::flux::{HelmRelease, InstalledRelease, NAME};
use crate::release::Storage;
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::freeze::started::StartedOperation;
use crate::rules::protected_release::protection::ReleaseAtHome;
use crate::rules::undecided::Undecided;

/// The installed release that Flux uninstalls after a write, and the HelmRelease before it; `None` if it keeps the release.
pub(crate) fn leaves<'w>(
    written: &'w DeclarationWrite<'_, HelmRelease>,
) -> Option<(&'w HelmRelease, InstalledRelease<'w>)> {
    let before = written.before.as_ref().filter(|before| before.metadata.deletion_timestamp.is_none())?;
    let installed = before.installed()?;
    let leaves = match &written.after {
        // Flux keeps the release of a suspended HelmRelease.
        None => !before.spec.suspend,
        Some(after) => !written.same_spec && retarget::abandons(before, after, installed),
    };
    leaves.then_some((before, installed))
}

pub(crate) fn started(
    case: &DeclarationCase<'_>,
    written: &DeclarationWrite<'_, HelmRelease>,
) -> Result<Option<StartedOperation>, Undecided> {
    let Some((before, installed)) = leaves(written) else {
        return Ok(None);
    };
    if !is_installed(case, before, installed)? {
        return Ok(None);
    }
    let release = installed.release();
    let sentence = format!("{}: {NAME} would uninstall release {release}", case.subject());
    Ok(Some(StartedOperation::of(ReleaseAtHome::new(Storage::Secret, release, None), sentence)))
}
