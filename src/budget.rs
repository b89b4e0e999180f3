//! What concurrent reviews share: memory, for work whose size is known before it starts, and the cores of the machine.

mod cores;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;

pub use cores::Busy;
use cores::Cores;
pub(crate) use cores::beside_the_network;

/// A number of bytes, and the cores of the machine. Clones share them.
#[derive(Clone, Debug)]
pub struct Budget {
    /// One permit for each free byte.
    free: Arc<Semaphore>,
    total: usize,
    /// What each user may take of it: one permit for each free byte.
    shares: Arc<Mutex<HashMap<u64, Weak<Semaphore>>>>,
    cores: Arc<Cores>,
}

/// Bytes taken from a [`Budget`], given back on drop.
#[derive(Debug)]
pub struct Grant {
    of_all: OwnedSemaphorePermit,
    of_user: Option<OwnedSemaphorePermit>,
}

/// What a review holds of a [`Budget`] until it ends.
#[derive(Debug, Default)]
pub struct Holdings(Mutex<Vec<Grant>>);

impl Holdings {
    /// Holds a grant.
    pub fn keep(&self, grant: Grant) {
        self.lock().push(grant);
    }

    /// The bytes that are held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lock().iter().map(Grant::bytes).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Grant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Budget {
    /// A budget of so many bytes, and of every core.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let total = bytes.min(Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(total)),
            total,
            shares: Arc::default(),
            cores: Arc::new(Cores::of_the_machine()),
        }
    }

    /// Waits for a turn at a core, then does the work there, beside the tasks of the network. Users take turns. The work may
    /// borrow, and should end within a second: nothing interrupts it.
    ///
    /// # Errors
    /// [`Busy`] if too many wait, and this user has the most of them.
    pub async fn work<T>(&self, user: &str, work: impl FnOnce() -> T) -> Result<T, Busy> {
        // A review is first polled in the task of its connection, which must not be held up.
        yield_now().await;
        self.cores.work(user, work).await
    }

    /// Waits until so many bytes are free and takes them. A request for more than the whole budget takes the whole budget,
    /// so that nothing waits forever.
    pub async fn grant(&self, bytes: usize) -> Option<Grant> {
        let free = Arc::clone(&self.free);
        // The semaphore is never closed.
        let of_all = free.acquire_many_owned(self.capped(bytes)).await.ok()?;
        Some(Grant { of_all, of_user: None })
    }

    /// Like [`Self::grant`], for a user. One user gets at most two thirds of the budget and waits for that share first, so that
    /// other users do not wait behind a flood.
    pub async fn grant_to(&self, user: &str, bytes: usize) -> Option<Grant> {
        let of_user = self.share_of(user).acquire_many_owned(self.capped(bytes.min(self.share()))).await.ok()?;
        let grant = self.grant(bytes).await?;
        Some(Grant { of_user: Some(of_user), ..grant })
    }

    /// Whether a user has steps that run or wait for a turn. Users take turns, so a step of such a user that got none waited
    /// behind the user's own.
    #[must_use]
    pub fn has_steps_of(&self, user: &str) -> bool {
        self.cores.has_steps_of(user)
    }

    /// Whether a user holds or awaits memory.
    #[must_use]
    pub fn holds_memory_of(&self, user: &str) -> bool {
        let shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.get(&self.cores.key_of(user)).is_some_and(|share| share.strong_count() > 0)
    }

    fn share(&self) -> usize {
        self.total / 3 * 2
    }

    fn share_of(&self, user: &str) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        let user = self.cores.key_of(user);
        if let Some(share) = shares.get(&user).and_then(Weak::upgrade) {
            return share;
        }
        // Only users who hold or await bytes are kept.
        shares.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(self.share()));
        shares.insert(user, Arc::downgrade(&share));
        share
    }

    /// Takes so many bytes if they are free now, and nobody waits for bytes.
    #[must_use]
    pub fn try_grant(&self, bytes: usize) -> Option<Grant> {
        Arc::clone(&self.free)
            .try_acquire_many_owned(self.capped(bytes))
            .ok()
            .map(|of_all| Grant { of_all, of_user: None })
    }

    fn capped(&self, bytes: usize) -> u32 {
        // tokio hands out at most 4 GiB at once.
        u32::try_from(bytes.min(self.total)).unwrap_or(u32::MAX)
    }

    /// A budget without cores, in which so many steps may wait.
    #[cfg(test)]
    pub(crate) fn without_cores(bytes: usize, waiting: usize) -> Self {
        Self { cores: Arc::new(Cores::new(0, waiting)), ..Self::new(bytes) }
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.free.available_permits()
    }
}

impl Grant {
    /// The bytes that are held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.of_all.num_permits()
    }

    /// Gives back all but so many bytes, of the user's share too.
    pub fn shrink(&mut self, bytes: usize) {
        for permits in [Some(&mut self.of_all), self.of_user.as_mut()].into_iter().flatten() {
            let surplus = permits.num_permits().saturating_sub(bytes);
            drop(permits.split(surplus));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_user_never_takes_what_others_need() {
        let budget = Budget::new(900);
        let first = budget.grant_to("mallory", 400).await.unwrap();
        let second =
            async { tokio::time::timeout(std::time::Duration::from_secs(1), budget.grant_to("mallory", 400)).await };
        let honest = async { budget.grant_to("alice", 300).await };
        let (second, honest) = tokio::join!(second, honest);
        assert!(second.is_err() && honest.is_some());
        drop((first, honest));
        // More than there is takes everything, and nothing waits forever.
        let mut all = budget.grant_to("mallory", 5_000).await.unwrap();
        assert_eq!(all.bytes(), 900);
        // What is given back is free for the same user too.
        all.shrink(100);
        assert_eq!(budget.grant_to("mallory", 500).await.unwrap().bytes(), 500);
        assert_eq!(budget.free(), 800);
    }

    #[tokio::test]
    async fn granted_bytes_are_free_again_only_when_they_are_given_back() {
        let budget = Budget::new(4096);
        let mut large = budget.grant(3072).await.unwrap();
        assert!(budget.try_grant(2048).is_none());
        large.shrink(1024);
        assert_eq!((large.bytes(), budget.free()), (1024, 3072));
        assert!(budget.try_grant(2048).is_some());
        drop(large);
        assert_eq!(budget.grant(1 << 20).await.unwrap().bytes(), 4096);
    }
}
