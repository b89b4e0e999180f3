//! One scan: lists, a few bodies, and on request the objects that they declare.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use kube::{Client, Error};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::calls::Calls;
use super::examine::Examination;
use super::history::Records;
use super::inventory::Inventory;
use super::listing::{Listing, why};
use super::report::{Gap, peak_memory};
use super::served::ServedKinds;
use super::{Bodies, Check, Finding, Options, Progress, Report, ScanError, Severity, declarations, gather};
use crate::budget::Budget;
use crate::engine::flux::Driver;
use crate::engine::policy::{Policies, Policy};
use crate::engine::release::{Entry, History, ReleaseRef, Status, Storage};
use crate::engine::rules::flux_release::FluxRelease;
use crate::engine::sveltos::{self, BundleRef, Group};
use crate::world::kubernetes::Cluster;
use crate::world::kubernetes::kinds::Kinds;

/// The memory that inflated bodies may take at once.
const DECODE_BYTES: usize = 64 << 20;

/// Releases looked into at a time. Each has one read on its way; an API server answers so many without throttling.
const SIDE_BY_SIDE: usize = 8;

const HELM_RELEASES: &str = "HelmReleases";
const GROUPS: &str = "ConfigurationGroups";
const STUCK: &str = "stuck operations of releases in Secrets";

/// A scan on its way.
pub(super) struct Run<'s> {
    pub(super) client: Client,
    pub(super) world: Cluster,
    pub(super) policies: &'s Policies,
    pub(super) options: &'s Options,
    pub(super) now: Timestamp,
    pub(super) kinds: ServedKinds,
    pub(super) bodies: AtomicUsize,
    pub(super) objects: AtomicUsize,
    gaps: Mutex<BTreeMap<&'static str, Gap>>,
}

