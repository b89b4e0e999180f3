//! Copies of cluster state that watches keep. A copy is either complete or unused, and the reader knows when it is out of date.

use std::collections::HashSet;
use std::mem::{Discriminant, discriminant};
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::runtime::watcher::{self, Config, DefaultBackoff, Event, watcher};
use tokio::time::{Instant, sleep};

use super::api_error::watch_reason;
use super::reach::merge_watches;
use crate::readiness::Gate;
use crate::world::metadata_only::MetadataOnly;

/// After this time a watch has recovered: its next failure is logged again, and its pauses start from the beginning.
const RECOVERED_AFTER: Duration = Duration::from_secs(120);

/// A collection that a watch fills. The watch uses only these methods, so that tests can call them with values.
pub(super) trait Feed<O = ObjectMeta>: Send + Sync + 'static {
    /// An empty collection of the same kind.
    fn fresh(&self) -> Self;
    /// Adds or changes an object.
    fn apply(&mut self, object: &O);
    /// Deletes an object.
    fn delete(&mut self, object: &O);
    /// Prepares a complete list that replaces an older copy.
    fn follow(&self, _old: &Self) {}
}

/// A copy that one watch writes and every review reads.
#[derive(Debug)]
pub(super) struct Mirror<T>(RwLock<MirrorState<T>>);

#[derive(Debug)]
struct MirrorState<T> {
    copy: T,
    /// Whether a complete list was received and the watch has not failed since.
    in_sync: bool,
}

impl<T: Default> Default for Mirror<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Mirror<T> {
    /// An empty copy, not in sync.
    pub(super) fn new(copy: T) -> Self {
        Self(RwLock::new(MirrorState { copy, in_sync: false }))
    }

    /// Reads the copy, which may be out of date. The second value says whether it is in sync.
    pub(super) fn read<R>(&self, read: impl FnOnce(&T) -> R) -> (R, bool) {
        let state = self.state();
        (read(&state.copy), state.in_sync)
    }

    /// Replaces the copy with a complete one, which is in sync.
    pub(super) fn replace(&self, copy: T) {
        let old = std::mem::replace(&mut *self.state_mut(), MirrorState { copy, in_sync: true });
        // Outside the lock: freeing many small allocations takes a while.
        drop(old);
    }

    /// Drops the copy. Nothing is known until the next complete copy.
    pub(super) fn clear(&self, empty: T) {
        let old = std::mem::replace(&mut *self.state_mut(), MirrorState { copy: empty, in_sync: false });
        drop(old);
    }

    /// Marks the copy as possibly out of date.
    fn lose_sync(&self) {
        self.state_mut().in_sync = false;
    }

    fn state(&self) -> RwLockReadGuard<'_, MirrorState<T>> {
        // A panic elsewhere ends the task of the watch, and with it the sync.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, MirrorState<T>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the sync of a mirror when its watch ends, for any reason.
pub(super) struct SyncGuard<'m, T>(pub(super) &'m Mirror<T>);

impl<T> Drop for SyncGuard<'_, T> {
    fn drop(&mut self) {
        self.0.lose_sync();
    }
}

/// Keeps a mirror of the metadata of the objects of a kind with some labels, in one namespace or several, forever. `gate` opens
/// after the first complete list.
///
/// Every failure leads to a new list, because only a list proves that nothing was missed. Until then the mirror is not in sync.
/// Repeated failures lead to longer pauses, and each kind of failure is logged once.
pub(super) async fn follow<T: Feed>(
    resource: String,
    apis: Vec<Api<MetadataOnly>>,
    labels: &'static str,
    mirror: Arc<Mirror<T>>,
    gate: Gate,
) {
    let mut attempts = Attempts::default();
    loop {
        attempts.start();
        // If this task panics or is dropped, the mirror must not count as in sync.
        let guard = SyncGuard(&mirror);
        let watches = apis.iter().map(|api| watcher(api.clone(), Config::default().labels(labels)));
        let events = merge_watches(watches.collect());
        let failure = feed(events, |object| &object.metadata, &mirror, &gate).await;
        drop(guard);
        if let Some(error) = failure
            && attempts.is_news(&error)
        {
            let error = watch_reason(&error);
            tracing::warn!(%resource, labels, error, "a watch failed; reviews read from the API server for now");
        }
        attempts.pause().await;
    }
}

/// The attempts of one watch: the next pause, and the logged failures.
pub(super) struct Attempts {
    started: Instant,
    pauses: DefaultBackoff,
    reported: HashSet<Discriminant<watcher::Error>>,
}

impl Default for Attempts {
    fn default() -> Self {
        Self { started: Instant::now(), pauses: DefaultBackoff::default(), reported: HashSet::new() }
    }
}

impl Attempts {
    /// Marks the start of an attempt.
    pub(super) fn start(&mut self) {
        self.started = Instant::now();
    }

    /// Whether this kind of failure has not been logged since the watch last recovered.
    pub(super) fn is_news(&mut self, failure: &watcher::Error) -> bool {
        if self.started.elapsed() >= RECOVERED_AFTER {
            self.reported.clear();
        }
        self.reported.insert(discriminant(failure))
    }

    /// Waits, longer after each failure.
    pub(super) async fn pause(&mut self) {
        // The backoff never ends; if it did, this would be its last pause.
        sleep(self.pauses.next().unwrap_or(RECOVERED_AFTER)).await;
    }
}

