//! The state of a release, and whether it is stuck.

use std::collections::BTreeMap;

use interlock_engine::owners::DrivenRelease;
use interlock_engine::owners::Driver;
use interlock_engine::owners::OwnerWords;
use interlock_engine::policy::Policy;
use interlock_engine::release::{DecodeError, Entry, History, ReleaseRef, Status, Storage};
use interlock_engine::rules::records::recovery::RecordCondition;
use interlock_engine::rules::records::unreadable::PARTS_FOLLOW_WITHIN;
use interlock_engine::rules::{RunbookCheck, RunbookCheckName, RunbookResult};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::inspect::wait::FreezeInForce;

/// The records that no client can read, by name, and why.
pub(crate) type BrokenRecords = BTreeMap<String, DecodeError>;

/// The records of a release in one storage.
#[derive(Clone, Copy)]
pub(crate) struct ReleaseRecords<'a> {
    pub(crate) release: &'a ReleaseRef,
    pub(crate) storage: Storage,
    pub(crate) history: &'a History,
    pub(crate) broken: &'a BrokenRecords,
}

/// The key of a copy of a record with the values of its operation, as JSON.
pub(crate) const VALUES: &str = "values";

/// The state of a release, as far as its reader knows it.
#[derive(Clone)]
pub(crate) struct ReleaseState<'a> {
    pub(crate) release: &'a ReleaseRef,
    pub(crate) storage: Storage,
    pub(crate) history: &'a History,
    pub(crate) broken: &'a BrokenRecords,
    /// The runbook's checks of the newest record; `None` if they were not run.
    pub(crate) checks: Option<&'a [RunbookCheck]>,
    /// `name-version` of the chart of the newest record; `None` if it is not known.
    pub(crate) chart: Option<&'a str>,
    /// All HelmReleases; `None` if they cannot be read.
    pub(crate) drivers: Option<&'a [Driver]>,
    pub(crate) policy: &'a Policy,
    /// Whether the reader may delete the record whatever the checks say: the reader holds the operation, or an override opens
    /// `pending-recovery`.
    pub(crate) is_opened: bool,
    /// Whether the release is live in Helm's other storage, and not deployed in this one.
    pub(crate) is_live_in_sibling: bool,
    /// The copy of a deleted record, with its values under [`VALUES`].
    pub(crate) copy: Option<&'a str>,
    /// The freeze that stops the reader from starting an operation.
    pub(crate) freeze: Option<&'a FreezeInForce>,
    pub(crate) now: Timestamp,
}

/// Whether a release is stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stuck {
    /// No operation is pending, or it is not old enough.
    No,
    /// The operation is older than the policy and the HelmReleases allow, or no client can read a record.
    Yes,
    /// The operation is old enough, but the HelmReleases, which may allow more time, cannot be read.
    Unknown,
}

impl<'a> ReleaseState<'a> {
    pub(crate) fn words(&self) -> OwnerWords<'a> {
        OwnerWords { storage: self.storage, namespace: &self.release.namespace, release: &self.release.name }
    }

    pub(super) fn driven<'e>(&'e self, newest: &'e Entry) -> DrivenRelease<'e> {
        let ReleaseRef { namespace, name } = self.release;
        DrivenRelease { storage: self.storage, namespace, release: name, stamps: &newest.stamps }
    }

    /// Whether the release is stuck, and the time since when or from when on.
    pub(super) fn stuck(&self, newest: &Entry) -> (Stuck, Option<Timestamp>) {
        if !newest.status.is_in_flight() {
            return self.stuck_at_rest(newest);
        }
        let settings = &self.policy.recovery;
        let Some(started) = newest.started() else { return (Stuck::No, None) };
        let after = |patience: SignedDuration| started.checked_add(patience).ok();
        let from = after(self.patience(newest));
        // Flux stores records in Secrets.
        let certainly_from = match self.drivers {
            None if self.storage == Storage::Secret => after(settings.stale_after.max(settings.max_patience)),
            _ => from,
        };
        // nelm and werf may work on a release for any time.
        let is_leased = self.failed(RunbookCheckName::NoLease).is_some();
        let has_come = |time: Option<Timestamp>| time.is_some_and(|time| time <= self.now);
        match (has_come(from), has_come(certainly_from)) {
            (true, true) if !is_leased => (Stuck::Yes, from),
            (true, false) => (Stuck::Unknown, certainly_from),
            (true, true) => (Stuck::No, None),
            (false, _) => (Stuck::No, from),
        }
    }

    /// The age at which the operation of a record counts as stuck, as far as the HelmReleases are known.
    pub(super) fn patience(&self, newest: &Entry) -> SignedDuration {
        let driven = self.driven(newest);
        driven.stale_after_with(&driven.helm_releases_among(self.drivers.unwrap_or_default()), self.policy)
    }

    /// Whether a record that no client can read blocks the release. The parts of OLM's newest record may still be written. The
    /// webhook lets everybody delete a record of Helm once it is stale.
    pub(super) fn stuck_at_rest(&self, newest: &Entry) -> (Stuck, Option<Timestamp>) {
        let (since, patience) = match self.broken.values().next() {
            None => return (Stuck::No, None),
            Some(DecodeError::MissingChunks(_)) => (newest.stamps.ended(), PARTS_FOLLOW_WITHIN),
            Some(_) => (newest.started(), self.patience(newest)),
        };
        let from = since.and_then(|since| since.checked_add(patience).ok());
        let stuck = if from.is_some_and(|from| self.now < from) { Stuck::No } else { Stuck::Yes };
        (stuck, from)
    }

    /// Why a check of the runbook failed.
    pub(super) fn failed(&self, name: RunbookCheckName) -> Option<&'a str> {
        self.checks.into_iter().flatten().filter(|check| check.name == name).find_map(|check| match &check.result {
            RunbookResult::Failed(why) => Some(why.as_str()),
            RunbookResult::Passed | RunbookResult::Unknown(_) => None,
        })
    }

    /// The condition of the newest record, from the checks.
    pub(super) fn condition(&self) -> RecordCondition {
        let failed = |name| self.failed(name).is_some();
        match self.checks {
            _ if failed(RunbookCheckName::PendingBody) => RecordCondition::Unreadable,
            _ if failed(RunbookCheckName::Healthy) => RecordCondition::Unhealthy,
            Some(checks) if checks.iter().all(RunbookCheck::passed) => RecordCondition::Sound,
            _ => RecordCondition::Unknown,
        }
    }

    /// The revision that a rollback of a release at rest returns to.
    pub(super) fn good(&self) -> Option<&'a Entry> {
        self.history.newest_deployed().or_else(|| self.history.iter().find(|entry| entry.status == Status::Superseded))
    }
}
