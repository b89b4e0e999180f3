//! Writes of a HelmRelease with which Flux starts to uninstall its release.

use super::protected_release::is_installed;
use super::retarget::leaves;
use crate::facts::DeclarationWrite;
use crate::owners::flux::{HelmRelease, NAME};
use crate::release::Storage;
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::freeze::started::StartedOperation;
use crate::rules::protected_release::protection::ReleaseAtHome;
use crate::rules::undecided::Undecided;

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