/// Applies events to a mirror until the first failure; `None` at the end of the stream.
pub(super) async fn feed<K, O, T: Feed<O>>(
    events: impl Stream<Item = watcher::Result<Event<K>>>,
    read: impl Fn(&K) -> &O,
    mirror: &Mirror<T>,
    gate: &Gate,
) -> Option<watcher::Error> {
    let mut events = pin!(events);
    // A new list is collected apart from the old copy, so that objects deleted in the meantime disappear at once.
    let mut list = None;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => list = Some(mirror.read(T::fresh).0),
            Ok(Event::InitApply(object)) => {
                if let Some(list) = &mut list {
                    list.apply(read(&object));
                }
            }
            Ok(Event::InitDone) => {
                if let Some(list) = list.take() {
                    mirror.read(|old| list.follow(old));
                    mirror.replace(list);
                    gate.open();
                }
            }
            // Another namespace may send an event before the list of this one is complete.
            Ok(Event::Apply(object)) if let Some(list) = &mut list => list.apply(read(&object)),
            Ok(Event::Delete(object)) if let Some(list) = &mut list => list.delete(read(&object)),
            Ok(Event::Apply(object)) => mirror.state_mut().copy.apply(read(&object)),
            Ok(Event::Delete(object)) => mirror.state_mut().copy.delete(read(&object)),
            Err(error) => return Some(error),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, stream};

    use super::*;
    use crate::readiness::Readiness;

    /// The names of the objects.
    #[derive(Debug, Default, Clone)]
    struct Names(Vec<String>);

    impl Feed for Names {
        fn fresh(&self) -> Self {
            Self::default()
        }

        fn apply(&mut self, metadata: &ObjectMeta) {
            self.delete(metadata);
            self.0.extend(metadata.name.clone());
        }

        fn delete(&mut self, metadata: &ObjectMeta) {
            self.0.retain(|name| Some(name) != metadata.name.as_ref());
        }
    }

    type Events = Vec<watcher::Result<Event<MetadataOnly>>>;

    fn object(name: &str) -> MetadataOnly {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        MetadataOnly { types: None, metadata, _phantom: std::marker::PhantomData }
    }

    fn failure() -> watcher::Result<Event<MetadataOnly>> {
        Err(watcher::Error::NoResourceVersion)
    }

    /// Feeds the events one watch after the other, and returns the known state.
    async fn fed(watches: impl IntoIterator<Item = Events>) -> (Vec<String>, bool, Readiness) {
        let readiness = Readiness::new();
        let (mirror, gate) = (Mirror::new(Names::default()), readiness.gate("names"));
        for events in watches {
            let _session = SyncGuard(&mirror);
            feed(stream::iter(events), |object| &object.metadata, &mirror, &gate).await;
        }
        let (names, in_sync) = mirror.read(|names| names.0.clone());
        (names, in_sync, readiness)
    }

    /// A stream that does not end, like that of a live watch.
    async fn live(events: Events) -> (Vec<String>, bool, Readiness) {
        let readiness = Readiness::new();
        let (mirror, gate) = (Mirror::new(Names::default()), readiness.gate("names"));
        let events = stream::iter(events).chain(stream::pending());
        let fed = feed(events, |object| &object.metadata, &mirror, &gate);
        assert!(fed.now_or_never().is_none());
        let (names, in_sync) = mirror.read(|names| names.0.clone());
        (names, in_sync, readiness)
    }

    fn list(names: &[&str]) -> Events {
        let applied = names.iter().map(|name| Ok(Event::InitApply(object(name))));
        std::iter::once(Ok(Event::Init)).chain(applied).chain([Ok(Event::InitDone)]).collect()
    }

    #[tokio::test]
    async fn only_a_complete_list_brings_sync_and_opens_the_gate() {
        let (names, in_sync, readiness) = live(list(&["a", "b"])).await;
        assert_eq!((names.as_slice(), in_sync), (["a".to_owned(), "b".to_owned()].as_slice(), true));
        assert!(readiness.check().is_ok());

        let mut half = list(&["a"]);
        half.pop();
        let (names, in_sync, readiness) = live(half).await;
        assert!(names.is_empty() && !in_sync && readiness.check().is_err());
    }

    #[tokio::test]
    async fn changes_after_the_list_are_followed() {
        let mut events = list(&["a", "b"]);
        events.extend([Ok(Event::Delete(object("a"))), Ok(Event::Apply(object("c")))]);
        assert_eq!(live(events).await.0, ["b", "c"]);
    }

    #[tokio::test]
    async fn a_failed_watch_loses_only_its_sync() {
        let mut events = list(&["a"]);
        events.extend([failure(), Ok(Event::Apply(object("never read")))]);
        let (names, in_sync, readiness) = fed([events]).await;
        assert_eq!((names.as_slice(), in_sync), (["a".to_owned()].as_slice(), false));
        assert!(readiness.check().is_ok());
    }

    #[tokio::test]
    async fn objects_that_vanish_between_watches_go_with_the_next_list() {
        let mut half = list(&["b"]);
        half.pop();
        let (names, ..) = fed([list(&["a", "b"]), half.into_iter().chain([failure()]).collect()]).await;
        assert_eq!(names, ["a", "b"]);
        assert_eq!(fed([list(&["a", "b"]), list(&["b"])]).await.0, ["b"]);
    }
}
