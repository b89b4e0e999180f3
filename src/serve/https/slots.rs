//! Slots for connections, and the choice of a connection to evict if all slots are taken.
//!
//! With a plain limit, a thousand connections that never complete a request would lock out the API server. So a new connection evicts
//! one without a complete request, in this order:
//!
//! 1. from the address with the most slots, so strangers at one address do not evict the API server at another
//! 2. never answered before
//! 3. waiting longest
//!
//! A connection with a complete request keeps its slot until the answer.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
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
    connections: HashMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    peer: IpAddr,
    activity: Arc<Activity>,
}

/// One slot, freed on drop.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    number: u64,
    activity: Arc<Activity>,
    /// Whether another connection was evicted for this one.
    pub(super) evicted_another: bool,
}

/// The phase of a connection. Timers and eviction depend on it.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<ActivityState>,
    evicted: Notify,
}

#[derive(Debug)]
struct ActivityState {
    phase: ConnectionPhase,
    since: Instant,
    was_answered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    /// Handshaking, or waiting for a request.
    Waiting,
    /// The head of a request is arriving.
    Head,
    /// The body of a request is arriving or waits for memory.
    Body,
    /// From the end of the body to the answer.
    Request,
    /// Closed for another connection.
    Evicted,
}

impl Slots {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, table: Mutex::default() })
    }

    /// Takes a slot for a peer, if necessary from another connection. `None` if every connection waits for an answer.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Option<Slot> {
        let mut table = self.lock();
        let full = table.connections.len() >= self.limit;
        if full {
            let victim = table.evict()?;
            table.connections.remove(&victim);
        }
        let number = table.next;
        table.next += 1;
        let activity = Arc::new(Activity::new());
        table.connections.insert(number, Connection { peer, activity: Arc::clone(&activity) });
        Some(Slot { slots: Arc::clone(self), number, activity, evicted_another: full })
    }

    fn lock(&self) -> MutexGuard<'_, SlotTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotTable {
    /// Evicts a connection. Scans all connections, which takes microseconds and happens only if the port is full.
    fn evict(&self) -> Option<u64> {
        let mut slots: HashMap<IpAddr, usize> = HashMap::new();
        for connection in self.connections.values() {
            *slots.entry(connection.peer).or_default() += 1;
        }
        let candidates = self.connections.iter().filter_map(|(number, connection)| {
            let (was_answered, since) = connection.activity.evictable_since()?;
            Some((Reverse(slots.get(&connection.peer).copied()), was_answered, since, *number))
        });
        let mut ranks: Vec<_> = candidates.collect();
        ranks.sort_unstable();
        // If a connection has completed its request in the meantime, the next one is evicted.
        ranks.into_iter().map(|(.., number)| number).find(|number| self.connections[number].activity.evict())
    }
}

impl Slot {
    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.lock().connections.remove(&self.number);
    }
}

impl Activity {
    pub(super) fn new() -> Self {
        let state = ActivityState { phase: ConnectionPhase::Waiting, since: Instant::now(), was_answered: false };
        Self { state: Mutex::new(state), evicted: Notify::new() }
    }

    /// The phase and its start.
    pub(super) fn now(&self) -> (ConnectionPhase, Instant) {
        let state = self.lock();
        (state.phase, state.since)
    }

    /// Bytes arrived. If the connection was waiting, they begin a head.
    pub(super) fn bytes_arrived(&self) {
        self.enter(ConnectionPhase::Head, |phase| phase == ConnectionPhase::Waiting);
    }

    /// A head is complete.
    pub(super) fn head_arrived(&self) {
        self.enter(ConnectionPhase::Body, |phase| phase != ConnectionPhase::Evicted);
    }

    /// A body is complete.
    pub(super) fn body_arrived(&self) {
        self.enter(ConnectionPhase::Request, |phase| phase == ConnectionPhase::Body);
    }

