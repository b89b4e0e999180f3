//! Scans releases: first their metadata, then bodies and objects where required.

use std::collections::HashSet;

use futures_util::{StreamExt, stream};
use interlock_engine::owners::Driver;
use interlock_engine::release::{History, ReleaseRef, Storage};
use interlock_engine::severity::Severity;

use super::contested::Claims;
use super::context::ScanContext;
use super::examine::Examination;
use super::finding::Finding;
use super::gather;
use super::history::findings;
use super::inventory::{Inventory, histories};
use super::options::ScanProgress;
use crate::inspect::diagnosis::{Checks, Diagnosis, Examiner, ReleaseRecords, Stuck};
use crate::inspect::records::missing_parts;

/// Releases examined concurrently, with one read each; an API server answers this many without throttling.
const CONCURRENT_EXAMINATIONS: usize = 8;

pub(super) const HELM_RELEASES: &str = "HelmReleases";
const STUCK_OPERATIONS: &str = "stuck operations of releases in Secrets";
const CHECKS: &str = "the checks of some stuck operations";
const PARTS: &str = "the parts of some records";

/// What the metadata of records say about releases, and what is still to be read.
#[derive(Default)]
pub(super) struct JudgedReleases {
    found: Vec<Finding>,
    /// Findings for records with inconsistent metadata.
    inconsistent: Vec<Finding>,
    examinations: Vec<Examination>,
    claims: Claims,
    pub(super) releases: usize,
    pub(super) records: usize,
}

impl JudgedReleases {
    pub(super) fn merge(&mut self, other: Self) {
        self.found.extend(other.found);
        self.inconsistent.extend(other.inconsistent);
        self.examinations.extend(other.examinations);
        self.claims.merge(other.claims);
        self.releases += other.releases;
        self.records += other.records;
    }
}

impl ScanContext<'_> {
    /// Flux's HelmReleases in all namespaces within reach, because each may have its records in the scanned namespace;
    /// `None` if the kind is not installed or cannot be read.
    pub(super) async fn helm_releases(&self) -> Option<Vec<Driver>> {
        let listed = gather::helm_releases(&self.client, self.options.reach.places()).await;
        let (drivers, unread) = self.or_gap(HELM_RELEASES, listed)??;
        unread.into_iter().for_each(|error| self.gap("HelmReleases that cannot be parsed", error));
        Some(drivers)
    }

    /// Judges releases by their metadata.
    pub(super) async fn judge(&self, inventory: Inventory, drivers: &[Driver], judged: &mut JudgedReleases) {
        let Inventory { releases, inconsistent, records, .. } = inventory;
        judged.releases += releases.len();
        judged.records += records;
        let questioned: HashSet<_> = inconsistent.iter().filter_map(|finding| finding.release.clone()).collect();
        for (release, storage, history) in histories(releases) {
            judged.claims.add(&release, storage, &history, self.policies);
            // Only releases of OLM and stuck releases need a read.
            let Some(diagnosis) = self.diagnosis(&release, storage, &history, drivers).await else { continue };
            let found = findings(&release, storage, &history, diagnosis);
            let is_questioned =
                questioned.contains(&release) || found.iter().any(|finding| finding.severity() > Severity::Info);
            judged.found.extend(found);
            let examination = Examination::of(self.options, release, storage, &history, drivers, is_questioned);
            judged.examinations.extend(examination);
        }
        judged.inconsistent.extend(inconsistent);
    }

    /// The findings for all releases, with bodies and objects where required.
    pub(super) async fn examine(
        &self,
        judged: JudgedReleases,
        progress: &(dyn Fn(ScanProgress) + Sync),
    ) -> Vec<Finding> {
        let JudgedReleases { mut found, mut inconsistent, examinations, claims, .. } = judged;
        found.extend(claims.findings());
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
        // A finding about a decoded body replaces the finding about its metadata.
        inconsistent.retain(|finding| finding.object.as_ref().is_none_or(|object| !read.contains(object)));
        found.extend(inconsistent);
        found
    }

    /// The diagnosis of a release, as in the command `status`.
    async fn diagnosis(
        &self,
        release: &ReleaseRef,
        storage: Storage,
        history: &History,
        drivers: &[Driver],
    ) -> Option<Diagnosis> {
        let broken = missing_parts(&self.world, release, storage, history).await;
        let broken = &broken.map_err(|why| self.gap(PARTS, why)).unwrap_or_default();
        // If the HelmReleases cannot be read, it is unknown how long an operation in a Secret may take.
        let drivers = (!self.is_gap(HELM_RELEASES)).then_some(drivers);
        let examiner =
            Examiner { world: &self.world, policies: self.policies, drivers, reader: None, now: self.now, copy: None };
        let examined = examiner.examine(ReleaseRecords { release, storage, history, broken }, Checks::IfStuck).await?;
        if examined.diagnosis.stuck == Stuck::Unknown {
            let why = "the HelmReleases, which define how long an operation may take, could not be read";
            self.gap(STUCK_OPERATIONS, why.to_owned());
        }
        if let Some(why) = examined.unread {
            self.gap(CHECKS, why);
        }
        Some(examined.diagnosis)
    }
}
