//! Reports of releases: what was refused, warned of or would have been refused, and what a scan found, one object a release
//! beside its records. For whoever switches a rule from `audit` to `enforce`, and for the tools that show such reports.
//!
//! The leader alone writes them. What the other replicas refused it reads from their [Events](super::events), which live for
//! an hour; a report holds what it was told for a day. Whoever takes over reads the reports back, and each of them names
//! the Events that are counted in it, so nothing is lost and nothing counted twice.
//!
//! Reports inform; nothing is decided by them.

mod body;
mod entry;
mod store;
mod writer;

use std::collections::HashSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::events::v1::Event;
use kube::api::Api;
use kube::core::Status;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, watcher};
use kube::{Client, Error};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::MANAGED_BY;
use super::metrics::{Metrics, Sink, Write};
use crate::engine::decision::ObjectReference;
use crate::engine::evidence::{Answer, Freshness, Knowledge, Query};
use crate::engine::release::{ReleaseRef, Storage};
use crate::world::World;
use crate::world::kubernetes::Cluster;
use crate::world::kubernetes::reach::{Reach, together};
use entry::Told;
use store::{Due, Store};
use writer::Writer;

pub use entry::{Entry, Outcome};
pub use writer::Flavour;

/// Reports written in one round, at most.
const BATCH: usize = 100;

/// Releases that are looked for by reads in one round, at most, after the watches no longer know them.
const LOOKS: usize = 20;

/// Rounds between two looks for the kind of the reports, where it is not installed.
const NOT_INSTALLED: u32 = 12;

/// Between two attempts to read the reports back.
const PAUSE: Duration = Duration::from_secs(5);

/// How reports are kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The API that they are written to.
    pub flavour: Flavour,
    /// How long they hold what happened.
    pub retention: SignedDuration,
    /// Between two rounds of writing.
    pub round: Duration,
    /// Interlock's own namespace, for releases that have none.
    pub namespace: String,
    /// Where there are reports and Events.
    pub reach: Reach,
}

/// The reports of every release.
pub struct Reports {
    writer: Writer,
    watches: Client,
    world: Arc<Cluster>,
    metrics: Arc<Metrics>,
    settings: Settings,
    store: Mutex<Store>,
}

/// Why a round ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    Done,
    /// The kind of the reports is not installed any more.
    Uninstalled,
}

impl Reports {
    /// Reports of a cluster. Both clients are used for nothing that is in a hurry; `watches` needs one with patience.
    #[must_use]
    pub fn new(
        client: Client,
        watches: Client,
        world: Arc<Cluster>,
        metrics: Arc<Metrics>,
        settings: Settings,
    ) -> Self {
        let writer = Writer::new(client, settings.flavour, settings.reach.clone());
        let store = Mutex::new(Store::new(settings.retention));
        Self { writer, watches, world, metrics, settings, store }
    }

    /// Takes everything that a scan found, of every release: in place of what the one before found, or besides it where the
    /// scan was not whole.
    pub fn state(&self, entries: Vec<Entry>, is_whole: bool) {
        self.store().state(entries, is_whole, Timestamp::now());
    }

    /// Keeps the reports, for ever: for the leader.
    pub async fn keep(&self) {
        // What an earlier leadership knew is old by now, and another leader's to tell.
        *self.store() = Store::new(self.settings.retention);
        loop {
            self.read_back().await;
            self.follow().await;
        }
    }

    /// Another replica keeps them from now on.
    pub fn stopped(&self) {
        self.metrics.waiting(Sink::Reports, 0);
    }

    /// Starts from the reports that are there, once their kind is installed.
    async fn read_back(&self) {
        let mut told = false;
        loop {
            let definition = self.writer.definition();
            let not_installed = self.settings.round * NOT_INSTALLED;
            let pause = match self.writer.list(&self.settings.namespace).await {
                Ok(Some(reports)) => {
                    self.store().load(reports, Timestamp::now());
                    return;
                }
                Ok(None) if !told => {
                    tracing::info!(definition, "there are no reports, because their kind is not installed");
                    not_installed
                }
                Ok(None) => not_installed,
                Err(error) if !told => {
                    tracing::warn!(definition, %error, "the reports cannot be read for now");
                    PAUSE
                }
                Err(_) => PAUSE,
            };
            told = true;
            sleep(pause).await;
        }
    }

