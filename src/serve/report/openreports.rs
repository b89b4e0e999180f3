//! Reports of releases, with the findings of reviews (denied, warned about, would have been denied) and of scans. Each release has one
//! report, in the namespace of its records. Reports are for people who switch a rule from `audit` to `enforce`, and for tools that show such
//! reports.
//!
//! Only the leader writes reports. It reads the findings of all replicas from their [Events](super::events). Events expire after an hour;
//! a report keeps the findings for a day. A new leader reads the reports back. Each report names the Events that it counts, so that nothing
//! is lost or counted twice.
//!
//! No decision depends on reports.

mod body;
mod entry;
mod store;
mod writer;

use std::collections::HashSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use interlock_engine::decision::ObjectReference;
use interlock_engine::evidence::{Freshness, question};
use interlock_engine::release::{ReleaseRef, Storage};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::events::v1::Event;
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, watcher};
use kube::{Client, Error};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::metrics::{ReportMetrics, Sink, Write};
use super::namespace_labels::NamespaceLabels;
use crate::cluster_name::ClusterName;
use crate::log_limit::LogLimit;
use crate::serve::ownership::MANAGED_BY;
use crate::world::ask;
use crate::world::kubernetes::Cluster;
use crate::world::kubernetes::api_error::{is_missing_object, is_not_found, reason, watch_reason};
use crate::world::kubernetes::reach::{Reach, merge_watches};
use body::FoundBy;
use entry::ObservedEvent;
use store::{DueReport, ReportStore};
use writer::{ReportWriter, StoredReport};

pub(crate) use entry::{ReportEntry, ReportOutcome};
pub(crate) use writer::Flavour;

/// How many reports one round writes.
const MAX_WRITES: usize = 100;

/// How many releases without known records one round looks up on the API server.
const MAX_LOOKUPS: usize = 20;

/// The rounds between two checks whether the kind of the reports is installed.
const ROUNDS_UNTIL_RECHECK: u32 = 12;

/// The pause between two attempts to read the reports back.
const READ_RETRY: Duration = Duration::from_secs(5);

/// The findings of reviews in the reports of a cluster, of both APIs; empty if there are no reports.
///
/// # Errors
/// When the API server does not answer, or its answer cannot be parsed.
pub(crate) async fn reported(client: &Client, own_namespace: &str) -> Result<Vec<ReportEntry>, Error> {
    let mut found = Vec::new();
    for flavour in [Flavour::OpenReports, Flavour::WgPolicy] {
        let listed = ReportWriter::new(client.clone(), flavour, Reach::default()).list(own_namespace).await?;
        found.extend(listed.unwrap_or_default().into_iter().flat_map(of_reviews));
    }
    Ok(found)
}

/// The newest refusals in the reports, at most `most`. `None` if the kind of the reports is not installed.
///
/// # Errors
/// When the API server does not answer, or its answer cannot be parsed.
pub(crate) async fn newest_refusals(
    client: &Client,
    settings: &ReportSettings,
    most: usize,
) -> Result<Option<Vec<ReportEntry>>, Error> {
    let mut newest: Vec<ReportEntry> = Vec::new();
    let writer = ReportWriter::new(client.clone(), settings.flavour, settings.reach.clone());
    let is_installed = writer.each(&settings.namespace, |report| {
        newest.extend(of_reviews(report).filter(ReportEntry::is_refusal));
        if newest.len() > 2 * most {
            keep_newest(&mut newest, most);
        }
    });
    let is_installed = is_installed.await?;
    keep_newest(&mut newest, most);
    Ok(is_installed.then_some(newest))
}

/// The findings of reviews in a report, without those of scans.
fn of_reviews(StoredReport { release, body, .. }: StoredReport) -> impl Iterator<Item = ReportEntry> {
    let entries = body.results.into_iter().filter_map(move |result| result.entry(&release));
    entries.filter(|(_, by)| *by == FoundBy::Admission).map(|(entry, _)| entry)
}

fn keep_newest(entries: &mut Vec<ReportEntry>, most: usize) {
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.last));
    entries.truncate(most);
}

