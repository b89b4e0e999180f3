//! A bound on memory in use at once, for work whose size is known before it starts.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Grants are counted in these many bytes.
const UNIT: usize = 1024;

/// A number of bytes that concurrent reviews share.
#[derive(Debug)]
pub struct Budget {
    units: Semaphore,
    total: u32,
}

impl Budget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let total = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX);
        Self { units: Semaphore::new(total as usize), total }
    }

    /// Waits until so many bytes are free and takes them until the grant is dropped. More than the whole budget is the
    /// whole budget, so that nothing waits for ever.
    pub async fn grant(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.total);
        // The semaphore is never closed.
        self.units.acquire_many(units).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_granted_is_not_granted_again_until_it_is_given_back() {
        let budget = Budget::new(4 * UNIT);
        let most = budget.grant(3 * UNIT).await;
        assert!(budget.units.try_acquire_many(2).is_err());
        drop(most);
        assert!(budget.grant(100 * UNIT).await.is_some());
    }
}
