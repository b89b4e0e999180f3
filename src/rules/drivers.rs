//! The HelmReleases behind a release: who acts for them, and how long Flux may be silent.

use jiff::{SignedDuration, Timestamp};

use super::need::{Need, known};
use crate::facts::{Actor, ActorKind};
use crate::flux::Driver;
use crate::policy::Policy;
use crate::release::Storage;
use crate::world::{Evidence, Knowledge, Query};

/// A release as its records name it, in this cluster.
#[derive(Clone, Copy)]
pub(super) struct Driven<'a> {
    pub(super) storage: Storage,
    pub(super) namespace: &'a str,
    pub(super) release: &'a str,
}

/// The HelmReleases with these records, the oldest first, those of other clusters included.
pub(super) fn helm_releases<'e>(evidence: &'e Evidence, namespace: &str, release: &str) -> Result<&'e [Driver], Need> {
    let query = Query::HelmReleases { namespace: namespace.to_owned(), release: release.to_owned() };
    match known(evidence, query)? {
        Some(Knowledge::HelmReleases(drivers)) => Ok(drivers),
        _ => Ok(&[]),
    }
}

impl Driven<'_> {
    /// The HelmReleases that drive it. Flux keeps records in Secrets of the cluster that the release is on.
    fn drivers<'e>(self, evidence: &'e Evidence) -> Result<impl Iterator<Item = &'e Driver>, Need> {
        let drivers = match self.storage {
            Storage::Secret => helm_releases(evidence, self.namespace, self.release)?,
            Storage::ConfigMap | Storage::OlmIndex => &[],
        };
        Ok(drivers.iter().filter(|driver| driver.kube_config.is_none()))
    }

    /// Whether Flux acts for one of them under the name of this actor.
    pub(super) fn is_driven_by(self, evidence: &Evidence, actor: Actor<'_>) -> Result<bool, Need> {
        // Flux impersonates nobody else, so people cost no question.
        if actor.kind != ActorKind::ServiceAccount {
            return Ok(false);
        }
        Ok(self.drivers(evidence)?.any(|driver| driver.is_account(actor.name)))
    }

    /// Whether an actor may go on with what this holder began, because both are, or may have been, Flux at work for the same
    /// HelmRelease: the account that one names changes in mid-life, to and from the controller's own.
    pub(super) fn is_handed_over(
        self,
        evidence: &Evidence,
        policy: &Policy,
        holder: &str,
        actor: Actor<'_>,
    ) -> Result<bool, Need> {
        if actor.kind != ActorKind::ServiceAccount {
            return Ok(false);
        }
        let is_manager = |user: &str| policy.managers.contains(user);
        Ok(self.drivers(evidence)?.any(|driver| {
            (is_manager(actor.name) || driver.is_account(actor.name))
                && (is_manager(holder) || driver.may_have_been_account(holder))
        }))
    }

    /// How old an operation that started then must be to count as stuck: the policy's `staleAfter`, or the longest timeout
    /// of a HelmRelease that drives the release, where that is longer. Flux may be silent for so long.
    ///
    /// Asks only what makes a difference: nothing while the operation is not even as old as the policy says.
    pub(super) fn stale_after(
        self,
        evidence: &Evidence,
        policy: &Policy,
        started: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<SignedDuration, Need> {
        let stale_after = policy.recovery.stale_after;
        if !policy.recovery.is_stale(started, now) {
            return Ok(stale_after);
        }
        Ok(self.drivers(evidence)?.map(|driver| driver.longest_timeout).fold(stale_after, SignedDuration::max))
    }

    /// Whether an operation that started then counts as stuck.
    pub(super) fn is_stale(
        self,
        evidence: &Evidence,
        policy: &Policy,
        started: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<bool, Need> {
        let stale_after = self.stale_after(evidence, policy, started, now)?;
        Ok(started.is_some_and(|started| now.duration_since(started) >= stale_after))
    }
}
