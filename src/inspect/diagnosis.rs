//! What is wrong with a release, and the one next step. `status`, `scan`, `wait`, `unstick` and the page print this and nothing else.
//!
//! [`diagnose`] is pure. `examine` reads what it needs, and no more: the checks of the runbook for an operation that counts as stuck, an
//! override where they fail, a freeze where the step would start an operation.

mod examine;
mod next_step;
mod ownership;
mod problem;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::scan::FindingKind;
use super::wait::FreezeInForce;
use crate::engine::flux::Driver;
use crate::engine::policy::Policy;
use crate::engine::release::{Entry, History, ReleaseRef, Status, Storage};
use crate::engine::rules::flux_release::FluxRelease;
use crate::engine::rules::records::recovery::RecordCondition;
use crate::engine::rules::wording::OwnerWords;
use crate::engine::rules::{RunbookCheck, RunbookCheckName, RunbookResult};
pub use examine::of_release;
pub(crate) use examine::{Checks, Examiner, ReleaseRecords, after_unstick};
pub use next_step::NextStep;
pub(crate) use next_step::out_of_freeze;
pub use ownership::{ReleaseOwner, Stuck};
pub use problem::Problem;

/// How long OLM may take to write the parts of a record after its index. It takes tenths of a second.
const PARTS_FOLLOW_WITHIN: SignedDuration = SignedDuration::from_secs(30);

/// The parts that are missing of each record of OLM, by the name of its index; only of records that lack some.
pub(crate) type MissingParts = BTreeMap<String, Vec<String>>;

/// The state of a release, as far as its reader knows it.
#[derive(Clone)]
pub(crate) struct ReleaseState<'a> {
    pub(crate) release: &'a ReleaseRef,
    pub(crate) storage: Storage,
    pub(crate) history: &'a History,
    pub(crate) missing: &'a MissingParts,
    /// The runbook's checks of the newest record; `None` if they were not run.
    pub(crate) checks: Option<&'a [RunbookCheck]>,
    /// `name-version` of the chart of the newest record; `None` if it is not known.
    pub(crate) chart: Option<&'a str>,
    /// All HelmReleases; `None` if they cannot be read.
    pub(crate) drivers: Option<&'a [Driver]>,
    pub(crate) policy: &'a Policy,
    /// Whether the reader may delete the record whatever the checks say: it holds the operation, or an override opens
    /// `pending-recovery`.
    pub(crate) is_opened: bool,
    /// The freeze that stops the reader from starting an operation.
    pub(crate) freeze: Option<&'a FreezeInForce>,
    pub(crate) now: Timestamp,
}

/// What is wrong with a release, and the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    pub owner: ReleaseOwner,
    pub stuck: Stuck,
    /// When the operation in flight, or a record that is being written, starts to count as stuck.
    pub stuck_from: Option<Timestamp>,
    /// The worst first.
    pub problems: Vec<Problem>,
    /// `None` if nothing is to be done.
    pub next: Option<NextStep>,
}

/// Finds what is wrong with a release, and the next step; `None` without records.
#[must_use]
pub(crate) fn diagnose(state: &ReleaseState<'_>) -> Option<Diagnosis> {
    let newest = state.history.newest()?;
    let (stuck, stuck_from) = state.stuck(newest);
    let owner = state.owner(newest);
    let problems = problem::problems(state, newest, stuck);
    let next = next_step::next_step(state, newest, &owner, (stuck, stuck_from), &problems);
    Some(Diagnosis { owner, stuck, stuck_from, problems, next })
}

impl<'a> ReleaseState<'a> {
    pub(crate) fn words(&self) -> OwnerWords<'a> {
        OwnerWords { storage: self.storage, namespace: &self.release.namespace, release: &self.release.name }
    }

    fn driven<'e>(&'e self, newest: &'e Entry) -> FluxRelease<'e> {
        let ReleaseRef { namespace, name } = self.release;
        FluxRelease { storage: self.storage, namespace, release: name, holder: newest.stamps.holder() }
    }

    /// Whether the release is stuck, and since when, or from when on.
    fn stuck(&self, newest: &Entry) -> (Stuck, Option<Timestamp>) {
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
        // nelm and werf work on a release for as long as they like.
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
    fn patience(&self, newest: &Entry) -> SignedDuration {
        let driven = self.driven(newest);
        driven.stale_after_with(&driven.helm_releases_among(self.drivers.unwrap_or_default()), self.policy)
    }

    /// A record without all of its parts is in the way of everything that OLM does, once its parts are not about to be written.
    fn stuck_at_rest(&self, newest: &Entry) -> (Stuck, Option<Timestamp>) {
        if self.missing.is_empty() {
            return (Stuck::No, None);
        }
        let from = newest.stamps.ended().and_then(|ended| ended.checked_add(PARTS_FOLLOW_WITHIN).ok());
        let stuck = if from.is_some_and(|from| self.now < from) { Stuck::No } else { Stuck::Yes };
        (stuck, from)
    }

    /// Why a check of the runbook failed.
    fn failed(&self, name: RunbookCheckName) -> Option<&'a str> {
        self.checks.into_iter().flatten().filter(|check| check.name == name).find_map(|check| match &check.result {
            RunbookResult::Failed(why) => Some(why.as_str()),
            RunbookResult::Passed | RunbookResult::Unknown(_) => None,
        })
    }

    /// What the checks say about the newest record.
    fn condition(&self) -> RecordCondition {
        let failed = |name| self.failed(name).is_some();
        match self.checks {
            _ if failed(RunbookCheckName::PendingBody) => RecordCondition::Unreadable,
            _ if failed(RunbookCheckName::Healthy) => RecordCondition::Unhealthy,
            Some(checks) if checks.iter().all(RunbookCheck::passed) => RecordCondition::Sound,
            _ => RecordCondition::Unknown,
        }
    }

    /// The revision that a release without an operation in flight goes back to.
    fn good(&self) -> Option<&'a Entry> {
        self.history.newest_deployed().or_else(|| self.history.iter().find(|entry| entry.status == Status::Superseded))
    }
}

impl Diagnosis {
    /// Whether a problem of this kind was found.
    #[must_use]
    pub fn has(&self, kind: FindingKind) -> bool {
        self.problems.iter().any(|problem| problem.kind == kind)
    }
}

#[cfg(test)]
mod tests;
