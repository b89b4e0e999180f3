//! Turns at the cores of the machine.
//!
//! A large record costs a core milliseconds, and a hostile one a second. If each review took the next free thread, a user with a
//! hundred of them would keep everybody else waiting. So each step of such a review waits for a turn, and [`Queue`] says whose is
//! next.

mod queue;

use std::hash::{BuildHasher, RandomState};
use std::num::NonZero;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;
use tokio::task::block_in_place;

use super::flow::Flow;
use queue::{Limits, Queue};

/// How many steps wait at a time. Each belongs to a review whose body is in memory, and a step takes milliseconds: a step
/// behind so many others would not get its turn within the few seconds of a review.
const MAX_WAITING: usize = 256;

/// The longest step that is short: it needs no turn, as a core does a thousand of them in a second.
const SHORT: Duration = Duration::from_millis(1);

/// The longest step that is small, by its price. One core can do fifty of them in the time of a review.
const SMALL: Duration = Duration::from_millis(50);

/// A step did not get a turn, because too many wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many reviews are waiting")]
pub struct Busy;

/// The time that a step should take, by the size of what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Price(Duration);

impl Price {
    /// The price of so many steps of an effort: each takes about a nanosecond.
    #[must_use]
    pub fn of_steps(steps: u64) -> Self {
        Self(Duration::from_nanos(steps))
    }

    /// Whether the step needs no turn.
    #[must_use]
    pub fn is_short(self) -> bool {
        self.0 <= SHORT
    }

    /// Whether the step may use the place that is kept for small ones.
    #[must_use]
    pub fn is_small(self) -> bool {
        self.0 <= SMALL
    }
}

/// The cores, and who waits for one.
#[derive(Debug)]
pub(super) struct Cores {
    queue: Mutex<Queue>,
    /// Identifies flows by a hash, so that a long name takes no memory. Flows with the same hash share their turns.
    flows: RandomState,
}

/// A step in the queue, or one whose turn it is. Gives the place back when it is dropped, also if nobody waits any more.
struct Turn<'c> {
    cores: &'c Cores,
    flow: u64,
    number: u64,
    price: Price,
    granted: oneshot::Receiver<()>,
    /// When the step began.
    began: Option<Instant>,
}

impl Cores {
    /// As many turns at a time as the machine has cores, and one more for a small step: the system then shares the cores, and a
    /// small step does not wait for the end of large ones.
    pub(super) fn of_the_machine() -> Self {
        let running = available_parallelism().map_or(1, NonZero::get);
        Self::new(Limits { running, small: 1, waiting: MAX_WAITING })
    }

    fn new(limits: Limits) -> Self {
        Self { queue: Mutex::new(Queue::new(limits)), flows: RandomState::new() }
    }

    #[cfg(test)]
    pub(super) fn without_any(waiting: usize) -> Self {
        Self::new(Limits { running: 0, small: 0, waiting })
    }

    /// Waits for a turn of a flow, then does the work.
    pub(super) async fn work<T>(&self, flow: Flow<'_>, price: Price, work: impl FnOnce() -> T) -> Result<T, Busy> {
        let mut turn = self.enter(flow, price);
        (&mut turn.granted).await.map_err(|_| Busy)?;
        turn.began = Some(Instant::now());
        Ok(beside_the_network(work))
    }

    /// Whether a flow has steps that run or wait.
    pub(super) fn has_steps_of(&self, flow: Flow<'_>) -> bool {
        self.lock().has_steps_of(self.flows.hash_one(flow))
    }

    fn enter(&self, flow: Flow<'_>, price: Price) -> Turn<'_> {
        let key = self.flows.hash_one(flow);
        let (number, granted) = self.lock().enter(key, flow.gives_way(), price);
        Turn { cores: self, flow: key, number, price, granted, began: None }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let took = self.began.map(|began| began.elapsed());
        // The turn may have come and not been noticed yet.
        let took = took.or_else(|| self.granted.try_recv().is_ok().then_some(Duration::ZERO));
        self.cores.lock().leave(self.flow, self.number, self.price, took);
    }
}

/// Does work while another thread takes over the other tasks of this one. A runtime with one thread has no other.
pub(crate) fn beside_the_network<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        _ => work(),
    }
}

#[cfg(test)]
mod tests;
