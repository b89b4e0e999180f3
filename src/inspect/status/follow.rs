//! The releases whose state changes, as it changes.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, PartialObjectMeta};
use kube::core::NamespaceResourceScope;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use super::row::{Row, Stuck};
use super::survey::{Options, StatusError, View};
use crate::engine::release::{ReleaseRef, Revision, Status, Storage};
use crate::world::read;

/// The pause at most between two looks at the clock; a laptop may sleep meanwhile.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The pause at least: an API server that is away is not to be asked without end.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

/// The API server's clock, as it goes on from one answer of it.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    told: Timestamp,
    at: Instant,
}

impl Clock {
    /// It has just told this.
    #[must_use]
    pub fn told(told: Timestamp) -> Self {
        Self { told, at: Instant::now() }
    }

    /// What it says now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let since = SignedDuration::try_from(self.at.elapsed()).unwrap_or_default();
        self.told.checked_add(since).unwrap_or(self.told)
    }
}

/// A release in one storage.
type Place = (ReleaseRef, Storage);

/// What a watch tells.
type Tales = Pin<Box<dyn Stream<Item = Told> + Send>>;

/// Something that a watch told.
enum Told {
    /// The records of a release changed, or may have.
    Changed(Place),
    /// A record is there, with this revision and status.
    There(Place, Revision, Status),
    /// A whole list begins.
    Begins(&'static str),
    /// It is whole: what it did not name is gone.
    Whole(&'static str),
    Failed(StatusError),
}

/// Tells every release that changes after `known` was listed, until nobody listens or a watch is refused. A release whose
/// last record went is told a last time, with the status `gone`.
///
/// # Errors
/// When the records cannot be watched, or `tell` fails.
pub async fn follow(
    view: &mut View<'_>,
    options: &Options,
    only: Option<&ReleaseRef>,
    known: Vec<Row>,
    clock: &Clock,
    mut tell: impl FnMut(&Row) -> std::io::Result<()>,
) -> Result<(), StatusError> {
    let mut rows: HashMap<Place, Row> = HashMap::new();
    for row in known {
        rows.insert((row.release_ref(), row.storage.into()), row);
    }
    let namespace = options.namespace.as_deref();
    let labels =
        only.map_or(read::RECORD_SELECTOR.to_owned(), |only| format!("{},name={}", read::RECORD_SELECTOR, only.name));
    let secrets = records::<Secret>(&view.client, namespace, &labels, "Secrets");
    let config_maps = records::<ConfigMap>(&view.client, namespace, &labels, "ConfigMaps");
    let mut told = pin!(stream::select(secrets, config_maps));
    let mut listed: HashMap<&'static str, HashSet<Place>> = HashMap::new();
    loop {
        let next = tokio::select! {
            next = told.next() => next,
            () = tokio::time::sleep(pause(&rows, clock.now())) => None,
        };
        let changed: Vec<Place> = match next {
            Some(Told::Changed(place)) => {
                listed.values_mut().for_each(|listed| _ = listed.insert(place.clone()));
                vec![place]
            }
            Some(Told::There(place, revision, status)) => {
                let is_news = rows.get(&place).is_none_or(|row| {
                    revision.0 > row.revision || (revision.0 == row.revision && status.as_str() != row.status)
                });
                listed.values_mut().for_each(|listed| _ = listed.insert(place.clone()));
                is_news.then_some(place).into_iter().collect()
            }
            Some(Told::Begins(kind)) => {
                listed.insert(kind, HashSet::new());
                continue;
            }
            Some(Told::Whole(kind)) => {
                let there = listed.remove(kind).unwrap_or_default();
                rows.keys().filter(|place| is_kept_in(place.1, kind) && !there.contains(*place)).cloned().collect()
            }
            Some(Told::Failed(error)) => return Err(error),
            // Nothing was written, and an operation is old enough by now. A HelmRelease may give it more time since.
            None => {
                view.refresh().await;
                due(&rows, clock.now())
            }
        };
        for place in changed {
            // What cannot be read now is told by the list with which the watch begins again.
            if let Ok(Some(row)) = look_again(view, &place, &mut rows, clock.now()).await
                && (!options.stuck || row.stuck != Stuck::No)
            {
                tell(&row).map_err(|_| StatusError::Unread)?;
            }
        }
    }
}

/// Reads a release again, and hands it on if that shows anything new.
async fn look_again(
    view: &View<'_>,
    place: &Place,
    rows: &mut HashMap<Place, Row>,
    now: Timestamp,
) -> Result<Option<Row>, StatusError> {
    let (release, storage) = place;
    let history = view.history(release, *storage).await?;
    let Some(row) = view.row(release, *storage, &history, now).await else {
        return Ok(rows.remove(place).map(|row| Row { status: "gone", stuck: Stuck::No, next: None, ..row }));
    };
    let before = rows.insert(place.clone(), row.clone());
    Ok(before.is_none_or(|before| before != row).then_some(row))
}

fn is_kept_in(storage: Storage, kind: &str) -> bool {
    (storage == Storage::ConfigMap) == (kind == "ConfigMaps")
}

/// How long until the first operation in flight counts as stuck.
fn pause(rows: &HashMap<Place, Row>, now: Timestamp) -> Duration {
    let left = rows.values().filter(|row| row.stuck == Stuck::No).filter_map(|row| row.stuck_from);
    let left = left.map(|from| Duration::try_from(from.duration_since(now)).unwrap_or_default());
    left.min().unwrap_or(LONGEST_PAUSE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

/// Those that do by now.
fn due(rows: &HashMap<Place, Row>, now: Timestamp) -> Vec<Place> {
    let due = rows.iter().filter(|(_, row)| row.stuck == Stuck::No && row.stuck_from.is_some_and(|from| from <= now));
    due.map(|(place, _)| place.clone()).collect()
}

/// What a watch of the metadata of records tells. It begins with a list, of which what is known already is no news.
fn records<K>(client: &Client, namespace: Option<&str>, labels: &str, kind: &'static str) -> Tales
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let api: Api<PartialObjectMeta<K>> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let events = watcher(api, Config::default().labels(labels)).default_backoff();
    Box::pin(events.filter_map(move |event| std::future::ready(told(kind, event))))
}

fn told<K>(kind: &'static str, event: watcher::Result<Event<PartialObjectMeta<K>>>) -> Option<Told> {
    let record = |metadata: &ObjectMeta| {
        let (storage, release, entry) = read::record(kind.trim_end_matches('s'), metadata)?;
        Some(((ReleaseRef::new(metadata.namespace.as_deref().unwrap_or_default(), release), storage), entry))
    };
    match event {
        Ok(Event::Init) => Some(Told::Begins(kind)),
        Ok(Event::InitDone) => Some(Told::Whole(kind)),
        Ok(Event::InitApply(object)) => {
            record(&object.metadata).map(|(place, entry)| Told::There(place, entry.revision, entry.status))
        }
        Ok(Event::Apply(object) | Event::Delete(object)) => {
            record(&object.metadata).map(|(place, _)| Told::Changed(place))
        }
        Err(watcher::Error::InitialListFailed(kube::Error::Api(status))) if kind == "Secrets" && status.code == 403 => {
            Some(Told::Failed(StatusError::Watch { kind, why: status.message.clone() }))
        }
        // It begins again by itself.
        Err(_) => None,
    }
}
