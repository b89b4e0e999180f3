//! Limits rates with token buckets: one for each object, and one for all objects together.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// The largest number of tokens, and the interval at which one token is added.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    pub(super) burst: u32,
    pub(super) each: Duration,
}

#[derive(Debug)]
pub(super) struct TokenBucket {
    rate: Rate,
    tokens: u32,
    /// The time up to which tokens have been added.
    filled: Instant,
}

impl TokenBucket {
    pub(super) fn full(rate: Rate, now: Instant) -> Self {
        Self { rate, tokens: rate.burst, filled: now }
    }

    /// Takes a token, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        self.fill(now);
        let taken = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        taken
    }

    fn fill(&mut self, now: Instant) {
        while self.tokens < self.rate.burst && now.saturating_duration_since(self.filled) >= self.rate.each {
            self.tokens += 1;
            self.filled += self.rate.each;
        }
        if self.tokens == self.rate.burst {
            self.filled = now;
        }
    }

    fn is_full(&mut self, now: Instant) -> bool {
        self.fill(now);
        self.tokens == self.rate.burst
    }
}

/// A bucket for each key.
#[derive(Debug)]
pub(super) struct TokenBuckets<K> {
    rate: Rate,
    limit: usize,
    buckets: HashMap<K, TokenBucket>,
}

impl<K: Hash + Eq + Clone> TokenBuckets<K> {
    /// Stores at most `limit` buckets that are not full.
    pub(super) fn new(rate: Rate, limit: usize) -> Self {
        Self { rate, limit, buckets: HashMap::new() }
    }

    /// Takes a token of a key, if there is one. A new key gets none if there is no room for its bucket.
    pub(super) fn take(&mut self, key: &K, now: Instant) -> bool {
        if !self.buckets.contains_key(key) && self.buckets.len() >= self.limit {
            self.forget_full(now);
            if self.buckets.len() >= self.limit {
                return false;
            }
        }
        self.buckets.entry(key.clone()).or_insert_with(|| TokenBucket::full(self.rate, now)).take(now)
    }

    /// Drops full buckets, because they equal new ones.
    pub(super) fn forget_full(&mut self, now: Instant) {
        self.buckets.retain(|_, bucket| !bucket.is_full(now));
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
        let mut bucket = TokenBucket::full(RATE, start);
        let taken: Vec<_> = [0, 0, 0, 9, 10, 10, 20, 200, 200, 200].map(|second| bucket.take(at(second))).into();
        assert_eq!(taken, [true, true, false, false, true, false, true, true, true, false]);
    }

    #[test]
    fn keys_have_separate_buckets_up_to_a_limit() {
        let now = Instant::now();
        let mut buckets = TokenBuckets::new(RATE, 2);
        assert!(buckets.take(&1, now) && buckets.take(&1, now) && !buckets.take(&1, now));
        assert!(buckets.take(&2, now) && !buckets.take(&3, now));
        let later = now + RATE.each;
        assert!(buckets.take(&3, later), "the second is full again and forgotten");
        assert_eq!(buckets.buckets.len(), 2);
    }
}
