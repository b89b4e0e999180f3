//! A copy of the objects of a custom kind. A watch keeps it while the definition of the kind is installed.

use std::sync::Arc;

use kube::api::Api;
use kube::runtime::watcher::{self, Config, watcher};
use tokio::sync::watch::{Receiver, Sender};

use super::api_error::{reason, watch_reason};
use super::definition::{self, Definition};
use super::intake::{IntakeClient, Projected};
use super::kinds::Kinds;
use super::reach::{Reach, merge_watches};
use super::watch::{Attempts, Feed, Mirror, SyncGuard, feed};
use crate::readiness::Gate;

/// The number of consecutive transient failures that are not logged. They take some ten seconds.
const QUIET_FAILURES: u32 = 5;

/// The number of objects per page of a list. Even if all of them are as large as possible, a page stays far below the limit of an
/// answer.
pub(super) const PAGE_SIZE: u32 = 100;

#[derive(Debug, Clone, Copy)]
pub(super) struct CustomKind {
    pub(super) group: &'static str,
    /// The kind, in any version that the cluster serves.
    pub(super) kind: &'static str,
    /// The name of its CustomResourceDefinition.
    pub(super) definition: &'static str,
}

/// A collection of the objects of one custom kind.
pub(super) trait CustomFeed: Feed<Projected> + Default {
    const KIND: CustomKind;
}

/// The objects of a custom kind. They are unknown until they are followed.
#[derive(Debug, Default)]
pub(super) struct CustomObjects<T> {
    pub(super) definition: Sender<Definition>,
    pub(super) objects: Mirror<T>,
}

impl<T: CustomFeed> CustomObjects<T> {
    /// Reads the copy; `None` if it is not in sync. Without the definition, there are no objects.
    pub(super) fn read<R: Default>(&self, read: impl FnOnce(&T) -> R) -> Option<R> {
        match *self.definition.borrow() {
            Definition::Unknown => None,
            Definition::Absent => Some(R::default()),
            Definition::Installed { .. } => {
                let (read, in_sync) = self.objects.read(read);
                in_sync.then_some(read)
            }
        }
    }

    /// Reads the copy as of its last sync. Without the definition, there are no objects.
    pub(super) fn last_known<R: Default>(&self, read: impl FnOnce(&T) -> R) -> R {
        match *self.definition.borrow() {
            Definition::Absent => R::default(),
            Definition::Unknown | Definition::Installed { .. } => self.objects.read(read).0,
        }
    }

    /// Follows the definition, forever.
    pub(super) async fn follow_definition(self: Arc<Self>, client: IntakeClient) {
        definition::follow(client, T::KIND.definition, &self.definition).await;
    }

    /// Follows the objects while their definition is installed, forever. `gate` opens when the definition turns out not to be
    /// installed, or after the first list, or after a failed list: a failure of another system must not keep Interlock from
    /// starting.
    pub(super) async fn follow(self: Arc<Self>, client: IntakeClient, reach: Reach, gate: Gate) {
        let mut definition = self.definition.subscribe();
        loop {
            let now = definition.borrow_and_update().clone();
            match &now {
                Definition::Installed { .. } => {
                    let mut other = definition.clone();
                    tokio::select! {
                        () = self.follow_installed(&client, &reach, &gate, definition.clone()) => {}
                        _ = other.wait_for(|then| *then != now) => {}
                    }
                    continue;
                }
                Definition::Absent => {
                    self.objects.clear(T::default());
                    gate.open();
                }
                Definition::Unknown => {}
            }
            // This task owns the sender, so the channel does not end.
            let _ = definition.changed().await;
        }
    }

    /// Runs one watch after the other. A new definition may not be served at once, and the served version may change.
    async fn follow_installed(
        &self,
        client: &IntakeClient,
        reach: &Reach,
        gate: &Gate,
        mut definition: Receiver<Definition>,
    ) {
        let CustomKind { group, kind, .. } = T::KIND;
        let mut attempts = Attempts::default();
        let (mut reported, mut in_a_row) = (false, 0);
        loop {
            attempts.start();
            definition.mark_unchanged();
            match Kinds::default().resolve(client.kube(), group, kind).await {
                Ok(Some(resource)) => {
                    reported = false;
                    // If this task is dropped, the copy must not count as in sync.
                    let guard = SyncGuard(&self.objects);
                    let apis: Vec<Api<Projected>> = reach.apis_with(client.kube(), &resource);
                    let watches = apis.into_iter().map(|api| watcher(api, Config::default().page_size(PAGE_SIZE)));
                    let events = merge_watches(watches.collect());
                    let failure = feed(events, |object| object, &self.objects, gate).await;
                    in_a_row = if self.objects.read(|_| ()).1 { 0 } else { in_a_row + 1 };
                    drop(guard);
                    if let Some(error) = failure.filter(|error| in_a_row >= QUIET_FAILURES || !passes(error))
                        && attempts.is_news(&error)
                    {
                        let error = watch_reason(&error);
                        tracing::warn!(
                            kind,
                            error,
                            "the watch of a custom kind failed; its objects are not known for now"
                        );
                    }
                }
                Ok(None) => {}
                Err(error) if !reported => {
                    reported = true;
                    let error = reason(&error);
                    tracing::warn!(kind, error, "the served version of a custom kind cannot be read");
                }
                Err(_) => {}
            }
            gate.open();
            tokio::select! {
                () = attempts.pause() => {}
                _ = definition.changed() => {}
            }
        }
    }
}

/// Whether a failure is one that an API server returns while it installs or removes a definition.
fn passes(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => matches!(status.code, 404 | 429),
        _ => false,
    }
}
