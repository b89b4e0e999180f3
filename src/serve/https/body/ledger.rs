//! Counts the bytes of each body, and chooses the body to drop if the budget is used up.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::budget::{Peer, StrangersShare};

/// The longest body that may use the reserve, in bytes. Ordinary reviews have a few KiB.
const SMALL_BYTES: usize = 64 << 10;

/// The reserve for small bodies: one sixth of the budget.
const RESERVE_DIVISOR: usize = 6;

/// The period over which growth is measured. A younger body is never dropped.
const WINDOW: Duration = Duration::from_millis(250);

/// A body is not dropped if at its pace it ends within this many windows.
const FAST_WINDOWS: usize = 4;

/// The bytes of all bodies.
#[derive(Debug)]
pub(super) struct Ledger {
    limit: usize,
    table: Mutex<Table>,
    held: Gauge,
    /// Notified whenever a body returns its bytes.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    held: usize,
    held_by_strangers: usize,
    strangers_share: StrangersShare,
    arriving: HashMap<u64, Arriving>,
    next: u64,
}

/// A body that is being read.
#[derive(Debug)]
struct Arriving {
    peer: Peer,
    announced: usize,
    bytes: usize,
    began: Instant,
    growth: Growth,
    drop_signal: oneshot::Sender<()>,
}

/// How much a body grew in the previous window and in the current one.
#[derive(Debug)]
struct Growth {
    since: Instant,
    before: usize,
    now: usize,
}

/// The bytes that one body holds. Returned on drop.
#[derive(Debug)]
pub(in super::super) struct Entry {
    ledger: Arc<Ledger>,
    number: u64,
    peer: Peer,
    announced: usize,
    bytes: usize,
}

/// Signals to the reader of a body that the body was dropped.
#[derive(Debug)]
pub(super) struct DropSignal(oneshot::Receiver<()>);

impl Ledger {
    pub(super) fn new(limit: usize, held: Gauge) -> Self {
        Self { limit, table: Mutex::default(), held, freed: Notify::new() }
    }

