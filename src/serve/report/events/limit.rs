//! Limits the rate of writes, for each key.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// The largest number of tokens, and the interval at which one token is added.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    pub(super) burst: u32,
    pub(super) each: Duration,
}

/// A bucket of tokens for each key.
#[derive(Debug)]
pub(super) struct RateLimit<K> {
    rate: Rate,
    limit: usize,
    /// When each bucket is full again. Buckets that are full are absent.
    refilled: HashMap<K, Instant>,
}

impl<K: Hash + Eq + Clone> RateLimit<K> {
    /// Stores at most `limit` buckets that are not full.
    pub(super) fn new(rate: Rate, limit: usize) -> Self {
        Self { rate, limit, refilled: HashMap::new() }
    }

    /// Takes a token of a key, if there is one. A new key gets none if there is no room for its bucket.
    pub(super) fn take(&mut self, key: &K, now: Instant) -> bool {
        if !self.refilled.contains_key(key) && self.refilled.len() >= self.limit {
            self.forget_full(now);
            if self.refilled.len() >= self.limit {
                return false;
            }
        }
        let refilled = self.refilled.get(key).map_or(now, |refilled| now.max(*refilled));
        let has_token = refilled.duration_since(now) <= self.rate.each * (self.rate.burst - 1);
        if has_token {
            self.refilled.insert(key.clone(), refilled + self.rate.each);
        }
        has_token
    }

    /// Drops full buckets, because they equal new ones.
    pub(super) fn forget_full(&mut self, now: Instant) {
        self.refilled.retain(|_, refilled| *refilled > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { burst: 2, each: Duration::from_secs(10) };

    #[test]
    fn a_bucket_allows_a_burst_and_then_one_per_interval() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut bucket = RateLimit::new(RATE, 1);
        let taken: Vec<_> = [0, 0, 0, 9, 10, 10, 20, 200, 200, 200].map(|second| bucket.take(&(), at(second))).into();
        assert_eq!(taken, [true, true, false, false, true, false, true, true, true, false]);
    }

    #[test]
    fn keys_have_separate_buckets_up_to_a_limit() {
        let now = Instant::now();
        let mut buckets = RateLimit::new(RATE, 2);
        assert!(buckets.take(&1, now) && buckets.take(&1, now) && !buckets.take(&1, now));
        assert!(buckets.take(&2, now) && !buckets.take(&3, now));
        let later = now + RATE.each;
        assert!(buckets.take(&3, later), "the second is full again and forgotten");
        assert_eq!(buckets.refilled.len(), 2);
    }
}