    /// Follows the Events of every replica, and writes what changes, as long as the kind is installed.
    async fn follow(&self) {
        let ours = Config::default().labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1));
        let watches = self.settings.reach.places().map(|place| {
            let events: Api<Event> = match place {
                Some(namespace) => Api::namespaced(self.watches.clone(), namespace),
                None => Api::all(self.watches.clone()),
            };
            watcher(events, ours.clone()).default_backoff()
        });
        let mut events = pin!(together(watches.collect()));
        let mut rounds = interval(self.settings.round);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut living = HashSet::new();
        let mut troubled = false;
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => self.take(event, &mut living),
                    // One of several began anew.
                    None => return,
                },
                _ = rounds.tick() => if self.write(&mut troubled).await == Round::Uninstalled {
                    return;
                },
            }
        }
    }

    fn take(&self, event: watcher::Result<watcher::Event<Event>>, living: &mut HashSet<String>) {
        let now = Timestamp::now();
        match event {
            Ok(watcher::Event::Init) => living.clear(),
            Ok(watcher::Event::InitApply(event)) => {
                living.extend(event.metadata.uid.clone());
                self.observe(&event, now);
            }
            Ok(watcher::Event::InitDone) => self.store().keep_events(&std::mem::take(living)),
            Ok(watcher::Event::Apply(event)) => self.observe(&event, now),
            Ok(watcher::Event::Delete(event)) => {
                if let Some(told) = Told::read(&event) {
                    self.store().forget_event(&told);
                }
            }
            // Events pass no cache of the API server, so a quiet watch of them ends every now and then.
            Err(error) => tracing::debug!(%error, "the watch of our Events failed, and starts again"),
        }
    }

    fn observe(&self, event: &Event, now: Timestamp) {
        if let Some(told) = Told::read(event)
            && !self.store().observe(told, now)
        {
            self.metrics.dropped(Sink::Reports, 1);
        }
    }

    /// One round: what is old or gone falls out, and what differs is written.
    async fn write(&self, troubled: &mut bool) -> Round {
        self.store().expire(Timestamp::now());
        self.forget_gone().await;
        let due = self.store().due(BATCH, Timestamp::now(), |release| self.scope(release));
        for due in due {
            let (write, written) = self.write_one(&due).await;
            match written {
                Ok(()) => {
                    self.metrics.wrote(Sink::Reports, write);
                    self.store().written(&due);
                    *troubled = false;
                }
                Err(Error::Api(status)) if status.code == 404 && !names_object(&status) => return Round::Uninstalled,
                // Its namespace is gone, and with it the release.
                Err(Error::Api(status)) if status.code == 404 => self.store().forget(&due.release),
                Err(error) => {
                    self.metrics.wrote(Sink::Reports, Write::Failed);
                    self.store().failed(&due, Timestamp::now());
                    if !std::mem::replace(troubled, true) {
                        tracing::warn!(release = %due.release, %error, "a report could not be written; it is tried again");
                    }
                }
            }
        }
        self.metrics.waiting(Sink::Reports, self.store().waiting());
        Round::Done
    }

    async fn write_one(&self, due: &Due) -> (Write, Result<(), Error>) {
        let place = body::place(&due.release, &self.settings.namespace);
        match &due.report {
            Some(report) => (Write::Updated, self.writer.apply(&place, report).await),
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

    /// Forgets the releases that had records and have none any more.
    async fn forget_gone(&self) {
        let recorded = self.store().recorded();
        let missing = recorded.into_iter().filter(|release| matches!(self.world.newest(release), (None, true)));
        for release in missing.take(LOOKS) {
            if self.is_gone(&release).await {
                self.store().forget(&release);
            }
        }
    }

    /// Whether the API server has no record of a release: the watches do not keep superseded ones.
    async fn is_gone(&self, release: &ReleaseRef) -> bool {
        let ReleaseRef { namespace, name } = release;
        let queries = match namespace.as_str() {
            "" => vec![Query::Extension { name: name.clone(), freshness: Freshness::Live }],
            namespace => [Storage::Secret, Storage::ConfigMap, Storage::OlmIndex]
                .map(|storage| Query::History { storage, namespace: namespace.to_owned(), release: name.clone() })
                .into(),
        };
        for query in queries {
            match self.world.answer(&query).await {
                Answer::Absent => {}
                Answer::Known(Knowledge::History(history)) if history.newest().is_none() => {}
                Answer::Known(_) | Answer::Unavailable(_) => return false,
            }
        }
        true
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        // What a panic left half done is at worst one entry.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a 404 is that of an object, and not that of a path which the API server does not serve.
fn names_object(status: &Status) -> bool {
    status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}