/// Settings of reports.
#[derive(Debug, Clone)]
pub struct ReportSettings {
    pub flavour: Flavour,
    /// How long a report keeps a finding.
    pub retention: SignedDuration,
    /// The time between two rounds of writes.
    pub round: Duration,
    /// Interlock's own namespace, for the reports of releases without a namespace.
    pub namespace: String,
    /// The namespaces of reports and Events.
    pub reach: Reach,
    /// The name of the cluster, a property of each result.
    pub cluster: Option<ClusterName>,
}

impl ReportSettings {
    fn store(&self) -> ReportStore {
        ReportStore::new(self.retention, self.cluster.clone())
    }
}

/// The reports of every release.
pub struct Reports {
    writer: ReportWriter,
    watches: Client,
    world: Arc<Cluster>,
    metrics: Arc<ReportMetrics>,
    labels: Arc<NamespaceLabels>,
    settings: ReportSettings,
    store: Mutex<ReportStore>,
    /// Users who may write Events for a release whose report cannot be written can make every round fail.
    log_limit: LogLimit,
}

/// Why a round ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundEnd {
    Done,
    /// The kind of the reports is no longer installed.
    Uninstalled,
}

impl Reports {
    /// Reports of a cluster. Neither client may be used for urgent requests. `watches` needs a long read timeout.
    #[must_use]
    pub fn new(
        client: Client,
        watches: Client,
        world: Arc<Cluster>,
        metrics: Arc<ReportMetrics>,
        labels: Arc<NamespaceLabels>,
        settings: ReportSettings,
    ) -> Self {
        let writer = ReportWriter::new(client, settings.flavour, settings.reach.clone());
        let store = Mutex::new(settings.store());
        Self { writer, watches, world, metrics, labels, settings, store, log_limit: LogLimit::new() }
    }

    /// Adds the findings of a scan of all releases. The findings of a complete scan replace those of the previous scan.
    pub fn record_scan(&self, entries: Vec<ReportEntry>, is_complete: bool) {
        let entries = entries.into_iter().map(ReportEntry::bounded).collect();
        self.store().record_scan(entries, is_complete, Timestamp::now());
    }

    /// Writes the reports, forever. For the leader.
    pub async fn run(&self) {
        // The state of an earlier leadership is out of date.
        *self.store() = self.settings.store();
        loop {
            self.read_back().await;
            self.follow().await;
        }
    }

    /// Resets the metrics when another replica becomes the leader.
    pub fn stopped(&self) {
        self.metrics.waiting(Sink::Reports, 0);
    }

    /// Loads the existing reports once their kind is installed.
    async fn read_back(&self) {
        let mut logged = false;
        loop {
            let definition = self.writer.definition();
            let not_installed = self.settings.round * ROUNDS_UNTIL_RECHECK;
            let pause = match self.writer.list(&self.settings.namespace).await {
                Ok(Some(reports)) => {
                    self.store().load(reports, Timestamp::now());
                    return;
                }
                Ok(None) if !logged => {
                    tracing::info!(definition, "no reports are written, because their kind is not installed");
                    not_installed
                }
                Ok(None) => not_installed,
                Err(error) if !logged => {
                    let error = reason(&error);
                    tracing::warn!(definition, error, "the reports cannot be read; trying again");
                    READ_RETRY
                }
                Err(_) => READ_RETRY,
            };
            logged = true;
            sleep(pause).await;
        }
    }

