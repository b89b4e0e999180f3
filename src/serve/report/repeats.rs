//! Recognizes repeated reviews.
//!
//! The API server sends a review again with a new copy of the object if the first copy was stale, and again if another write came in between.
//! One `kubectl label` causes four reviews, each with its own uid and without a reference to the others. So equal findings within a short
//! time count once: same user, object, rules, overrides and changed values.
//!
//! Each replica recognizes only repeats of its own reviews. The API server uses one connection while it is open, so repeats reach the same
//! replica. If the API server changes the connection in between, each of the two replicas counts the finding once.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use interlock_engine::decision::Decision;
use interlock_engine::review::Operation;

/// How long after the first finding an equal finding counts as a repeat. Longer than the API server's retries take, and short enough that a
/// client which keeps trying is counted again.
const REPEAT_WINDOW: Duration = Duration::from_secs(10);

/// How many findings are remembered. Each takes 24 bytes. A further finding replaces the oldest one.
const MAX_REMEMBERED: usize = 4_096;

/// The recent findings.
#[derive(Debug, Default)]
pub(super) struct RepeatFilter {
    /// With a random key, so that nobody can construct two findings with the same hash.
    hashes: RandomState,
    recent: Mutex<RecentFindings>,
}

#[derive(Debug, Default)]
struct RecentFindings {
    keys: HashSet<u64>,
    order: VecDeque<(Instant, u64)>,
}

impl RepeatFilter {
    /// Whether an equal finding was made recently. A CREATE is never a repeat: no copy of the object could be stale, so the API server sends
    /// it once, and the next one is another try. A dry run is never a repeat, and no review is a repeat of a dry run: the actual write
    /// follows the dry run and must be counted.
    pub(super) fn is_repeat(&self, decision: &Decision, now: Instant) -> bool {
        if decision.findings.is_empty() || decision.dry_run || decision.operation == Operation::Create {
            return false;
        }
        let findings = decision.findings.iter();
        // A write that an override admits is no repeat of the refused one before it.
        let findings: Vec<_> =
            findings.map(|it| (it.rule, it.mode.as_str(), it.kind, it.overridden.as_deref())).collect();
        let Decision { operation, resource, namespace, name, user, change, .. } = decision;
        let key = self.hashes.hash_one((operation.as_str(), resource, namespace, name, user, findings, change));
        // No code panics while the lock is held.
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.forget(now);
        !recent.add(key, now)
    }
}

impl RecentFindings {
    fn forget(&mut self, now: Instant) {
        while let Some((_, key)) =
            self.order.pop_front_if(|(at, _)| now.saturating_duration_since(*at) >= REPEAT_WINDOW)
        {
            self.keys.remove(&key);
        }
    }

    fn add(&mut self, key: u64, now: Instant) -> bool {
        if !self.keys.insert(key) {
            return false;
        }
        if self.order.len() == MAX_REMEMBERED
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
    use interlock_engine::decision::DecisionFinding;
    use interlock_engine::decision::fixtures::{decision, finding};
    use interlock_engine::rule::{Mode, RuleId};

    use super::*;

    #[test]
    fn an_equal_finding_within_seconds_is_a_repeat() {
        let (repeats, now) = (RepeatFilter::default(), Instant::now());
        let again = |decision: &Decision, later: u64| repeats.is_repeat(decision, now + Duration::from_secs(later));
        let first = decision(vec![finding(RuleId::known("manual-edit"), Mode::Enforce)]);
        assert!(!again(&first, 0));
        assert!(again(&Decision { uid: "another".into(), ..first.clone() }, 1));
        assert!(again(&first, 9));
        // A client that keeps trying without a pause is counted again after a while.
        assert!(!again(&first, 10));
        assert!(again(&first, 19));
    }

    #[test]
    fn a_finding_that_differs_is_no_repeat() {
        let (repeats, now) = (RepeatFilter::default(), Instant::now());
        let first = decision(vec![finding(RuleId::known("manual-edit"), Mode::Enforce)]);
        assert!(!repeats.is_repeat(&first, now));
        let opened = finding(RuleId::known("manual-edit"), Mode::Enforce);
        let opened = DecisionFinding { overridden: Some("shop/fix".into()), ..opened };
        let others = [
            Decision { user: "bob".into(), ..first.clone() },
            Decision { operation: Operation::Delete, ..first.clone() },
            Decision { name: "api".into(), ..first.clone() },
            Decision { namespace: "other".into(), ..first.clone() },
            Decision { resource: "deployments.apps/scale".into(), ..first.clone() },
            Decision { change: 2, ..first.clone() },
            decision(vec![finding(RuleId::known("manual-edit"), Mode::Audit)]),
            decision(vec![finding(RuleId::known("manual-delete"), Mode::Enforce)]),
            decision(vec![opened]),
            decision(vec![
                finding(RuleId::known("manual-edit"), Mode::Enforce),
                finding(RuleId::known("manual-delete"), Mode::Warn),
            ]),
        ];
        for other in &others {
            assert!(!repeats.is_repeat(other, now), "{other:?}");
            assert!(repeats.is_repeat(other, now), "{other:?}");
        }
    }

    #[test]
    fn each_create_is_another_try() {
        let (repeats, now) = (RepeatFilter::default(), Instant::now());
        let first = decision(vec![finding(RuleId::known("concurrent-operation"), Mode::Enforce)]);
        let create = Decision { operation: Operation::Create, ..first };
        assert!(!repeats.is_repeat(&create, now) && !repeats.is_repeat(&create, now));
    }

    #[test]
    fn dry_runs_and_allowed_reviews_are_never_repeats() {
        let (repeats, now) = (RepeatFilter::default(), Instant::now());
        let real = decision(vec![finding(RuleId::known("manual-edit"), Mode::Enforce)]);
        let dry = Decision { dry_run: true, ..real.clone() };
        assert!(!repeats.is_repeat(&dry, now) && !repeats.is_repeat(&dry, now) && !repeats.is_repeat(&real, now));
        assert!(!repeats.is_repeat(&dry, now));
        let fine = decision(Vec::new());
        assert!(!repeats.is_repeat(&fine, now) && !repeats.is_repeat(&fine, now));
    }

    #[test]
    fn a_new_finding_replaces_the_oldest() {
        let (repeats, now) = (RepeatFilter::default(), Instant::now());
        let nth = |change| Decision { change, ..decision(vec![finding(RuleId::known("manual-edit"), Mode::Enforce)]) };
        for change in 0..=MAX_REMEMBERED as u64 {
            assert!(!repeats.is_repeat(&nth(change), now));
        }
        assert!(repeats.is_repeat(&nth(1), now));
        assert!(!repeats.is_repeat(&nth(0), now));
        let recent = repeats.recent.lock().unwrap();
        assert_eq!((recent.keys.len(), recent.order.len()), (MAX_REMEMBERED, MAX_REMEMBERED));
    }
}
