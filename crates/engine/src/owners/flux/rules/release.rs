//! The HelmReleases of a release: the accounts that act for them, and how long Flux may be silent.

use jiff::{SignedDuration, Timestamp};

use crate::evidence::{Evidence, question};
use crate::facts::Actor;
use crate::owners::flux::{CONTROLLER, Driver};
use crate::policy::Policy;
use crate::release::{DriverRef, ReleaseRef, Stamps, Storage};
use crate::rules::proven_status::proves;
use crate::rules::undecided::{Undecided, ask};

/// A release in this cluster that Flux may manage.
#[derive(Clone, Copy)]
pub struct DrivenRelease<'a> {
    pub storage: Storage,
    pub namespace: &'a str,
    pub release: &'a str,
    /// The stamps of the operation, or of the last one.
    pub stamps: &'a Stamps,
}

/// The HelmReleases that may own these records, oldest first, including those with a release on another cluster. They are in the
/// records' namespace, or the stamps of the newest record name them or their account.
pub(crate) fn helm_releases<'e>(
    evidence: &'e Evidence,
    namespace: &str,
    release: &str,
    stamps: &Stamps,
) -> Result<&'e [Driver], Undecided> {
    match ask(evidence, question::HelmReleases::of(namespace, release, stamps))? {
        Some(Ok(drivers)) => Ok(drivers),
        Some(Err(why)) => Err(Undecided::HelmReleasesOverLimit(why.clone())),
        None => Ok(&[]),
    }
}

/// The only one of these HelmReleases, all of which name the records of an operation and work as the user who starts it. Those in
/// the records' namespace come before others. `None` if there are none or several.
#[must_use]
pub fn only_driver<'d>(records: &ReleaseRef, drivers: &'d [Driver]) -> Option<DriverRef<'d>> {
    let (near, far): (Vec<_>, Vec<_>) = drivers.iter().partition(|driver| driver.namespace == records.namespace);
    match if near.is_empty() { far } else { near }[..] {
        [driver] if !driver.uid.is_empty() => Some(driver.reference()),
        _ => None,
    }
}

/// Whether Flux works as this user for a HelmRelease now: under the account that it names; if it names none, as a manager.
fn is_served_by(driver: &Driver, user: &str, policy: &Policy) -> bool {
    if driver.names_account() { driver.is_account(user) } else { policy.managers.contains(user) }
}

/// Whether Flux works as the actor for a HelmRelease with a release in this cluster now.
#[must_use]
pub fn works_for(driver: &Driver, actor: Actor<'_>, policy: &Policy) -> bool {
    let is_reconciled = !driver.suspended && driver.kube_config.is_none();
    is_reconciled && actor.is_service_account() && is_served_by(driver, actor.name, policy)
}

/// The HelmReleases in a namespace, read live.
pub(crate) fn helm_releases_in<'e>(evidence: &'e Evidence, namespace: &str) -> Result<&'e [Driver], Undecided> {
    let found = ask(evidence, question::HelmReleasesIn { namespace: namespace.to_owned() })?;
    Ok(found.map_or(&[], Vec::as_slice))
}