    /// The answer is being sent.
    pub(super) fn answered(&self) {
        self.enter(ConnectionPhase::Waiting, |phase| phase != ConnectionPhase::Evicted);
    }

    /// Resolves when the connection is evicted.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Whether a request was answered before, and the start of the phase. `None` while a complete request waits for its answer.
    fn evictable_since(&self) -> Option<(bool, Instant)> {
        let state = self.lock();
        state.phase.is_evictable().then_some((state.was_answered, state.since))
    }

    fn evict(&self) -> bool {
        let evicts = self.enter(ConnectionPhase::Evicted, ConnectionPhase::is_evictable);
        if evicts {
            self.evicted.notify_one();
        }
        evicts
    }

    /// Enters a phase, if the present one allows it. A connection that waits again was answered.
    fn enter(&self, phase: ConnectionPhase, is_allowed: impl FnOnce(ConnectionPhase) -> bool) -> bool {
        let mut state = self.lock();
        let enters = is_allowed(state.phase);
        if enters {
            let was_answered = state.was_answered || phase == ConnectionPhase::Waiting;
            *state = ActivityState { phase, since: Instant::now(), was_answered };
        }
        enters
    }

    fn lock(&self) -> MutexGuard<'_, ActivityState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionPhase {
    fn is_evictable(self) -> bool {
        matches!(self, Self::Waiting | Self::Head | Self::Body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRANGER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 66));
    const API_SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn is_evicted(slot: &Slot) -> bool {
        slot.activity.now().0 == ConnectionPhase::Evicted
    }

    fn is_answered(slot: &Slot) {
        slot.activity().bytes_arrived();
        slot.activity().head_arrived();
        slot.activity().body_arrived();
        slot.activity().answered();
    }

    #[tokio::test]
    async fn a_connection_that_was_never_answered_is_evicted_first() {
        let slots = Slots::new(2);
        let honest = slots.take(STRANGER).unwrap();
        is_answered(&honest);
        let silent = slots.take(STRANGER).unwrap();
        let new = slots.take(STRANGER).unwrap();
        assert!(new.evicted_another && is_evicted(&silent) && !is_evicted(&honest));
        silent.activity().evicted().await;
        drop(silent);
        assert_eq!(slots.lock().connections.len(), 2);
    }

    #[tokio::test]
    async fn the_connection_that_waited_longest_is_evicted_first() {
        let slots = Slots::new(2);
        let (first, second) = (slots.take(STRANGER).unwrap(), slots.take(STRANGER).unwrap());
        let _third = slots.take(STRANGER).unwrap();
        assert!(is_evicted(&first) && !is_evicted(&second));
    }

    #[tokio::test]
    async fn the_address_with_the_most_slots_loses_one() {
        let slots = Slots::new(4);
        // Never answered and the oldest, but the only connection of its address.
        let newcomer = slots.take(API_SERVER).unwrap();
        let strangers: Vec<_> = (0..3).map(|_| slots.take(STRANGER).unwrap()).collect();
        strangers.iter().for_each(is_answered);
        let _another = slots.take(API_SERVER).unwrap();
        assert!(is_evicted(&strangers[0]) && !is_evicted(&newcomer));
    }

    #[tokio::test]
    async fn only_incomplete_requests_are_evicted() {
        let slots = Slots::new(1);
        let busy = slots.take(STRANGER).unwrap();
        busy.activity().bytes_arrived();
        busy.activity().head_arrived();
        busy.activity().body_arrived();
        assert!(slots.take(STRANGER).is_none());
        busy.activity().answered();
        let next = slots.take(STRANGER).unwrap();
        next.activity().head_arrived();
        assert!(slots.take(STRANGER).is_some_and(|slot| slot.evicted_another) && is_evicted(&next));
    }

    #[tokio::test]
    async fn a_dropped_slot_is_free_again() {
        let slots = Slots::new(1);
        drop(slots.take(STRANGER).unwrap());
        assert!(!slots.take(STRANGER).unwrap().evicted_another);
    }
}
