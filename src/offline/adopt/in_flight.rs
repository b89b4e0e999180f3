//! The operations in flight at a moment of the log, by namespace.

use std::collections::HashMap;

use interlock_engine::decision::Transition;
use interlock_engine::release::Status;

use crate::offline::replay::Replayed;

/// The most operations that are remembered. More at a time are those of clients that die.
const MAX_OPERATIONS: usize = 10_000;

/// The user of each operation in flight, by namespace and release.
#[derive(Debug, Default)]
pub(super) struct Operations {
    in_flight: HashMap<String, HashMap<String, String>>,
    count: usize,
}

impl Operations {
    /// Follows a write of a record.
    pub(super) fn follow(&mut self, replayed: &Replayed) {
        let (Some(transition), Some(release)) = (&replayed.context.transition, &replayed.release) else { return };
        let Transition { kind, to, .. } = transition.as_ref();
        if kind.is_start() {
            if self.count < MAX_OPERATIONS {
                let releases = self.in_flight.entry(release.namespace.clone()).or_default();
                self.count += usize::from(releases.insert(release.name.clone(), replayed.user.clone()).is_none());
            }
        } else if !to.is_some_and(Status::is_in_flight)
            && let Some(releases) = self.in_flight.get_mut(&release.namespace)
        {
            self.count -= usize::from(releases.remove(&release.name).is_some());
            if releases.is_empty() {
                self.in_flight.remove(&release.namespace);
            }
        }
    }

    pub(super) fn is_in_flight(&self, namespace: &str) -> bool {
        self.in_flight.contains_key(namespace)
    }

    /// Whether another user holds an operation in a namespace.
    pub(super) fn is_held_by_another(&self, namespace: &str, user: &str) -> bool {
        self.in_flight.get(namespace).is_some_and(|releases| releases.values().any(|holder| holder != user))
    }
}
