//! The pace at which caBundles are healed if another client keeps changing them.

use jiff::{SignedDuration, Timestamp};

/// How often everything is checked without a watch event. Short, because timers stop while a machine is suspended.
pub(super) const CHECK_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// The pause after a failed check. Each further pause is twice as long, up to the maximum.
pub(super) const RETRY: SignedDuration = SignedDuration::from_secs(1);
pub(super) const MAX_RETRY: SignedDuration = SignedDuration::from_secs(30);

/// How many heals in close succession happen without a pause. Two are normal if both configurations are reverted one after the other. If
/// another controller reverts more of them, each heal waits longer than the one before.
const FAST_HEALS: u32 = 8;

/// The pace of heals.
#[derive(Default)]
pub(super) struct HealPace {
    last: Option<Timestamp>,
    /// How many heals followed the previous one within two minutes.
    in_succession: u32,
}

impl HealPace {
    /// The earliest time of the next heal, if it must wait.
    pub(super) fn later(&self, now: Timestamp) -> Option<Timestamp> {
        let doublings = self.in_succession.checked_sub(FAST_HEALS)?.min(6);
        let later = self.last? + (RETRY * 2_i32.pow(doublings)).min(CHECK_INTERVAL);
        (later > now && later <= now + CHECK_INTERVAL).then_some(later)
    }

    pub(super) fn healed(&mut self, now: Timestamp) {
        let is_close = self.last.is_some_and(|last| now.duration_since(last).abs() < CHECK_INTERVAL * 2);
        self.in_succession = if is_close { self.in_succession.saturating_add(1) } else { 0 };
        if self.in_succession == FAST_HEALS {
            tracing::warn!(
                "something keeps changing the caBundles, so they are healed more slowly; managedFields of the webhook \
                 configurations name its field manager"
            );
        }
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_reverts_are_healed_more_and_more_slowly() {
        let mut pace = HealPace::default();
        let mut now: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let mut pauses = Vec::new();
        for _ in 0..16 {
            if let Some(later) = pace.later(now) {
                pauses.push(later.duration_since(now).as_secs());
                now = later;
            }
            pace.healed(now);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60]);
        now += CHECK_INTERVAL * 3;
        assert_eq!(pace.later(now), None, "after a long time the next heal is immediate");
        pace.healed(now);
        assert_eq!(pace.later(now), None);
    }
}
