//! The HelmReleases of a release: the accounts that act for them, and how long Flux may be silent.

use jiff::{SignedDuration, Timestamp};

use crate::evidence::{Evidence, question};
use crate::facts::Actor;
use crate::owners::flux::Driver;
use crate::policy::Policy;
use crate::release::Storage;
use crate::rules::undecided::{Undecided, ask};

/// A release in this cluster that Flux may manage.
#[derive(Clone, Copy)]
pub struct DrivenRelease<'a> {
    pub storage: Storage,
    pub namespace: &'a str,
    pub release: &'a str,
    /// The user who holds the operation, or held the last one; `None` if unknown.
    pub holder: Option<&'a str>,
}

/// The HelmReleases that may own these records, oldest first, including those with a release on another cluster. They are in the
/// records' namespace, or name the account of another namespace that holds the newest record.
pub(crate) fn helm_releases<'e>(
    evidence: &'e Evidence,
    namespace: &str,
    release: &str,
    holder: Option<&str>,
) -> Result<&'e [Driver], Undecided> {
    match ask(evidence, question::HelmReleases::of(namespace, release, holder))? {
        Some(Ok(drivers)) => Ok(drivers),
        Some(Err(why)) => Err(Undecided::HelmReleasesOverLimit(why.clone())),
        None => Ok(&[]),
    }
}

/// The HelmReleases in a namespace, read live.
pub(crate) fn helm_releases_in<'e>(evidence: &'e Evidence, namespace: &str) -> Result<&'e [Driver], Undecided> {
    let found = ask(evidence, question::HelmReleasesIn { namespace: namespace.to_owned() })?;
    Ok(found.map_or(&[], Vec::as_slice))
}

impl DrivenRelease<'_> {
    /// The HelmReleases for which Flux acts on the release. Flux stores records as Secrets, in the cluster of the release.
    ///
    /// An author of a HelmRelease can name records in any namespace. That must give no power over another user's release, and
    /// must not delay its recovery. So a HelmRelease in another namespace counts only if Flux holds the release with the account
    /// that the HelmRelease names. Its status proves nothing. A HelmRelease in the records' namespace counts while Flux holds
    /// them, or has installed them.
    fn behind<'e>(
        self,
        evidence: &'e Evidence,
        policy: &Policy,
    ) -> Result<impl Iterator<Item = &'e Driver>, Undecided> {
        let drivers = match self.storage {
            Storage::Secret => helm_releases(evidence, self.namespace, self.release, self.holder)?,
            Storage::ConfigMap | Storage::Index => &[],
        };
        Ok(drivers.iter().filter(move |driver| self.is_driven_by(driver, policy)))
    }

    /// The HelmRelease for which Flux acts on the release; `None` if it is suspended.
    pub(crate) fn at_work<'e>(self, evidence: &'e Evidence, policy: &Policy) -> Result<Option<&'e Driver>, Undecided> {
        Ok(self.behind(evidence, policy)?.next().filter(|driver| !driver.suspended))
    }

    /// Whether Flux acts on the release for a HelmRelease that names its records.
    pub fn is_driven_by(self, driver: &Driver, policy: &Policy) -> bool {
        let is_linked = match (self.holder, driver.namespace == self.namespace) {
            (None, is_near) => is_near,
            (Some(holder), true) => {
                is_flux(driver, policy, holder) || driver.has_installed(self.namespace, self.release)
            }
            (Some(holder), false) => driver.is_account(holder),
        };
        driver.kube_config.is_none() && is_linked
    }

    /// The HelmReleases among these that name its records.
    pub fn helm_releases_among(self, all: &[Driver]) -> Vec<Driver> {
        let naming = all.iter().filter(|driver| driver.drives(self.namespace, self.release));
        naming.filter(|_| self.storage == Storage::Secret).cloned().collect()
    }

    /// The age at which an operation counts as stuck, given all HelmReleases that name its records.
    pub fn stale_after_with(self, drivers: &[Driver], policy: &Policy) -> SignedDuration {
        let behind = drivers.iter().filter(|driver| self.is_driven_by(driver, policy));
        policy.recovery.patience(behind.map(|driver| driver.longest_timeout))
    }

    /// Whether this user is the account with which Flux acts for one of the release's HelmReleases.
    pub(crate) fn is_driver_account(
        self,
        evidence: &Evidence,
        policy: &Policy,
        actor: Actor<'_>,
    ) -> Result<bool, Undecided> {
        // Flux impersonates only service accounts, so other users need no query.
        if !actor.is_service_account() {
            return Ok(false);
        }
        Ok(self.behind(evidence, policy)?.any(|driver| driver.is_account(actor.name)))
    }

    /// Whether an actor may continue the holder's operation, because both are, or may have been, accounts of Flux for the same
    /// HelmRelease. The account that a HelmRelease names may change, also to and from the controller's account.
    pub(crate) fn is_handover(self, evidence: &Evidence, policy: &Policy, actor: Actor<'_>) -> Result<bool, Undecided> {
        let Some(holder) = self.holder.filter(|_| actor.is_service_account()) else {
            return Ok(false);
        };
        Ok(self.behind(evidence, policy)?.any(|driver| {
            (policy.managers.contains(actor.name) || driver.is_account(actor.name)) && is_flux(driver, policy, holder)
        }))
    }

    /// A HelmRelease for which the actor may be Flux at work: as the controller, or with the account that the HelmRelease names.
    pub(crate) fn reconciled_by<'e>(
        self,
        evidence: &'e Evidence,
        policy: &Policy,
        actor: Actor<'_>,
    ) -> Result<Option<&'e Driver>, Undecided> {
        if !actor.is_service_account() || self.storage != Storage::Secret {
            return Ok(None);
        }
        let drivers = helm_releases(evidence, self.namespace, self.release, self.holder)?;
        let is_at_work = |driver: &Driver| policy.managers.contains(actor.name) || driver.is_account(actor.name);
        let mut here = drivers.iter().filter(|driver| driver.kube_config.is_none());
        Ok(here.find(|driver| is_at_work(driver)))
    }

    /// The age at which an operation with this start counts as stuck: the policy's `staleAfter`, or the longest timeout of its
    /// HelmReleases if that is longer, but at most `maxPatience`. Flux may be silent for that long.
    ///
    /// Queries nothing while the operation is younger than `staleAfter`.
    pub(crate) fn stale_after(
        self,
        evidence: &Evidence,
        policy: &Policy,
        started: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<SignedDuration, Undecided> {
        let stale_after = policy.recovery.stale_after;
        if !policy.recovery.is_stale(started, now) {
            return Ok(stale_after);
        }
        Ok(policy.recovery.patience(self.behind(evidence, policy)?.map(|driver| driver.longest_timeout)))
    }

    /// Whether an operation with this start counts as stuck.
    pub(crate) fn is_stale(
        self,
        evidence: &Evidence,
        policy: &Policy,
        started: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<bool, Undecided> {
        let stale_after = self.stale_after(evidence, policy, started, now)?;
        Ok(started.is_some_and(|started| now.duration_since(started) >= stale_after))
    }
}

/// Whether a user is, or may have been, an account of Flux for a HelmRelease.
fn is_flux(driver: &Driver, policy: &Policy, user: &str) -> bool {
    policy.managers.contains(user) || driver.may_have_been_account(user)
}
