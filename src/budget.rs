//! A limit on memory in use at once, for work whose size is known before it starts.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A number of bytes that concurrent reviews share. Clones share it too.
#[derive(Clone, Debug)]
pub struct Budget {
    /// One permit for each free byte.
    free: Arc<Semaphore>,
    total: usize,
}

/// Bytes taken from a [`Budget`], given back on drop.
#[derive(Debug)]
pub struct Grant(OwnedSemaphorePermit);

impl Budget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let total = bytes.min(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(total)), total }
    }

    /// Waits until so many bytes are free and takes them. A request for more than the whole budget takes the whole budget,
    /// so that nothing waits forever.
    pub async fn grant(&self, bytes: usize) -> Option<Grant> {
        let free = Arc::clone(&self.free);
        // The semaphore is never closed.
        free.acquire_many_owned(self.capped(bytes)).await.ok().map(Grant)
    }

    /// Takes so many bytes if they are free now, and nobody waits for bytes.
    #[must_use]
    pub fn try_grant(&self, bytes: usize) -> Option<Grant> {
        Arc::clone(&self.free).try_acquire_many_owned(self.capped(bytes)).ok().map(Grant)
    }

    fn capped(&self, bytes: usize) -> u32 {
        // tokio hands out at most 4 GiB at once.
        u32::try_from(bytes.min(self.total)).unwrap_or(u32::MAX)
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
        self.0.num_permits()
    }

    /// Gives back all but so many bytes.
    pub fn shrink(&mut self, bytes: usize) {
        let surplus = self.bytes().saturating_sub(bytes);
        drop(self.0.split(surplus));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
