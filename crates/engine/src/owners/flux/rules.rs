//! Flux's own rules, and the questions of other rules about a release that Flux may drive.

pub(crate) mod duplicate_release;
pub(crate) mod protected_release;
pub mod release;
pub(crate) mod retarget;
pub(crate) mod retry_strategy;
pub(crate) mod start;

use super::{HELM_RELEASE, HelmRelease};
use crate::facts::{Declaration, DeclarationWrite};
use crate::release::{History, ReleaseRef, Storage};
use crate::rules::declarations::case::{DeclarationCase, unless_unread};
use crate::rules::undecided::Undecided;

impl<'a> DeclarationCase<'a> {
    /// The write of a HelmRelease.
    pub(crate) fn helm_release(&self) -> Result<Option<&'a DeclarationWrite<'a, HelmRelease>>, Undecided> {
        match self.declaration {
            Declaration::HelmRelease(written, _) => Ok(Some(written)),
            other => unless_unread(other, &[HELM_RELEASE]),
        }
    }

    /// The records that Flux keeps for a release.
    pub(crate) fn history(&self, release: &ReleaseRef) -> Result<&'a History, Undecided> {
        self.history_in(Storage::Secret, release)
    }
}

#[cfg(test)]
pub(crate) mod tests;