/// Looks for everything that [`Check`] lists, by reads alone.
///
/// # Errors
/// When the records in Secrets cannot be listed: then nothing is known. Any other part that cannot be read is told in the
/// report.
pub async fn scan(
    client: &Client,
    policies: &Policies,
    options: &Options,
    now: Timestamp,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Report, ScanError> {
    let (started, calls) = (Instant::now(), Calls::default());
    let client = calls.counting(client.clone());
    let run = Run {
        world: Cluster::new(client.clone(), Arc::new(Budget::new(DECODE_BYTES))).within(options.reach.clone()),
        client,
        policies,
        options,
        now,
        kinds: ServedKinds::default(),
        bodies: AtomicUsize::default(),
        objects: AtomicUsize::default(),
        gaps: Mutex::default(),
    };
    let mut looked_at = vec!["records in Secrets".to_owned()];
    let mut inventory =
        gather::secrets(&run.client, run.places()).await.map_err(|error| ScanError { why: why(&error) })?;
    match gather::config_maps(&run.client, run.places()).await {
        Ok(more) => {
            looked_at.push("records in ConfigMaps".to_owned());
            inventory.merge(more);
        }
        Err(error) => run.gap("records in ConfigMaps", why(&error)),
    }
    let drivers = run.helm_releases().await;
    looked_at.extend(drivers.is_some().then(|| HELM_RELEASES.to_owned()));
    let drivers = drivers.unwrap_or_default();
    let mut findings = declarations::duplicates(&drivers);
    findings.retain(|finding| run.namespace().is_none_or(|namespace| finding.namespace() == namespace));
    let (releases, records) = (inventory.releases.len(), inventory.records);
    findings.extend(run.releases(inventory, &drivers, progress).await);
    looked_at.push(options.bodies.sentence().to_owned());
    looked_at.extend(options.drift.then(|| "objects of deployed releases".to_owned()));
    if let Some(found) = run.groups().await {
        looked_at.push(GROUPS.to_owned());
        findings.extend(found);
    }
    let mut report = Report {
        cluster: options.cluster.clone(),
        time: now,
        namespace: options.namespace.clone(),
        releases,
        records,
        bodies: run.bodies.into_inner(),
        objects: run.objects.into_inner(),
        calls: calls.count(),
        took_seconds: started.elapsed().as_secs_f64(),
        peak_memory_bytes: peak_memory(),
        looked_at,
        not_looked_at: run.gaps.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect(),
        counts: BTreeMap::new(),
        findings: Vec::new(),
        left_out: 0,
    };
    report.take(findings);
    Ok(report)
}

impl Run<'_> {
    /// Tells of a part that could not be looked at; the reason is that of the first time.
    pub(super) fn gap(&self, what: &'static str, why: String) {
        // Nothing can panic while it is held.
        let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        gaps.entry(what).or_insert(Gap { what: what.to_owned(), times: 0, why }).times += 1;
    }

    /// Whether a part could not be looked at.
    fn is_gap(&self, what: &'static str) -> bool {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner).contains_key(what)
    }

    fn namespace(&self) -> Option<&str> {
        self.options.namespace.as_deref()
    }

    /// What is looked at.
    fn places(&self) -> Vec<Option<&str>> {
        self.namespace().map_or_else(|| self.options.reach.places().collect(), |namespace| vec![Some(namespace)])
    }

    /// Flux's HelmReleases; `None` where there is no such kind, or it cannot be read. Those of all namespaces within reach:
    /// any may have its records in the one that is looked at.
    async fn helm_releases(&self) -> Option<Vec<Driver>> {
        let listed = gather::helm_releases(&self.client, self.options.reach.places()).await;
        let (drivers, unread) = self.or_gap(HELM_RELEASES, listed)??;
        unread.into_iter().for_each(|error| self.gap("HelmReleases of another shape", error));
        Some(drivers)
    }

    /// The objects of a kind in namespaces or in all, by its most stable version.
    async fn listing<'p>(
        &self,
        group: &str,
        kind: &str,
        places: impl IntoIterator<Item = Option<&'p str>>,
        what: &'static str,
    ) -> Option<Listing> {
        let resolved = Kinds::default().resolve(&self.client, group, kind).await;
        self.or_gap(what, resolved).flatten().map(|resource| Listing::of(&resource, places))
    }

    fn or_gap<T>(&self, what: &'static str, read: Result<T, Error>) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            // The definition of the kind comes or goes at this moment.
            Err(Error::Api(status)) if status.code == 404 => None,
            Err(error) => {
                self.gap(what, why(&error));
                None
            }
        }
    }

    /// What is wrong with the releases, by their metadata and by what is looked into besides.
    async fn releases(
        &self,
        inventory: Inventory,
        drivers: &[Driver],
        progress: &(dyn Fn(Progress) + Sync),
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
        let mut under_way =
            stream::iter(examinations.into_iter().map(|one| one.carry_out(self))).buffer_unordered(SIDE_BY_SIDE);
        let mut read = HashSet::new();
        while let Some(examined) = under_way.next().await {
            done += 1;
            progress(Progress { done, total });
            found.extend(examined.findings);
            read.extend(examined.read);
        }
        // Where the body was read too, that has told more.
        let unread = |finding: &Finding| finding.object.as_ref().is_none_or(|object| !read.contains(object));
        found.extend(inconsistent.into_iter().filter(unread));
        found
    }

    /// Whether a HelmRelease that could not be read may give an operation more time.
    fn is_uncertain(&self, finding: &Finding, storage: Storage) -> bool {
        let is = finding.check == Check::StuckOperation && storage == Storage::Secret && self.is_gap(HELM_RELEASES);
        if is {
            self.gap(STUCK, "HelmReleases, which say how long Flux may be silent, could not be read".to_owned());
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
    ) -> Records<'r> {
        let in_flight = history.newest().filter(|newest| newest.status.is_in_flight());
        let stale_after = in_flight.map_or(policy.recovery.stale_after, |newest| {
            let ReleaseRef { namespace, name } = release;
            let driven = FluxRelease { storage, namespace, release: name, holder: newest.stamps.holder() };
            driven.stale_after_with(&driven.helm_releases_among(drivers), policy)
        });
        let closes_rollback = policy.recovery.closes_rollback();
        Records { release, storage, history, stale_after, closes_rollback, now: self.now }
    }

    /// The ConfigurationGroups over bundles that are gone; `None` where there is no such kind, or it cannot be read.
    async fn groups(&self) -> Option<Vec<Finding>> {
        let listing = self.listing(sveltos::LIB, sveltos::GROUP, self.places(), GROUPS).await?;
        let whole = listing.clone().whole();
        let groups = whole.fold(&self.client, Vec::new, |groups, item| match needed(item) {
            Ok((_, _, needed)) if needed.is_empty() => {}
            Ok((namespace, name, mut needed)) => {
                needed.retain(|bundle| self.options.reach.includes(&bundle.namespace));
                groups.push((namespace, name, needed));
            }
            Err(error) => self.gap("ConfigurationGroups of another shape", error),
        });
        let groups = self.or_gap(GROUPS, groups.await)?;
        if groups.is_empty() {
            return Some(Vec::new());
        }
        // A group may name bundles of other namespaces; of those out of reach nothing is known.
        let bundles = self.listing(sveltos::LIB, sveltos::BUNDLE, self.options.reach.places(), GROUPS).await?;
        let there = bundles.fold(&self.client, HashSet::new, |there, item| {
            there.extend(named(item).map(|(namespace, name)| BundleRef { namespace, name }));
        });
        let there = self.or_gap(GROUPS, there.await)?;
        let dangling = |groups: &[(String, String, Vec<BundleRef>)]| -> Vec<Finding> {
            let found =
                groups.iter().map(|(namespace, name, needed)| declarations::dangling(name, namespace, needed, &there));
            found.flatten().collect()
        };
        let found = dangling(&groups);
        if found.is_empty() {
            return Some(found);
        }
        // A rollout that ended between the two lists takes its group along with the bundles.
        let still = listing.fold(&self.client, HashSet::new, |still, item| still.extend(named(item)));
        let still = self.or_gap(GROUPS, still.await)?;
        let is_there = |finding: &Finding| still.contains(&(finding.namespace().to_owned(), finding.name().to_owned()));
        Some(found.into_iter().filter(is_there).collect())
    }
}

impl Options {
    /// The records whose bodies are to be read.
    pub(super) fn wanted<'h>(&self, history: &'h History, is_questioned: bool) -> Vec<&'h Entry> {
        let newest = history.newest().map(|newest| newest.revision);
        let acted_on = |entry: &&Entry| Some(entry.revision) == newest || entry.status == Status::Deployed;
        match self.bodies {
            Bodies::All => history.iter().collect(),
            Bodies::Questioned if !is_questioned => Vec::new(),
            Bodies::Questioned | Bodies::ActedOn => history.iter().filter(acted_on).collect(),
        }
    }
}

#[derive(Deserialize)]
struct Named {
    metadata: Names,
}

#[derive(Deserialize)]
struct Names {
    namespace: String,
    name: String,
}

/// Namespace and name of an object.
fn named(item: &RawValue) -> Option<(String, String)> {
    let Named { metadata: Names { namespace, name } } = serde_json::from_str(item.get()).ok()?;
    Some((namespace, name))
}

fn needed(item: &RawValue) -> Result<(String, String, Vec<BundleRef>), String> {
    let group: Group<'_> = serde_json::from_str(item.get()).map_err(|error| error.to_string())?;
    let (namespace, name) = named(item).ok_or("it has no namespace")?;
    let needed = declarations::needed(&group, &namespace)?;
    Ok((namespace, name, needed))
}
