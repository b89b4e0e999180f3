//! Scans releases: first their metadata, then bodies and objects where required.

use std::collections::HashSet;

use futures_util::{StreamExt, stream};

use super::context::ScanContext;
use super::examine::Examination;
use super::finding::Finding;
use super::finding_kind::FindingKind;
use super::gather;
use super::history::ReleaseRecords;
use super::inventory::Inventory;
use super::options::ScanProgress;
use crate::engine::flux::Driver;
use crate::engine::policy::Policy;
use crate::engine::release::{History, ReleaseRef, Storage};
use crate::engine::rules::flux_release::FluxRelease;
use crate::engine::severity::Severity;

/// Releases examined concurrently, with one read each; an API server answers this many without throttling.
const CONCURRENT_EXAMINATIONS: usize = 8;

pub(super) const HELM_RELEASES: &str = "HelmReleases";
const STUCK_OPERATIONS: &str = "stuck operations of releases in Secrets";

impl ScanContext<'_> {
    /// Flux's HelmReleases in all namespaces within reach, because each may have its records in the scanned namespace;
    /// `None` if the kind is not installed or cannot be read.
    pub(super) async fn helm_releases(&self) -> Option<Vec<Driver>> {
        let listed = gather::helm_releases(&self.client, self.options.reach.places()).await;
        let (drivers, unread) = self.or_gap(HELM_RELEASES, listed)??;
        unread.into_iter().for_each(|error| self.gap("HelmReleases that cannot be parsed", error));
        Some(drivers)
    }

    /// The findings for all releases.
    pub(super) async fn releases(
        &self,
        inventory: Inventory,
        drivers: &[Driver],
        progress: &(dyn Fn(ScanProgress) + Sync),
    ) -> Vec<Finding> {
        let Inventory { releases, inconsistent, .. } = inventory;
        let questioned: HashSet<_> = inconsistent.iter().filter_map(|finding| finding.release.clone()).collect();
        let mut found = Vec::new();
        let mut examinations = Vec::new();
        for ((release, _), (storage, entries)) in releases {
            let history = History::new(entries);
            let policy = self.policies.of(&release.namespace).as_ref();
            let mut judged = self.records(&release, storage, &history, policy, drivers).judge();
            judged.retain(|finding| !self.is_uncertain(finding, storage));
            let is_questioned =
                questioned.contains(&release) || judged.iter().any(|finding| finding.severity() > Severity::Info);
            found.extend(judged);
            examinations.extend(Examination::of(self.options, release, storage, &history, is_questioned));
        }
        let total = examinations.len();
        let mut done = 0;
        let mut under_way = stream::iter(examinations.into_iter().map(|one| one.carry_out(self)))
            .buffer_unordered(CONCURRENT_EXAMINATIONS);
        let mut read = HashSet::new();
        while let Some(examined) = under_way.next().await {
            done += 1;
            progress(ScanProgress { done, total });
            found.extend(examined.findings);
            read.extend(examined.read);
        }
        // A finding about a body that was read says more.
        let unread = |finding: &Finding| finding.object.as_ref().is_none_or(|object| !read.contains(object));
        found.extend(inconsistent.into_iter().filter(unread));
        found
    }

    /// Whether an unreadable HelmRelease may give an operation more time.
    fn is_uncertain(&self, finding: &Finding, storage: Storage) -> bool {
        let is =
            finding.kind == FindingKind::StuckOperation && storage == Storage::Secret && self.is_gap(HELM_RELEASES);
        if is {
            self.gap(
                STUCK_OPERATIONS,
                "the HelmReleases, which define how long an operation may take, could not be read".to_owned(),
            );
        }
        is
    }

    fn records<'r>(
        &self,
        release: &'r ReleaseRef,
        storage: Storage,
        history: &'r History,
        policy: &Policy,
        drivers: &[Driver],
    ) -> ReleaseRecords<'r> {
        let in_flight = history.newest().filter(|newest| newest.status.is_in_flight());
        let stale_after = in_flight.map_or(policy.recovery.stale_after, |newest| {
            let ReleaseRef { namespace, name } = release;
            let driven = FluxRelease { storage, namespace, release: name, holder: newest.stamps.holder() };
            driven.stale_after_with(&driven.helm_releases_among(drivers), policy)
        });
        let closes_rollback = policy.recovery.closes_rollback();
        ReleaseRecords { release, storage, history, stale_after, closes_rollback, now: self.now }
    }
}