    /// Registers a body of `announced` bytes that begins to arrive.
    pub(super) fn enter(self: &Arc<Self>, peer: Peer, announced: usize) -> (Entry, DropSignal) {
        let (drop_signal, dropped) = oneshot::channel();
        let now = Instant::now();
        let mut table = self.lock();
        let number = table.next;
        table.next += 1;
        if peer == Peer::Known {
            table.strangers_share.api_server_calls();
        }
        let growth = Growth { since: now, before: 0, now: 0 };
        table.arriving.insert(number, Arriving { peer, announced, bytes: 0, began: now, growth, drop_signal });
        (Entry { ledger: Arc::clone(self), number, peer, announced, bytes: 0 }, DropSignal(dropped))
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.lock().held
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of an attempt to grow.
enum Attempt {
    Grown,
    /// No bytes are free now. Another body may have been dropped and will return its bytes.
    Waits,
    /// This body must be dropped.
    Dropped,
}

impl Entry {
    /// Takes bytes that arrived, if necessary from another body. Whether it got them before `until`.
    pub(super) async fn grow(&mut self, bytes: usize, until: Instant) -> bool {
        let ledger = Arc::clone(&self.ledger);
        loop {
            let mut freed = pin!(ledger.freed.notified());
            freed.as_mut().enable();
            match self.attempt(bytes) {
                Attempt::Grown => return true,
                Attempt::Dropped => return false,
                Attempt::Waits if Instant::now() >= until => return false,
                // By then another body may be old enough to be dropped.
                Attempt::Waits => _ = timeout_at(until.min(Instant::now() + WINDOW / 5), freed).await,
            }
        }
    }

    fn attempt(&mut self, bytes: usize) -> Attempt {
        let now = Instant::now();
        let mut table = self.ledger.lock();
        if table.fits(self.ledger.limit, self, bytes, now) {
            table.take(self.number, self.peer, bytes, now);
            self.ledger.held.inc_by(gauge(bytes));
            self.bytes += bytes;
            return Attempt::Grown;
        }
        match table.victim(self.peer, now) {
            None => Attempt::Waits,
            Some(victim) if victim == self.number => Attempt::Dropped,
            Some(victim) => {
                let dropped = table.arriving.remove(&victim);
                drop(table);
                // Fails if that body has just ended.
                dropped.map(|dropped| dropped.drop_signal.send(()));
                Attempt::Waits
            }
        }
    }

    /// The body has arrived. From now on it is under review and cannot be dropped.
    pub(super) fn complete(&self) {
        self.ledger.lock().arriving.remove(&self.number);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut table = self.ledger.lock();
        table.arriving.remove(&self.number);
        table.held -= self.bytes;
        if self.peer == Peer::Stranger {
            table.held_by_strangers -= self.bytes;
        }
        drop(table);
        self.ledger.held.dec_by(gauge(self.bytes));
        self.ledger.freed.notify_waiters();
    }
}

impl DropSignal {
    /// Resolves when the body is dropped in favour of another one.
    pub(super) async fn received(&mut self) {
        if (&mut self.0).await.is_err() {
            // The body is complete, or the ledger has forgotten it.
            std::future::pending::<()>().await;
        }
    }
}

impl Table {
    fn fits(&self, limit: usize, entry: &Entry, bytes: usize, now: Instant) -> bool {
        if entry.peer == Peer::Stranger && self.held_by_strangers + bytes > self.strangers_share.of(limit) {
            return false;
        }
        if entry.announced <= SMALL_BYTES {
            return self.held + bytes <= limit;
        }
        let limit = limit - limit / RESERVE_DIVISOR;
        // A large body begins only if the bodies before it have room to end. Otherwise they could block each other halfway.
        let needed = if entry.bytes == 0 { self.promised(now) + entry.announced } else { bytes };
        self.held + needed <= limit || self.held == 0 && bytes <= limit
    }

    /// The bytes still to come of bodies that have begun and arrive fast enough.
    fn promised(&self, now: Instant) -> usize {
        let begun = self.arriving.values().filter(|it| it.bytes > 0 && !it.is_slow(now));
        begun.map(Arriving::left).sum()
    }

    fn take(&mut self, number: u64, peer: Peer, bytes: usize, now: Instant) {
        self.held += bytes;
        if peer == Peer::Stranger {
            self.held_by_strangers += bytes;
        }
        if let Some(arriving) = self.arriving.get_mut(&number) {
            arriving.bytes += bytes;
            arriving.growth.add(bytes, now);
        }
    }

    /// The body to drop in favour of a body of `peer`: the slow body that grew the least in the last window, bodies of strangers first.
    fn victim(&self, peer: Peer, now: Instant) -> Option<u64> {
        let candidates = self.arriving.iter().filter(|(_, body)| body.is_droppable_for(peer, now));
        let victim =
            candidates.min_by_key(|(number, body)| (body.peer == Peer::Known, body.growth.lately(now), **number));
        victim.map(|(number, _)| *number)
    }
}

impl Arriving {
    fn left(&self) -> usize {
        self.announced.saturating_sub(self.bytes)
    }

    /// A stranger's body never displaces a known peer's body.
    fn is_droppable_for(&self, peer: Peer, now: Instant) -> bool {
        self.bytes > 0 && self.is_slow(now) && (peer == Peer::Known || self.peer == Peer::Stranger)
    }

    fn is_slow(&self, now: Instant) -> bool {
        now.duration_since(self.began) >= WINDOW
            && self.growth.lately(now).saturating_mul(FAST_WINDOWS) < self.left().max(1)
    }
}

impl Growth {
    fn add(&mut self, bytes: usize, now: Instant) {
        if now.duration_since(self.since) >= WINDOW {
            *self = Self { since: now, before: self.lately(now), now: 0 };
        }
        self.now += bytes;
    }

    /// The growth in about the last window.
    fn lately(&self, now: Instant) -> usize {
        match now.duration_since(self.since) {
            age if age < WINDOW => self.before + self.now,
            age if age < 2 * WINDOW => self.now,
            _ => 0,
        }
    }
}

fn gauge(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