    /// Follows the Events of all replicas and writes changed reports, until the kind is uninstalled.
    async fn follow(&self) {
        let own_events = Config::default().labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1));
        let apis: Vec<Api<Event>> = self.settings.reach.apis(&self.watches);
        let watches = apis.into_iter().map(|api| watcher(api, own_events.clone()).default_backoff());
        let mut events = pin!(merge_watches(watches.collect()));
        let mut rounds = interval(self.settings.round);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut listed = HashSet::new();
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => self.take(event, &mut listed),
                    // The watch of one namespace has ended.
                    None => return,
                },
                _ = rounds.tick() => if self.write().await == RoundEnd::Uninstalled {
                    return;
                },
            }
        }
    }

    fn take(&self, event: watcher::Result<watcher::Event<Event>>, listed: &mut HashSet<String>) {
        let now = Timestamp::now();
        match event {
            Ok(watcher::Event::Init) => listed.clear(),
            Ok(watcher::Event::InitApply(event)) => {
                listed.extend(event.metadata.uid.clone());
                self.observe(&event, now);
            }
            Ok(watcher::Event::InitDone) => self.store().keep_events(&std::mem::take(listed)),
            Ok(watcher::Event::Apply(event)) => self.observe(&event, now),
            Ok(watcher::Event::Delete(event)) => {
                if let Some(event) = ObservedEvent::read(&event) {
                    self.store().forget_event(&event);
                }
            }
            // The API server does not cache Events, so a watch without events ends from time to time.
            Err(error) => {
                let error = watch_reason(&error);
                tracing::debug!(error, "the watch of our Events failed, and starts again");
            }
        }
    }

    fn observe(&self, event: &Event, now: Timestamp) {
        if let Some(event) = ObservedEvent::read(event)
            && !self.store().observe(event, now)
        {
            self.metrics.dropped(Sink::Reports, 1);
        }
    }

    /// One round: drops expired entries and deleted releases, and writes changed reports.
    async fn write(&self) -> RoundEnd {
        self.store().expire(Timestamp::now());
        self.forget_gone().await;
        let due = self.store().due(MAX_WRITES, Timestamp::now(), |release| self.scope(release));
        for due in due {
            let (write, written) = self.write_one(&due).await;
            match written {
                Ok(()) => {
                    self.metrics.wrote(Sink::Reports, write);
                    self.store().written(&due);
                }
                // The namespace was deleted, and the release with it.
                Err(error) if is_missing_object(&error) => self.store().forget(&due.release),
                Err(error) if is_not_found(&error) => return RoundEnd::Uninstalled,
                Err(error) => {
                    self.metrics.wrote(Sink::Reports, Write::Failed);
                    self.store().failed(&due, Timestamp::now());
                    if let Some(suppressed) = self.log_limit.admit("report") {
                        tracing::warn!(release = %due.release, %error, suppressed, "a report cannot be written; trying again");
                    }
                }
            }
        }
        self.metrics.waiting(Sink::Reports, self.store().waiting());
        RoundEnd::Done
    }

    async fn write_one(&self, due: &DueReport) -> (Write, Result<(), Error>) {
        let place = body::place(&due.release, &self.settings.namespace);
        match &due.report {
            Some(report) => {
                let labels = self.labels.of(&due.release.namespace).await;
                (Write::Updated, self.writer.apply(&place, report, labels).await)
            }
            None => (Write::Deleted, self.writer.delete(&place).await),
        }
    }

    fn scope(&self, release: &ReleaseRef) -> Option<ObjectReference> {
        let newest = self.world.newest(release).0?;
        Some(ObjectReference {
            api_version: "v1".to_owned(),
            kind: newest.storage.kind().to_owned(),
            namespace: newest.namespace,
            name: newest.entry.name,
        })
    }

    /// Drops releases whose records were all deleted.
    async fn forget_gone(&self) {
        let recorded = self.store().recorded();
        let missing = recorded.into_iter().filter(|release| matches!(self.world.newest(release), (None, true)));
        for release in missing.take(MAX_LOOKUPS) {
            if self.is_gone(&release).await {
                self.store().forget(&release);
            }
        }
    }

    /// Whether the API server has no record of a release. The watches omit superseded records, so they cannot tell.
    async fn is_gone(&self, release: &ReleaseRef) -> bool {
        let ReleaseRef { namespace, name } = release;
        if namespace.is_empty() {
            let extension = question::Extension { name: name.clone(), freshness: Freshness::Live };
            return ask(&*self.world, extension).await.is_ok_and(|found| found.unwrap_or_default().is_empty());
        }
        for storage in [Storage::Secret, Storage::ConfigMap, Storage::Index] {
            let (namespace, release) = (namespace.clone(), name.clone());
            let history = question::History { storage, namespace, release, freshness: Freshness::Live };
            let found = ask(&*self.world, history).await;
            if !found.is_ok_and(|found| found.unwrap_or_default().newest().is_none()) {
                return false;
            }
        }
        true
    }

    fn store(&self) -> MutexGuard<'_, ReportStore> {
        // After a panic, at most one entry is incomplete.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
