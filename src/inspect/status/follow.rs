//! Watches releases and reports each change.

use std::collections::{HashMap, HashSet};
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt, stream};
use interlock_engine::answers::read;
use interlock_engine::release::{ReleaseRef, Revision, Status, Storage};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, ApiResource};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, watcher};

use super::summary::ReleaseSummary;
use super::survey::{StatusError, StatusOptions, row};
use crate::inspect::diagnosis::Stuck;
use crate::inspect::view::View;
use crate::world::kubernetes::clock::ServerClock;
use crate::world::metadata_only::{MetadataOnly, resource_of};

/// The maximum time between two checks of the clock; a laptop may sleep meanwhile.
const MAX_RECHECK_INTERVAL: Duration = Duration::from_secs(60);

/// The minimum time, so that an unavailable API server is not called in a loop.
const MIN_RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How long the API server must refuse a watch before the refusal counts. A starting API server does not know its roles yet, and
/// refuses all users.
const REFUSAL_COUNTS_AFTER: Duration = Duration::from_secs(10);

/// A release in one storage.
type StoredRelease = (ReleaseRef, Storage);

/// The events of a watch.
type WatchEvents = Pin<Box<dyn Stream<Item = RecordEvent> + Send>>;

/// An event of a watch of records.
enum RecordEvent {
    /// The records of a release may have changed.
    Changed(StoredRelease),
    /// A list contains a record with this revision and status.
    Listed(StoredRelease, Revision, Status),
    /// A complete list starts.
    ListStarted(&'static str),
    /// The list is complete: releases that it does not contain are gone.
    ListDone(&'static str),
    Failed(StatusError),
}

/// Prints every release that changes after `known` was listed, until `print` fails or a watch is refused. A release
/// whose last record was deleted is printed once more, with the status `gone`.
///
/// # Errors
/// When the records cannot be watched, or `print` fails.
pub(crate) async fn follow(
    view: &mut View<'_>,
    options: &StatusOptions,
    only: Option<&ReleaseRef>,
    known: Vec<ReleaseSummary>,
    clock: &ServerClock,
    mut print: impl FnMut(&ReleaseSummary) -> std::io::Result<()>,
) -> Result<(), StatusError> {
    let mut releases = FollowedReleases::new(known);
    let mut events = pin!(record_events(&view.client, options.namespace.as_deref(), only));
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = tokio::time::sleep(recheck_interval(&releases.rows, clock.now())) => None,
        };
        let changed = match event {
            Some(event) => releases.changed_by(event)?,
            // No record changed, but an operation may be old enough now. A changed HelmRelease may give it more time.
            None => {
                view.refresh().await;
                newly_stuck(&releases.rows, clock.now())
            }
        };
        for release in changed {
            // A release that cannot be read now appears in the list with which the watch restarts.
            if let Ok(Some(row)) = read_again(view, &release, &mut releases.rows, clock.now()).await
                && (!options.stuck || row.stuck != Stuck::No)
            {
                print(&row).map_err(|_| StatusError::Unread)?;
            }
        }
    }
}

/// Yields an item whenever the records of a release may have changed, forever: the watches restart by themselves. The items after
/// the start stand for the lists with which the watches begin.
pub(crate) fn changes(client: &Client, release: &ReleaseRef) -> impl Stream<Item = Result<(), StatusError>> + use<> {
    let events = record_events(client, Some(&release.namespace), Some(release));
    events.filter_map(|event| {
        std::future::ready(match event {
            RecordEvent::Changed(_) | RecordEvent::ListDone(_) => Some(Ok(())),
            RecordEvent::Listed(..) | RecordEvent::ListStarted(_) => None,
            RecordEvent::Failed(error) => Some(Err(error)),
        })
    })
}

/// The releases that a watch follows.
struct FollowedReleases {
    rows: HashMap<StoredRelease, ReleaseSummary>,
    /// The releases in each list that is not complete yet, by its kind.
    listed: HashMap<&'static str, HashSet<StoredRelease>>,
}

impl FollowedReleases {
    fn new(known: Vec<ReleaseSummary>) -> Self {
        let rows = known.into_iter().map(|row| ((row.release_ref(), row.storage), row)).collect();
        Self { rows, listed: HashMap::new() }
    }

