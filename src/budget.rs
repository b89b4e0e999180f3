//! The resources that concurrent reviews share: memory for work of known size, and the cores of the machine.

mod cores;
mod flow;
mod memory;
mod strangers;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::yield_now;

pub(crate) use cores::block_in_place_if_possible;
pub use cores::{Busy, Price};
pub use flow::{Flow, Peer};
pub use memory::Grant;
pub(crate) use strangers::StrangersShare;

use cores::Cores;
use memory::Memory;

/// A number of bytes, and the cores of the machine. Clones share both.
#[derive(Clone, Debug)]
pub struct Budget {
    memory: Arc<Memory>,
    cores: Arc<Cores>,
}

/// The memory that a review holds until it ends, and whether the review waits for more.
#[derive(Debug, Default)]
pub struct Holdings {
    grants: Mutex<Vec<Grant>>,
    is_waiting: AtomicBool,
}

impl Holdings {
    /// Waits for memory or for a turn, and marks the review as waiting meanwhile.
    pub async fn waiting<T>(&self, wait: impl Future<Output = T>) -> T {
        self.is_waiting.store(true, Ordering::Relaxed);
        let done = wait.await;
        self.is_waiting.store(false, Ordering::Relaxed);
        done
    }

    /// Whether a wait has not ended. A cancelled wait never ends.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }

    /// Holds a grant.
    pub fn keep(&self, grant: Grant) {
        self.lock().push(grant);
    }

    /// The number of bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lock().iter().map(Grant::bytes).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Grant>> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Budget {
    /// A budget of so many bytes, and of all cores.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { memory: Memory::new(bytes), cores: Arc::new(Cores::of_the_machine()) }
    }

    /// Waits for a turn at a core, then does the work there without blocking network tasks. Flows share the time of the cores
    /// evenly. The work may borrow. It should end within a second, because nothing interrupts it.
    ///
    /// # Errors
    /// [`Busy`] if too many steps wait and this flow has the most of them.
    pub async fn work<T>(&self, flow: Flow<'_>, price: Price, work: impl FnOnce() -> T) -> Result<T, Busy> {
        // The task of the connection polls a review first, and must not be blocked.
        yield_now().await;
        self.cores.work(flow, price, work).await
    }

    /// Waits until so many bytes are free for a flow, and takes them. One flow gets at most two thirds of the budget. A larger
    /// request gets this share, so that no request waits forever.
    pub async fn grant(&self, flow: Flow<'_>, bytes: usize) -> Grant {
        self.memory.grant(flow, bytes).await
    }

    /// Whether a flow has steps that run or wait, or holds or awaits memory.
    #[must_use]
    pub fn is_busy_with(&self, flow: Flow<'_>) -> bool {
        self.cores.has_steps_of(flow) || self.memory.has_claims_of(flow)
    }

    /// A budget without cores, in which so many steps may wait.
    #[cfg(test)]
    pub(crate) fn without_cores(bytes: usize, waiting: usize) -> Self {
        Self { cores: Arc::new(Cores::without_any(waiting)), ..Self::new(bytes) }
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.memory.free()
    }
}
