//! Turns at the cores of the machine, fair between users.
//!
//! A large record costs a core milliseconds, and a hostile one a second. If each review took the next free thread, a user
//! with a hundred of them would keep everybody else waiting. So each step of such a review waits for a turn, users take
//! turns, and a flood delays only the user who sends it.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::num::NonZero;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;
use tokio::task::block_in_place;

/// How many steps wait at a time. Each belongs to a review whose body is in memory, and a step takes milliseconds: a step
/// behind so many others would not get its turn within the few seconds of a review.
const MAX_WAITING: usize = 256;

/// A step did not get a turn, because too many wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many reviews are waiting")]
pub struct Busy;

/// The cores, and who waits for one.
#[derive(Debug)]
pub(super) struct Cores {
    limits: CoreLimits,
    queue: Mutex<Queue>,
    /// Identifies users by a hash, so that a long name takes no memory. Users with the same hash share their turns.
    users: RandomState,
}

#[derive(Clone, Copy, Debug)]
struct CoreLimits {
    running: usize,
    waiting: usize,
}

#[derive(Debug, Default)]
struct Queue {
    users: HashMap<u64, User>,
    running: usize,
    waiting: usize,
    /// Counts arrivals and turns.
    clock: u64,
}

/// A user with running or waiting steps.
#[derive(Debug, Default)]
struct User {
    running: usize,
    /// When the user had the last turn, or arrived.
    since: u64,
    /// The oldest step is the first.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    /// Dropped if the step will get no turn.
    go: oneshot::Sender<()>,
}

/// A step in the queue, or one whose turn it is. Gives the place back when it is dropped, also if nobody waits any more.
struct Turn<'c> {
    cores: &'c Cores,
    user: u64,
    number: u64,
    granted: oneshot::Receiver<()>,
    runs: bool,
}

impl Cores {
    /// As many turns at a time as the machine has cores.
    pub(super) fn of_the_machine() -> Self {
        Self::new(available_parallelism().map_or(1, NonZero::get), MAX_WAITING)
    }

    pub(super) fn new(cores: usize, waiting: usize) -> Self {
        Self { limits: CoreLimits { running: cores, waiting }, queue: Mutex::default(), users: RandomState::new() }
    }

    /// Waits for a turn of a user, then does the work.
    pub(super) async fn work<T>(&self, user: &str, work: impl FnOnce() -> T) -> Result<T, Busy> {
        let mut turn = self.enter(user);
        (&mut turn.granted).await.map_err(|_| Busy)?;
        turn.runs = true;
        Ok(beside_the_network(work))
    }

    /// Whether a user has steps that run or wait.
    pub(super) fn has_steps_of(&self, user: &str) -> bool {
        self.lock().users.contains_key(&self.key_of(user))
    }

    /// What stands for a user.
    pub(super) fn key_of(&self, user: &str) -> u64 {
        self.users.hash_one(user)
    }

    fn enter(&self, user: &str) -> Turn<'_> {
        let user = self.key_of(user);
        let mut queue = self.lock();
        let (number, granted) = queue.add(user);
        queue.grant_turns(self.limits);
        if queue.waiting > self.limits.waiting {
            queue.drop_newest_of_the_busiest();
        }
        Turn { cores: self, user, number, granted, runs: false }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn add(&mut self, user: u64) -> (u64, oneshot::Receiver<()>) {
        let (go, granted) = oneshot::channel();
        let number = self.tick();
        self.users
            .entry(user)
            .or_insert_with(|| User { since: number, ..User::default() })
            .waiting
            .push_back(Waiting { number, go });
        self.waiting += 1;
        (number, granted)
    }

    /// Gives free cores to the users who have the fewest, and among equals to the one who has waited longest.
    fn grant_turns(&mut self, limits: CoreLimits) {
        while self.running < limits.running {
            let now = self.tick();
            let waiting = self.users.values_mut().filter(|user| !user.waiting.is_empty());
            let Some(next) = waiting.min_by_key(|user| (user.running, user.since)) else {
                return;
            };
            let Some(Waiting { go, .. }) = next.waiting.pop_front() else {
                return;
            };
            self.waiting -= 1;
            // A step leaves the queue before it stops listening.
            if go.send(()).is_ok() {
                next.since = now;
                next.running += 1;
                self.running += 1;
            }
        }
    }

    /// The user with the most steps loses the newest of them.
    fn drop_newest_of_the_busiest(&mut self) {
        let busiest = self.users.values_mut().max_by_key(|user| (user.waiting.len(), user.since));
        if busiest.and_then(|user| user.waiting.pop_back()).is_some() {
            self.waiting -= 1;
        }
    }

    /// Takes a step out that runs no more, or that nobody waits for any more.
    fn remove(&mut self, user: u64, number: u64, ran: bool) {
        let Some(found) = self.users.get_mut(&user) else {
            return;
        };
        if ran {
            found.running -= 1;
            self.running -= 1;
        } else if let Some(at) = found.waiting.iter().position(|waiting| waiting.number == number) {
            found.waiting.remove(at);
            self.waiting -= 1;
        }
        if found.running == 0 && found.waiting.is_empty() {
            self.users.remove(&user);
        }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut queue = self.cores.lock();
        // The turn may have come and not been noticed yet.
        let ran = self.runs || self.granted.try_recv().is_ok();
        queue.remove(self.user, self.number, ran);
        queue.grant_turns(self.cores.limits);
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