    /// The releases that an event may have changed.
    fn changed_by(&mut self, event: RecordEvent) -> Result<Vec<StoredRelease>, StatusError> {
        match event {
            RecordEvent::Changed(release) => {
                self.mark_listed(&release);
                Ok(vec![release])
            }
            RecordEvent::Listed(release, revision, status) => {
                let is_news = self.rows.get(&release).is_none_or(|row| {
                    revision.0 > row.revision || (revision.0 == row.revision && status.as_str() != row.status)
                });
                self.mark_listed(&release);
                Ok(is_news.then_some(release).into_iter().collect())
            }
            RecordEvent::ListStarted(kind) => {
                self.listed.insert(kind, HashSet::new());
                Ok(Vec::new())
            }
            RecordEvent::ListDone(kind) => {
                let listed = self.listed.remove(kind).unwrap_or_default();
                let stored = self.rows.keys().filter(|release| is_stored_in(release.1, kind));
                Ok(stored.filter(|release| !listed.contains(*release)).cloned().collect())
            }
            RecordEvent::Failed(error) => Err(error),
        }
    }

    fn mark_listed(&mut self, release: &StoredRelease) {
        self.listed.values_mut().for_each(|listed| _ = listed.insert(release.clone()));
    }
}

/// Reads a release again; `None` if nothing changed.
async fn read_again(
    view: &View<'_>,
    release: &StoredRelease,
    rows: &mut HashMap<StoredRelease, ReleaseSummary>,
    now: Timestamp,
) -> Result<Option<ReleaseSummary>, StatusError> {
    let (name, storage) = release;
    let history = view.history(name, *storage).await?;
    let Some(row) = row(view, name, *storage, &history, now).await else {
        return Ok(rows.remove(release).map(|row| ReleaseSummary {
            status: "gone",
            stuck: Stuck::No,
            problems: Vec::new(),
            next: None,
            next_kind: None,
            why: None,
            wait_until: None,
            ..row
        }));
    };
    let before = rows.insert(release.clone(), row.clone());
    Ok(before.is_none_or(|before| before != row).then_some(row))
}

fn is_stored_in(storage: Storage, kind: &str) -> bool {
    (storage == Storage::ConfigMap) == (kind == "ConfigMaps")
}

/// The time until the first pending operation counts as stuck.
fn recheck_interval(rows: &HashMap<StoredRelease, ReleaseSummary>, now: Timestamp) -> Duration {
    let left = rows.values().filter(|row| row.stuck == Stuck::No).filter_map(|row| row.stuck_from);
    let left = left.map(|from| Duration::try_from(from.duration_since(now)).unwrap_or_default());
    left.min().unwrap_or(MAX_RECHECK_INTERVAL).clamp(MIN_RECHECK_INTERVAL, MAX_RECHECK_INTERVAL)
}

/// The releases whose operation counts as stuck now.
fn newly_stuck(rows: &HashMap<StoredRelease, ReleaseSummary>, now: Timestamp) -> Vec<StoredRelease> {
    let newly_stuck =
        rows.iter().filter(|(_, row)| row.stuck == Stuck::No && row.stuck_from.is_some_and(|from| from <= now));
    newly_stuck.map(|(release, _)| release.clone()).collect()
}

/// The events of the records of a namespace or the cluster, or of one release.
fn record_events(
    client: &Client,
    namespace: Option<&str>,
    only: Option<&ReleaseRef>,
) -> impl Stream<Item = RecordEvent> + use<> {
    let labels =
        only.map_or(read::RECORD_SELECTOR.to_owned(), |only| format!("{},name={}", read::RECORD_SELECTOR, only.name));
    let secrets = watch_records(client, namespace, &resource_of::<Secret>(), &labels, "Secrets");
    stream::select(secrets, watch_records(client, namespace, &resource_of::<ConfigMap>(), &labels, "ConfigMaps"))
}

