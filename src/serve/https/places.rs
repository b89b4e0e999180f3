//! The places that connections take, and who has to give one up when all are taken.
//!
//! A plain limit would let a thousand idle connections keep the API server out. So when every place is taken, a
//! connection that waits makes room: one that never asked anything before one that did, and among those the one that
//! has waited longest. A connection in the middle of a request is never cut for room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// All places of one port.
#[derive(Debug)]
pub(super) struct Places {
    limit: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    holders: HashMap<u64, Arc<Activity>>,
}

/// One place, given back on drop.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    activity: Arc<Activity>,
    /// Whether another connection had to go for this one.
    pub(super) evicted_another: bool,
}

/// What a connection is doing. Its timers and its eviction both depend on it.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
    evicted: Notify,
}

#[derive(Debug)]
struct State {
    doing: Doing,
    since: Instant,
    ever_asked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Handshaking, or waiting for a request.
    Waiting,
    /// In the middle of a request's head.
    Head,
    /// From the end of the head to the answer.
    Request,
    /// Told to go.
    Evicted,
}

impl Places {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, taken: Mutex::default() })
    }

    /// Takes a place, at the cost of a waiting connection if need be; `None` when every place is busy.
    pub(super) fn take(self: &Arc<Self>) -> Option<Place> {
        let mut taken = self.lock();
        let full = taken.holders.len() >= self.limit;
        if full {
            let victim = taken.longest_waiting()?;
            taken.holders.remove(&victim);
        }
        let number = taken.next;
        taken.next += 1;
        let activity = Arc::new(Activity::new());
        taken.holders.insert(number, Arc::clone(&activity));
        Some(Place { places: Arc::clone(self), number, activity, evicted_another: full })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Finds who has to go and tells it so. Looks at every connection, which is fine: it happens only when the port is
    /// full, and takes microseconds.
    fn longest_waiting(&self) -> Option<u64> {
        let mut waiting: Vec<_> = self
            .holders
            .iter()
            .filter_map(|(number, activity)| Some((activity.waiting_since()?, *number, activity)))
            .collect();
        waiting.sort_unstable_by_key(|(rank, number, _)| (*rank, *number));
        // Between the look and the telling it may have begun a request; then it is the next one's turn.
        waiting.iter().find(|(_, _, activity)| activity.evict()).map(|(_, number, _)| *number)
    }
}

impl Place {
    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().holders.remove(&self.number);
    }
}

impl Activity {
    pub(super) fn new() -> Self {
        let state = State { doing: Doing::Waiting, since: Instant::now(), ever_asked: false };
        Self { state: Mutex::new(state), evicted: Notify::new() }
    }

    /// What it is doing, and since when.
    pub(super) fn now(&self) -> (Doing, Instant) {
        let state = self.lock();
        (state.doing, state.since)
    }

    /// Bytes have come: when it was waiting, they begin a head.
    pub(super) fn bytes_came(&self) {
        let mut state = self.lock();
        if state.doing == Doing::Waiting {
            state.enter(Doing::Head);
        }
    }

    /// A head is complete.
    pub(super) fn asked(&self) {
        let mut state = self.lock();
        if state.doing != Doing::Evicted {
            state.enter(Doing::Request);
            state.ever_asked = true;
        }
    }

    /// The answer is on its way.
    pub(super) fn answered(&self) {
        let mut state = self.lock();
        if state.doing == Doing::Request {
            state.enter(Doing::Waiting);
        }
    }

    /// Resolves when the connection has to make room.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// The rank among those that wait, smallest first to go; `None` when in the middle of a request.
    fn waiting_since(&self) -> Option<(bool, Instant)> {
        let state = self.lock();
        matches!(state.doing, Doing::Waiting | Doing::Head).then_some((state.ever_asked, state.since))
    }

    fn evict(&self) -> bool {
        let mut state = self.lock();
        let waits = matches!(state.doing, Doing::Waiting | Doing::Head);
        if waits {
            state.enter(Doing::Evicted);
            self.evicted.notify_one();
        }
        waits
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn enter(&mut self, doing: Doing) {
        self.doing = doing;
        self.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_evicted(place: &Place) -> bool {
        place.activity.now().0 == Doing::Evicted
    }

    #[tokio::test]
    async fn a_connection_that_never_asked_goes_first() {
        let places = Places::new(2);
        let honest = places.take().unwrap();
        honest.activity().asked();
        honest.activity().answered();
        let silent = places.take().unwrap();
        let new = places.take().unwrap();
        assert!(new.evicted_another && is_evicted(&silent) && !is_evicted(&honest));
        silent.activity().evicted().await;
        drop(silent);
        assert_eq!(places.lock().holders.len(), 2);
    }

    #[tokio::test]
    async fn among_equals_the_one_that_waited_longest_goes_first() {
        let places = Places::new(2);
        let (first, second) = (places.take().unwrap(), places.take().unwrap());
        let _third = places.take().unwrap();
        assert!(is_evicted(&first) && !is_evicted(&second));
    }

    #[tokio::test]
    async fn a_request_in_flight_is_never_cut_for_room() {
        let places = Places::new(1);
        let busy = places.take().unwrap();
        busy.activity().bytes_came();
        busy.activity().asked();
        assert!(places.take().is_none());
        busy.activity().answered();
        assert!(places.take().is_some_and(|place| place.evicted_another));
    }

    #[tokio::test]
    async fn a_place_given_back_is_free() {
        let places = Places::new(1);
        drop(places.take().unwrap());
        assert!(!places.take().unwrap().evicted_another);
    }
}