impl DrivenRelease<'_> {
    /// The HelmReleases that name the records. Flux stores records as Secrets, in the cluster of the release.
    fn named_by(self, evidence: &Evidence) -> Result<&[Driver], Undecided> {
        match self.storage {
            Storage::Secret => helm_releases(evidence, self.namespace, self.release, self.stamps),
            Storage::ConfigMap | Storage::Index => Ok(&[]),
        }
    }

    /// The HelmReleases for which Flux acts on the release.
    fn behind<'e>(
        self,
        evidence: &'e Evidence,
        policy: &Policy,
    ) -> Result<impl Iterator<Item = &'e Driver>, Undecided> {
        let named = self.named_by(evidence)?;
        // Asks only where the answer decides.
        let by_status = |driver: &Driver| self.is_driven_by(driver, policy) && !self.is_linked_to(driver, policy);
        let proves = !named.iter().any(by_status) || proves(evidence, policy, CONTROLLER)?;
        Ok(named.iter().filter(move |driver| match proves {
            true => self.is_driven_by(driver, policy),
            false => self.is_linked_to(driver, policy),
        }))
    }

    /// The HelmRelease for which Flux acts on the release; `None` if it is suspended.
    pub(crate) fn at_work<'e>(self, evidence: &'e Evidence, policy: &Policy) -> Result<Option<&'e Driver>, Undecided> {
        Ok(self.behind(evidence, policy)?.next().filter(|driver| !driver.suspended))
    }

    /// Whether Flux acts on the release for a HelmRelease that names its records.
    ///
    /// An author of a HelmRelease can name records in any namespace. That must give no power over another user's release. So a
    /// HelmRelease counts by what its author cannot write: the stamps on the newest record name it or its account, or, in the
    /// records' namespace, Flux has installed the release for it or a manager holds it.
    pub fn is_driven_by(self, driver: &Driver, policy: &Policy) -> bool {
        let has_installed = driver.namespace == self.namespace && driver.has_installed(self.namespace, self.release);
        self.is_linked_to(driver, policy) || (driver.kube_config.is_none() && has_installed)
    }

    /// Whether the stamps on the newest record say that Flux acts on the release for a HelmRelease.
    fn is_linked_to(self, driver: &Driver, policy: &Policy) -> bool {
        let is_near = driver.namespace == self.namespace;
        let is_linked = match (self.stamps.driver(), self.stamps.holder()) {
            (Some(stamped), _) => driver.is_named_by(stamped),
            (None, None) => is_near,
            (None, Some(holder)) => driver.is_account(holder) || (is_near && policy.managers.contains(holder)),
        };
        driver.kube_config.is_none() && is_linked
    }

    /// Whether the operation may be that of Flux for a HelmRelease, so that it may take as long as the HelmRelease allows. The
    /// stamp tells. Without it, only a manager may work for one.
    fn may_be_operation_of(self, driver: &Driver, policy: &Policy) -> bool {
        let is_linked = match self.stamps.driver() {
            Some(stamped) => driver.is_named_by(stamped),
            None => {
                let may_be_managers = self.stamps.holder().is_none_or(|holder| policy.managers.contains(holder));
                may_be_managers && driver.namespace == self.namespace
            }
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
        let behind = drivers.iter().filter(|driver| self.may_be_operation_of(driver, policy));
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
        Ok(self.behind(evidence, policy)?.any(|driver| !driver.suspended && driver.is_account(actor.name)))
    }

    /// The HelmRelease that the stamp names, as it is now.
    pub(crate) fn stamped(self, evidence: &Evidence) -> Result<Option<&Driver>, Undecided> {
        let Some(stamped) = self.stamps.driver() else { return Ok(None) };
        Ok(self.named_by(evidence)?.iter().find(|driver| driver.is_named_by(stamped)))
    }

    /// Whether an actor may continue the operation, because Flux works as the actor now for the HelmRelease that the stamp names. The
    /// account that a HelmRelease names may change, also to and from the controller's account.
    pub(crate) fn is_handover(self, evidence: &Evidence, policy: &Policy, actor: Actor<'_>) -> Result<bool, Undecided> {
        if !actor.is_service_account() {
            return Ok(false);
        }
        let stamped = self.stamped(evidence)?.filter(|driver| driver.kube_config.is_none());
        Ok(stamped.is_some_and(|driver| is_served_by(driver, actor.name, policy)))
    }

    /// A HelmRelease for which the actor may be Flux at work: as the controller, or with the account that the HelmRelease names.
    pub(crate) fn reconciled_by<'e>(
        self,
        evidence: &'e Evidence,
        policy: &Policy,
        actor: Actor<'_>,
    ) -> Result<Option<&'e Driver>, Undecided> {
        if !actor.is_service_account() {
            return Ok(None);
        }
        let mut here = self.named_by(evidence)?.iter().filter(|driver| driver.kube_config.is_none());
        Ok(here.find(|driver| is_served_by(driver, actor.name, policy)))
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
        Ok(self.stale_after_with(self.named_by(evidence)?, policy))
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