/// Watches the metadata of records. The watch starts with a list.
fn watch_records(
    client: &Client,
    namespace: Option<&str>,
    resource: &ApiResource,
    labels: &str,
    kind: &'static str,
) -> WatchEvents {
    let api: Api<MetadataOnly> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let events = watcher(api, Config::default().labels(labels)).default_backoff();
    let mut refusals = Refusals::default();
    Box::pin(events.filter_map(move |event| {
        let has_lasted = refusals.have_lasted(&event, Instant::now());
        std::future::ready(record_event(kind, event, has_lasted))
    }))
}

/// The time since which the API server has refused every attempt to watch.
#[derive(Default)]
struct Refusals(Option<Instant>);

impl Refusals {
    /// Notes the outcome of an attempt, and returns whether the API server has refused all attempts for long enough to count.
    fn have_lasted<K>(&mut self, event: &watcher::Result<Event<K>>, now: Instant) -> bool {
        match event {
            Err(error) if refusal(error).is_some() => {
                now.duration_since(*self.0.get_or_insert(now)) >= REFUSAL_COUNTS_AFTER
            }
            // This event precedes each attempt to list.
            Ok(Event::Init) => false,
            Ok(_) | Err(_) => {
                self.0 = None;
                false
            }
        }
    }
}

/// Why the API server refuses a watch, if it does.
fn refusal(error: &watcher::Error) -> Option<&str> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => {
            Some(status.message.as_str()).filter(|_| status.code == 403)
        }
        _ => None,
    }
}

fn record_event(
    kind: &'static str,
    event: watcher::Result<Event<MetadataOnly>>,
    refusal_counts: bool,
) -> Option<RecordEvent> {
    let record = |metadata: &ObjectMeta| {
        let (storage, release, entry) = read::record(kind.trim_end_matches('s'), metadata)?;
        Some(((ReleaseRef::new(metadata.namespace.as_deref().unwrap_or_default(), release), storage), entry))
    };
    match event {
        Ok(Event::Init) => Some(RecordEvent::ListStarted(kind)),
        Ok(Event::InitDone) => Some(RecordEvent::ListDone(kind)),
        Ok(Event::InitApply(object)) => {
            record(&object.metadata).map(|(release, entry)| RecordEvent::Listed(release, entry.revision, entry.status))
        }
        Ok(Event::Apply(object) | Event::Delete(object)) => {
            record(&object.metadata).map(|(release, _)| RecordEvent::Changed(release))
        }
        // The watch restarts by itself. Without the right to watch ConfigMaps, the records in Secrets are watched.
        Err(error) => refusal(&error)
            .filter(|_| refusal_counts && kind == "Secrets")
            .map(|why| RecordEvent::Failed(StatusError::Watch { kind, why: why.to_owned() })),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status as ApiStatus;

    use super::*;

    fn api_error(code: u16) -> kube::Error {
        kube::Error::Api(Box::new(ApiStatus::failure("no", "reason").with_code(code)))
    }

    /// Whether the last of these outcomes, with their times in seconds, shows a refusal that counts.
    fn counts(outcomes: Vec<(u64, watcher::Result<Event<()>>)>) -> bool {
        let (start, mut refusals) = (Instant::now(), Refusals::default());
        let counted =
            outcomes.iter().map(|(second, event)| refusals.have_lasted(event, start + Duration::from_secs(*second)));
        counted.last().unwrap()
    }

    fn refused() -> watcher::Result<Event<()>> {
        Err(watcher::Error::WatchStartFailed(api_error(403)))
    }

    #[test]
    fn a_refusal_counts_once_it_has_lasted() {
        assert!(!counts(vec![(0, refused())]));
        assert!(!counts(vec![(0, refused()), (9, refused())]));
        let list_refused = Err(watcher::Error::InitialListFailed(api_error(403)));
        assert!(counts(vec![(0, refused()), (5, Ok(Event::Init)), (10, list_refused)]));
    }

    #[test]
    fn the_refusals_of_an_api_server_that_starts_do_not_count() {
        let unreachable = || Err(watcher::Error::WatchStartFailed(api_error(503)));
        assert!(!counts(vec![(0, refused()), (5, unreachable()), (11, refused())]));
        assert!(!counts(vec![(0, refused()), (5, Ok(Event::InitDone)), (11, refused())]));
        assert!(!counts(vec![(0, refused()), (11, unreachable())]));
    }
}
