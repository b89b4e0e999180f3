//! Which body holds how many bytes, and which one is dropped if there are no more.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::budget::{Peer, StrangersShare};

/// The longest body that the reserve serves, in bytes. Ordinary reviews have a few KiB.
const SMALL_BYTES: usize = 64 << 10;

/// One part in so many of the bytes is kept for small bodies.
const RESERVED: usize = 6;

/// The time in which growth is compared. A younger body is not dropped for what it has not sent yet.
const WINDOW: Duration = Duration::from_millis(250);

/// A body that would end within so many windows at its pace is let end.
const FAST: usize = 4;

/// The bytes of all bodies.
#[derive(Debug)]
pub(super) struct Ledger {
    limit: usize,
    table: Mutex<Table>,
    held: Gauge,
    /// Notified whenever bytes are given back.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    held: usize,
    of_strangers: usize,
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
    /// Sent to once it is dropped.
    cut: oneshot::Sender<()>,
}

/// How much a body grew in the window before this one, and in this one.
#[derive(Debug)]
struct Growth {
    since: Instant,
    before: usize,
    now: usize,
}

/// The account of one body. Gives its bytes back on drop.
#[derive(Debug)]
pub(in super::super) struct Entry {
    ledger: Arc<Ledger>,
    number: u64,
    peer: Peer,
    announced: usize,
    bytes: usize,
}

/// Tells a body that it was dropped.
#[derive(Debug)]
pub(super) struct Cut(oneshot::Receiver<()>);

impl Ledger {
    pub(super) fn new(limit: usize, held: Gauge) -> Self {
        Self { limit, table: Mutex::default(), held, freed: Notify::new() }
    }

    /// Begins a body that should have so many bytes.
    pub(super) fn enter(self: &Arc<Self>, peer: Peer, announced: usize) -> (Entry, Cut) {
        let (sender, cut) = oneshot::channel();
        let now = Instant::now();
        let mut table = self.lock();
        let number = table.next;
        table.next += 1;
        if peer == Peer::Known {
            table.strangers_share.api_server_calls();
        }
        let growth = Growth { since: now, before: 0, now: 0 };
        table.arriving.insert(number, Arriving { peer, announced, bytes: 0, began: now, growth, cut: sender });
        (Entry { ledger: Arc::clone(self), number, peer, announced, bytes: 0 }, Cut(cut))
    }

    /// The bytes that are held.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.lock().held
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of an attempt to grow.
enum Attempt {
    Grown,
    /// There are no bytes now. Another body may have been dropped, and gives its bytes back.
    Waits,
    /// This body is the one to be dropped.
    Dropped,
}

impl Entry {
    /// Takes bytes that arrived, if necessary from another body. Whether it got them before a moment.
    pub(super) async fn grow(&mut self, bytes: usize, until: Instant) -> bool {
        let ledger = Arc::clone(&self.ledger);
        loop {
            let mut freed = pin!(ledger.freed.notified());
            freed.as_mut().enable();
            match self.attempt(bytes) {
                Attempt::Grown => return true,
                Attempt::Dropped => return false,
                Attempt::Waits if Instant::now() >= until => return false,
                // Another body may be old enough to be dropped by then.
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
                // It may have ended just now.
                dropped.map(|dropped| dropped.cut.send(()));
                Attempt::Waits
            }
        }
    }

    /// From now on the body is being judged, and is not dropped.
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
            table.of_strangers -= self.bytes;
        }
        drop(table);
        self.ledger.held.dec_by(gauge(self.bytes));
        self.ledger.freed.notify_waiters();
    }
}

impl Cut {
    /// Resolves when the body is dropped for another one.
    pub(super) async fn happens(&mut self) {
        if (&mut self.0).await.is_err() {
            // The body is complete, or the ledger has forgotten it.
            std::future::pending::<()>().await;
        }
    }
}

impl Table {
    fn fits(&self, limit: usize, entry: &Entry, bytes: usize, now: Instant) -> bool {
        if entry.peer == Peer::Stranger && self.of_strangers + bytes > self.strangers_share.of(limit) {
            return false;
        }
        if entry.announced <= SMALL_BYTES {
            return self.held + bytes <= limit;
        }
        let limit = limit - limit / RESERVED;
        // A large body begins once those before it have room to end. Otherwise several would wait for each other in the middle.
        let needed = if entry.bytes == 0 { self.promised(now) + entry.announced } else { bytes };
        self.held + needed <= limit || self.held == 0 && bytes <= limit
    }

    /// What the bodies will still take that have begun and arrive fast enough.
    fn promised(&self, now: Instant) -> usize {
        let begun = self.arriving.values().filter(|it| it.bytes > 0 && !it.is_slow(now));
        begun.map(Arriving::left).sum()
    }

    fn take(&mut self, number: u64, peer: Peer, bytes: usize, now: Instant) {
        self.held += bytes;
        if peer == Peer::Stranger {
            self.of_strangers += bytes;
        }
        if let Some(arriving) = self.arriving.get_mut(&number) {
            arriving.bytes += bytes;
            arriving.growth.add(bytes, now);
        }
    }

    /// The body that is dropped for one of a peer: of the slow ones, the one that grew the least in the last window, strangers'
    /// first.
    fn victim(&self, of: Peer, now: Instant) -> Option<u64> {
        let may_go =
            |it: &Arriving| it.bytes > 0 && it.is_slow(now) && (of == Peer::Known || it.peer == Peer::Stranger);
        let candidates = self.arriving.iter().filter(|(_, it)| may_go(it));
        let rank = |it: &Arriving| (it.peer == Peer::Known, it.growth.lately(now));
        candidates.min_by_key(|(number, it)| (rank(it), **number)).map(|(number, _)| *number)
    }
}

impl Arriving {
    fn left(&self) -> usize {
        self.announced.saturating_sub(self.bytes)
    }

    fn is_slow(&self, now: Instant) -> bool {
        now.duration_since(self.began) >= WINDOW && self.growth.lately(now).saturating_mul(FAST) < self.left().max(1)
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
