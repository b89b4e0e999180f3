//! Pending records that were deleted: operations that somebody interrupted.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use interlock_engine::release::{Entry, Storage};
use tokio::sync::Notify;

/// The most records that wait to be processed. Above it the oldest one is dropped. A replica that does not lead keeps them
/// too, because it may become the leader.
const MAX_WAITING: usize = 1_000;

/// A pending record that was the newest of its release when it was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedPendingRecord {
    pub storage: Storage,
    pub namespace: String,
    pub release: String,
    /// The record as last seen.
    pub record: Entry,
}

/// Deleted pending records, in the order in which the watches saw the deletions.
#[derive(Debug, Default)]
pub struct DeletedPendingRecords {
    waiting: Mutex<VecDeque<DeletedPendingRecord>>,
    added: Notify,
}

impl DeletedPendingRecords {
    /// Adds a record.
    pub fn add(&self, deleted: DeletedPendingRecord) {
        let mut waiting = self.waiting();
        if waiting.len() == MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(deleted);
        drop(waiting);
        self.added.notify_one();
    }

    /// The oldest one, as soon as there is one. It stays until it is [done](Self::done), because processing it may be
    /// interrupted.
    pub async fn next(&self) -> DeletedPendingRecord {
        loop {
            let added = self.added.notified();
            if let Some(deleted) = self.waiting().front() {
                return deleted.clone();
            }
            added.await;
        }
    }

    /// Removes the oldest one, if it is still this one.
    pub fn done(&self, deleted: &DeletedPendingRecord) {
        let mut waiting = self.waiting();
        if waiting.front() == Some(deleted) {
            waiting.pop_front();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<DeletedPendingRecord>> {
        // Nothing can panic while it is held.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use interlock_engine::release::Status;

    use super::*;

    fn deleted(revision: u64) -> DeletedPendingRecord {
        let record = Entry::of_web(revision, Status::PendingUpgrade);
        DeletedPendingRecord {
            storage: Storage::Secret,
            namespace: "shop".to_owned(),
            release: "web".to_owned(),
            record,
        }
    }

    #[test]
    fn the_oldest_comes_first_and_is_forgotten_first() {
        let deleted_pending = DeletedPendingRecords::default();
        let next = || deleted_pending.next().now_or_never().map(|deleted| deleted.record.revision.0);
        assert_eq!(next(), None);
        deleted_pending.add(deleted(1));
        deleted_pending.add(deleted(2));
        assert_eq!((next(), next()), (Some(1), Some(1)));
        deleted_pending.done(&deleted(1));
        deleted_pending.done(&deleted(1));
        assert_eq!(next(), Some(2));
        deleted_pending.done(&deleted(2));
        assert_eq!(next(), None);
        (0..=MAX_WAITING as u64).for_each(|revision| deleted_pending.add(deleted(revision)));
        assert_eq!(next(), Some(1));
    }

    #[tokio::test]
    async fn who_waits_is_woken() {
        let deleted_pending = DeletedPendingRecords::default();
        let (taken, ()) = tokio::join!(deleted_pending.next(), async { deleted_pending.add(deleted(7)) });
        assert_eq!(taken, deleted(7));
    }
}
