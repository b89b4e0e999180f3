//! The API server repeats a review: once more with a fresh copy of the object when the first one was stale, and all of it
//! when another write came in between. One `kubectl label` is four reviews, each with a uid of its own, and none of them says
//! which it repeats. So what is found twice in a short while is one finding: by the same user, of the same object, against
//! the same rules, with the same values at the places concerned.
//!
//! Each replica folds what it is asked. The API server keeps to one connection while that lives, so repeats come to one
//! replica; where it takes another one in between, both count, once each.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::decision::Decision;

/// How long the same counts as a repeat, from its first time on: longer than the API server's retries take, and short
/// enough that a client which goes on trying is counted again and again.
const WINDOW: Duration = Duration::from_secs(10);

/// The findings remembered, at most; the oldest is forgotten for the newest. They take 24 bytes each.
const MOST: usize = 4_096;

/// What was found a moment ago.
#[derive(Debug, Default)]
pub(super) struct Fold {
    /// Keyed by chance, so that nobody can make two findings pass for one.
    hashes: RandomState,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    keys: HashSet<u64>,
    order: VecDeque<(Instant, u64)>,
}

impl Fold {
    /// Whether the same was found a moment ago. Nothing repeats a dry run, nor is repeated by one: it is followed by the
    /// write that it was made for.
    pub(super) fn is_repeat(&self, decision: &Decision, now: Instant) -> bool {
        if decision.findings.is_empty() || decision.dry_run {
            return false;
        }
        let findings: Vec<_> = decision.findings.iter().map(|it| (it.rule, it.mode.as_str(), it.kind)).collect();
        let Decision { operation, resource, namespace, name, user, change, .. } = decision;
        let key = self.hashes.hash_one((operation.as_str(), resource, namespace, name, user, findings, change));
        // Nothing can panic while it is held.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.forget(now);
        !seen.add(key, now)
    }
}

impl Seen {
    fn forget(&mut self, now: Instant) {
        let is_old = |(at, _): &(Instant, u64)| now.saturating_duration_since(*at) >= WINDOW;
        while let Some((_, key)) = self.order.pop_front_if(|first| is_old(first)) {
            self.keys.remove(&key);
        }
    }

    fn add(&mut self, key: u64, now: Instant) -> bool {
        if !self.keys.insert(key) {
            return false;
        }
        if self.order.len() == MOST
            && let Some((_, oldest)) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
        self.order.push_back((now, key));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::decision::tests::{decision, finding};
    use crate::engine::policy::Mode;
    use crate::engine::review::Operation;
    use crate::engine::rules::RuleId;

    #[test]
    fn what_is_found_again_in_a_moment_is_one_finding() {
        let (fold, now) = (Fold::default(), Instant::now());
        let again = |decision: &Decision, later: u64| fold.is_repeat(decision, now + Duration::from_secs(later));
        let first = decision(vec![finding(RuleId::known("manual-edit"), Mode::Enforce)]);
        assert!(!again(&first, 0));
        assert!(again(&Decision { uid: "another".into(), ..first.clone() }, 1));
        assert!(again(&first, 9));
        // Whoever goes on trying is counted again, though he never paused.
        assert!(!again(&first, 10));
        assert!(again(&first, 19));
    }

    #[test]
    fn whatever_differs_is_another_finding() {
        let (fold, now) = (Fold::default(), Instant::now());
        let first = decision(vec![finding(RuleId::known("manual-edit"), Mode::Enforce)]);
        assert!(!fold.is_repeat(&first, now));
        let others = [
            Decision { user: "bob".into(), ..first.clone() },
            Decision { operation: Operation::Delete, ..first.clone() },
            Decision { name: "api".into(), ..first.clone() },
            Decision { namespace: "other".into(), ..first.clone() },
            Decision { resource: "deployments.apps/scale".into(), ..first.clone() },
            Decision { change: 2, ..first.clone() },
            decision(vec![finding(RuleId::known("manual-edit"), Mode::Audit)]),
            decision(vec![finding(RuleId::known("manual-delete"), Mode::Enforce)]),
            decision(vec![
                finding(RuleId::known("manual-edit"), Mode::Enforce),
                finding(RuleId::known("manual-delete"), Mode::Warn),
            ]),
        ];
        for other in &others {
            assert!(!fold.is_repeat(other, now), "{other:?}");
            assert!(fold.is_repeat(other, now), "{other:?}");
        }
    }

    #[test]
    fn dry_runs_and_reviews_without_a_finding_are_no_repeats_and_have_none() {
        let (fold, now) = (Fold::default(), Instant::now());
        let real = decision(vec![finding(RuleId::known("manual-edit"), Mode::Enforce)]);
        let dry = Decision { dry_run: true, ..real.clone() };
        assert!(!fold.is_repeat(&dry, now) && !fold.is_repeat(&dry, now) && !fold.is_repeat(&real, now));
        assert!(!fold.is_repeat(&dry, now));
        let fine = decision(Vec::new());
        assert!(!fold.is_repeat(&fine, now) && !fold.is_repeat(&fine, now));
    }

    #[test]
    fn the_oldest_is_forgotten_for_the_newest() {
        let (fold, now) = (Fold::default(), Instant::now());
        let nth = |change| Decision { change, ..decision(vec![finding(RuleId::known("manual-edit"), Mode::Enforce)]) };
        for change in 0..=MOST as u64 {
            assert!(!fold.is_repeat(&nth(change), now));
        }
        assert!(fold.is_repeat(&nth(1), now));
        assert!(!fold.is_repeat(&nth(0), now));
        let seen = fold.seen.lock().unwrap();
        assert_eq!((seen.keys.len(), seen.order.len()), (MOST, MOST));
    }
}
