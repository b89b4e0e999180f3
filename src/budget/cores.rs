//! Turns at the cores of the machine.
//!
//! A large record occupies a core for milliseconds, and a hostile one for a second. If each review took the next free thread, one
//! user with a hundred reviews would block all other users. So each step of a large review waits for a turn, and [`Queue`] decides
//! which step is next.

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

/// The maximum number of waiting steps. Each step takes milliseconds, so a step behind so many others would get no turn within the
/// few seconds of a review. The limit also bounds memory: the body of each waiting review is in memory.
const MAX_WAITING: usize = 256;

/// The longest short step, which needs no turn: a core runs a thousand of these in a second.
const SHORT: Duration = Duration::from_millis(1);

/// The longest small step, by its price. One core can run fifty of these within the time of a review.
const SMALL: Duration = Duration::from_millis(50);

/// A step got no turn, because too many steps wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many reviews are waiting")]
pub struct Busy;

/// The expected time of a step, from the size of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Price(Duration);

impl Price {
    /// The price of so many steps of an effort, at about a nanosecond each.
    #[must_use]
    pub fn of_steps(steps: u64) -> Self {
        Self(Duration::from_nanos(steps))
    }

    /// Whether the step needs no turn.
    #[must_use]
    pub fn is_short(self) -> bool {
        self.0 <= SHORT
    }

    /// Whether the step may use the place that is reserved for small steps.
    #[must_use]
    pub fn is_small(self) -> bool {
        self.0 <= SMALL
    }
}

/// The cores, and the steps that wait for them.
#[derive(Debug)]
pub(super) struct Cores {
    queue: Mutex<Queue>,
    /// Identifies flows by a hash, so that long names take no memory. Flows with the same hash share their turns.
    flows: RandomState,
}

/// A step that waits or runs. Dropping it frees its place, even if its caller was cancelled.
struct Turn<'c> {
    cores: &'c Cores,
    flow: u64,
    number: u64,
    price: Price,
    granted: oneshot::Receiver<()>,
    /// When the step started; `None` while it waits.
    began: Option<Instant>,
}

impl Cores {
    /// As many concurrent turns as the machine has cores, and one more for a small step. The operating system then shares the
    /// cores, and a small step does not wait for large ones.
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
        Ok(block_in_place_if_possible(work))
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
        // The turn may have been granted without being received.
        let took = took.or_else(|| self.granted.try_recv().is_ok().then_some(Duration::ZERO));
        self.cores.lock().leave(self.flow, self.number, self.price, took);
    }
}

/// Runs blocking work while another thread takes over the other tasks of this thread. A runtime with one thread cannot do this.
pub(crate) fn block_in_place_if_possible<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        _ => work(),
    }
}

#[cfg(test)]
mod tests;
