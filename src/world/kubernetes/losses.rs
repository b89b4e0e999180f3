//! Pending records that were there and are gone: operations that somebody cut short.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::engine::release::{Entry, Storage};

/// The most losses that wait to be dealt with; the oldest is forgotten for the newest. A replica that does not lead keeps
/// them, in case it will.
const MOST: usize = 1_000;

/// A pending record that was the newest of its release when it was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// How it was stored.
    pub storage: Storage,
    /// The namespace of the record.
    pub namespace: String,
    /// The release.
    pub release: String,
    /// The record, as last seen.
    pub record: Entry,
}

/// Losses in the order in which the watches saw them.
#[derive(Debug, Default)]
pub struct Losses {
    waiting: Mutex<VecDeque<Loss>>,
    added: Notify,
}

impl Losses {
    /// Adds one.
    pub fn add(&self, loss: Loss) {
        let mut waiting = self.waiting();
        if waiting.len() == MOST {
            waiting.pop_front();
        }
        waiting.push_back(loss);
        drop(waiting);
        self.added.notify_one();
    }

    /// The oldest one, once there is one. It stays until it is [done](Self::done): whoever deals with it may be interrupted.
    pub async fn next(&self) -> Loss {
        loop {
            let added = self.added.notified();
            if let Some(loss) = self.waiting().front() {
                return loss.clone();
            }
            added.await;
        }
    }

    /// Forgets the oldest one, if it still is this one.
    pub fn done(&self, loss: &Loss) {
        let mut waiting = self.waiting();
        if waiting.front() == Some(loss) {
            waiting.pop_front();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Loss>> {
        // Nothing can panic while it is held.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::engine::release::Status;

    fn loss(revision: u64) -> Loss {
        let record = Entry::of_web(revision, Status::PendingUpgrade);
        Loss { storage: Storage::Secret, namespace: "shop".to_owned(), release: "web".to_owned(), record }
    }

    #[test]
    fn the_oldest_comes_first_and_is_forgotten_first() {
        let losses = Losses::default();
        let next = || losses.next().now_or_never().map(|loss| loss.record.revision.0);
        assert_eq!(next(), None);
        losses.add(loss(1));
        losses.add(loss(2));
        assert_eq!((next(), next()), (Some(1), Some(1)));
        losses.done(&loss(1));
        losses.done(&loss(1));
        assert_eq!(next(), Some(2));
        losses.done(&loss(2));
        assert_eq!(next(), None);
        (0..=MOST as u64).for_each(|revision| losses.add(loss(revision)));
        assert_eq!(next(), Some(1));
    }

    #[tokio::test]
    async fn who_waits_is_woken() {
        let losses = Losses::default();
        let (taken, ()) = tokio::join!(losses.next(), async { losses.add(loss(7)) });
        assert_eq!(taken, loss(7));
    }
}
