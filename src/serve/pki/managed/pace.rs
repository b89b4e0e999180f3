//! The pace of healing caBundles that somebody else keeps changing.

use jiff::{SignedDuration, Timestamp};

/// How often everything is checked without a watch event: timers stand still while a machine is suspended.
pub(super) const CHECK_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// The pause after a failed check; each further pause is twice as long, up to the maximum.
pub(super) const RETRY: SignedDuration = SignedDuration::from_secs(1);
pub(super) const MAX_RETRY: SignedDuration = SignedDuration::from_secs(30);

/// How many heals within a minute of one another happen at once: reverting one configuration and then the other takes two.
/// Another controller that reverts more than these is answered ever more slowly.
const FAST_HEALS: u32 = 8;

/// The pace of heals.
#[derive(Default)]
pub(super) struct HealPace {
    last: Option<Timestamp>,
    close: u32,
}

impl HealPace {
    /// The earliest time of the next heal, if it must wait.
    pub(super) fn later(&self, now: Timestamp) -> Option<Timestamp> {
        let doublings = self.close.checked_sub(FAST_HEALS)?.min(6);
        let later = self.last? + (RETRY * 2_i32.pow(doublings)).min(CHECK_INTERVAL);
        (later > now && later <= now + CHECK_INTERVAL).then_some(later)
    }

    pub(super) fn healed(&mut self, now: Timestamp) {
        let close = self.last.is_some_and(|last| now.duration_since(last).abs() < CHECK_INTERVAL * 2);
        self.close = if close { self.close.saturating_add(1) } else { 0 };
        if self.close == FAST_HEALS {
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
    fn who_undoes_every_heal_is_met_ever_more_slowly() {
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
