//! Slots for connections, and which connection loses its slot when all are taken.
//!
//! A plain limit would let a thousand idle connections keep the API server out. So when every slot is taken, an idle
//! connection is closed for a new one: first connections that never sent a request, and among equals the one that has been
//! idle longest. A connection in the middle of a request keeps its slot.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// The slots of one port.
#[derive(Debug)]
pub(super) struct Slots {
    limit: usize,
    table: Mutex<SlotTable>,
}

#[derive(Debug, Default)]
struct SlotTable {
    next: u64,
    holders: HashMap<u64, Arc<Activity>>,
}

/// One slot, freed on drop.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    number: u64,
    activity: Arc<Activity>,
    /// Whether another connection was closed for this one.
    pub(super) evicted_another: bool,
}

/// The phase of a connection. Its timers and its eviction depend on it.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<ActivityState>,
    evicted: Notify,
}

#[derive(Debug)]
struct ActivityState {
    phase: ConnectionPhase,
    since: Instant,
    had_request: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    /// Handshaking, or waiting for a request.
    Waiting,
    /// In the middle of a request's head.
    Head,
    /// From the end of the head to the answer.
    Request,
    /// Closed for another connection.
    Evicted,
}

impl Slots {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, table: Mutex::default() })
    }

    /// Takes a slot, if necessary from an idle connection; `None` when every connection is in the middle of a request.
    pub(super) fn take(self: &Arc<Self>) -> Option<Slot> {
        let mut table = self.lock();
        let full = table.holders.len() >= self.limit;
        if full {
            let victim = table.evict_longest_waiting()?;
            table.holders.remove(&victim);
        }
        let number = table.next;
        table.next += 1;
        let activity = Arc::new(Activity::new());
        table.holders.insert(number, Arc::clone(&activity));
        Some(Slot { slots: Arc::clone(self), number, activity, evicted_another: full })
    }

    fn lock(&self) -> MutexGuard<'_, SlotTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotTable {
    /// Evicts a connection. Looking at every connection is fine: it happens only when the port is full, and takes
    /// microseconds.
    fn evict_longest_waiting(&self) -> Option<u64> {
        let mut waiting: Vec<_> = self
            .holders
            .iter()
            .filter_map(|(number, activity)| Some((activity.waiting_since()?, *number, activity)))
            .collect();
        waiting.sort_unstable_by_key(|(rank, number, _)| (*rank, *number));
        // A connection may have begun a request since it was looked at; then the next one is evicted.
        waiting.iter().find(|(_, _, activity)| activity.evict()).map(|(_, number, _)| *number)
    }
}

impl Slot {
    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.lock().holders.remove(&self.number);
    }
}

impl Activity {
    pub(super) fn new() -> Self {
        let state = ActivityState { phase: ConnectionPhase::Waiting, since: Instant::now(), had_request: false };
        Self { state: Mutex::new(state), evicted: Notify::new() }
    }

    /// The phase, and since when.
    pub(super) fn now(&self) -> (ConnectionPhase, Instant) {
        let state = self.lock();
        (state.phase, state.since)
    }

    /// Bytes arrived: when the connection was waiting, they begin a head.
    pub(super) fn bytes_arrived(&self) {
        let mut state = self.lock();
        if state.phase == ConnectionPhase::Waiting {
            state.enter(ConnectionPhase::Head);
        }
    }

    /// A head is complete.
    pub(super) fn request_started(&self) {
        let mut state = self.lock();
        if state.phase != ConnectionPhase::Evicted {
            state.enter(ConnectionPhase::Request);
            state.had_request = true;
        }
    }

    /// The answer is being sent.
    pub(super) fn answered(&self) {
        let mut state = self.lock();
        if state.phase == ConnectionPhase::Request {
            state.enter(ConnectionPhase::Waiting);
        }
    }

    /// Resolves when the connection is evicted.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// The rank for eviction, smallest first; `None` in the middle of a request.
    fn waiting_since(&self) -> Option<(bool, Instant)> {
        let state = self.lock();
        matches!(state.phase, ConnectionPhase::Waiting | ConnectionPhase::Head)
            .then_some((state.had_request, state.since))
    }

    fn evict(&self) -> bool {
        let mut state = self.lock();
        let waits = matches!(state.phase, ConnectionPhase::Waiting | ConnectionPhase::Head);
        if waits {
            state.enter(ConnectionPhase::Evicted);
            self.evicted.notify_one();
        }
        waits
    }

    fn lock(&self) -> MutexGuard<'_, ActivityState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActivityState {
    fn enter(&mut self, phase: ConnectionPhase) {
        self.phase = phase;
        self.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_evicted(slot: &Slot) -> bool {
        slot.activity.now().0 == ConnectionPhase::Evicted
    }

    #[tokio::test]
    async fn a_connection_without_a_request_is_evicted_first() {
        let slots = Slots::new(2);
        let honest = slots.take().unwrap();
        honest.activity().request_started();
        honest.activity().answered();
        let silent = slots.take().unwrap();
        let new = slots.take().unwrap();
        assert!(new.evicted_another && is_evicted(&silent) && !is_evicted(&honest));
        silent.activity().evicted().await;
        drop(silent);
        assert_eq!(slots.lock().holders.len(), 2);
    }

    #[tokio::test]
    async fn among_equals_the_longest_idle_one_is_evicted_first() {
        let slots = Slots::new(2);
        let (first, second) = (slots.take().unwrap(), slots.take().unwrap());
        let _third = slots.take().unwrap();
        assert!(is_evicted(&first) && !is_evicted(&second));
    }

    #[tokio::test]
    async fn a_request_in_flight_is_never_evicted() {
        let slots = Slots::new(1);
        let busy = slots.take().unwrap();
        busy.activity().bytes_arrived();
        busy.activity().request_started();
        assert!(slots.take().is_none());
        busy.activity().answered();
        assert!(slots.take().is_some_and(|slot| slot.evicted_another));
    }

    #[tokio::test]
    async fn a_place_given_back_is_free() {
        let slots = Slots::new(1);
        drop(slots.take().unwrap());
        assert!(!slots.take().unwrap().evicted_another);
    }
}
