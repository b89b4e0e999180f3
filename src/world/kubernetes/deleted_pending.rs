//! Deleted pending records: somebody interrupted their operations.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use interlock_engine::release::{Entry, Storage};
use tokio::sync::Notify;

/// The maximum number of records that wait to be processed. The oldest one above it is dropped. Every replica keeps these records,
/// because it may become the leader.
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

    /// Waits for a record, and returns the oldest. The record stays until it is [done](Self::done), because its processing may be
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

    /// Removes a record, if it is still the oldest.
    pub fn done(&self, deleted: &DeletedPendingRecord) {
        let mut waiting = self.waiting();
        if waiting.front() == Some(deleted) {
            waiting.pop_front();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<DeletedPendingRecord>> {
        // Nothing can panic while the lock is held.
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
    async fn a_waiting_caller_is_woken() {
        let deleted_pending = DeletedPendingRecords::default();
        let (taken, ()) = tokio::join!(deleted_pending.next(), async { deleted_pending.add(deleted(7)) });
        assert_eq!(taken, deleted(7));
    }
}
