//! What the copies of a cluster have, without a read.

use interlock_engine::evidence::CandidateRecords;
use interlock_engine::owners::Driver;
use interlock_engine::policy::{Policies, Policy};
use interlock_engine::release::{History, ReleaseRef, Storage};
use jiff::{SignedDuration, Timestamp};

use super::Cluster;
use crate::world::NewestRecord;

impl Cluster {
    /// The newest record of a release as far as the watches have it, superseded records excluded, without a read. The second value
    /// says whether the watches are in sync.
    #[must_use]
    pub fn newest(&self, release: &ReleaseRef) -> (Option<NewestRecord>, bool) {
        self.caches.newest(release)
    }

    /// The number of overrides in force at a moment, by the policies of their namespaces, as far as the watch has them.
    #[must_use]
    pub fn overrides_in_force(&self, policies: &Policies, now: Timestamp) -> usize {
        self.caches.release_overrides().count(|it| it.is_in_force(&policies.of(&it.namespace).overrides, now))
    }

    /// Overrides that ended longer ago than the retention and are not being deleted, as far as the watch has them: at most `limit`,
    /// ordered by namespace and name, starting behind `after`.
    #[must_use]
    pub fn past_overrides(
        &self,
        retention: SignedDuration,
        now: Timestamp,
        after: Option<&(String, String)>,
        limit: usize,
    ) -> Vec<(String, String)> {
        self.caches.release_overrides().to_delete(after, limit, |it| it.is_past(retention, now))
    }

    /// Freezes that ended longer ago than their retention, as far as the watch has them: at most `limit`, ordered by namespace and
    /// name, starting behind `after`.
    #[must_use]
    pub fn past_freezes(
        &self,
        policy: &Policy,
        now: Timestamp,
        after: Option<&(String, String)>,
        limit: usize,
    ) -> Vec<(String, String)> {
        let all = self.caches.freezes();
        let past = all.iter().filter(|freeze| policy.is_past_freeze(freeze, now));
        let named = past.map(|freeze| (freeze.home.clone().unwrap_or_default(), freeze.name.clone()));
        named.filter(|it| after.is_none_or(|after| it > after)).take(limit).collect()
    }

    /// The matching HelmReleases; `None` if the copy is not in sync.
    pub(crate) fn helm_releases_that(&self, matches: impl Fn(&Driver) -> bool) -> Option<Vec<Driver>> {
        self.caches.helm_releases().matching(matches)
    }

    /// The records of a release in one storage, superseded ones excluded; `None` if there are none.
    pub(crate) fn known_history(&self, storage: Storage, release: &ReleaseRef) -> Option<History> {
        self.caches.history(storage, release).0
    }

    /// The records that may belong to a ClusterExtension, superseded ones excluded; `None` if the copies are not in sync.
    pub(crate) fn known_extension(&self, name: &str) -> Option<Vec<CandidateRecords>> {
        self.caches.extension(name)
    }

    /// The releases with a stamp on a record, each with its name; `None` if the copies are not in sync.
    pub(crate) fn releases_with_stamp(&self, key: &str) -> Option<Vec<(String, CandidateRecords)>> {
        self.caches.with_stamp(key)
    }
}
