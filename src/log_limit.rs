//! A limit for log lines that others can cause as often as they like: a client with broken requests, a tenant whose objects cannot
//! be written. The first line of a kind is logged at once, then one every few seconds with the number of those between them.
//! Metrics count each of them, so nothing is lost with a line.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two lines of a kind: seldom enough for 24 hours of attack to fit in a log (17,000 lines), often enough to see that it
/// goes on.
const INTERVAL: Duration = Duration::from_secs(5);

/// The limit of the lines that clients of the two ports and writers of objects cause.
pub(crate) static OF_CLIENTS: LogLimit = LogLimit::new();

/// Which kinds of lines were logged recently.
///
/// ```text
/// static LIMIT: LogLimit = LogLimit::new();
/// if let Some(suppressed) = LIMIT.admit("not a review") {
///     tracing::warn!(suppressed, %error, "a body is not a review");
/// }
/// ```
#[derive(Debug, Default)]
pub(crate) struct LogLimit {
    /// Keys are constants of the program, so there are few.
    kinds: Mutex<BTreeMap<&'static str, LoggedKind>>,
}

#[derive(Debug)]
struct LoggedKind {
    logged: Instant,
    /// How many lines were not logged since then.
    suppressed: u64,
}

impl LogLimit {
    /// A limit that has logged nothing.
    pub(crate) const fn new() -> Self {
        Self { kinds: Mutex::new(BTreeMap::new()) }
    }

    /// Whether to log a line of a kind now; with the number of lines that were suppressed since the last one.
    pub(crate) fn admit(&self, kind: &'static str) -> Option<u64> {
        self.admit_at(kind, Instant::now())
    }

    fn admit_at(&self, kind: &'static str, now: Instant) -> Option<u64> {
        // Nothing can panic while it is held.
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = kinds.get_mut(kind) else {
            kinds.insert(kind, LoggedKind { logged: now, suppressed: 0 });
            return Some(0);
        };
        if now.saturating_duration_since(known.logged) < INTERVAL {
            known.suppressed = known.suppressed.saturating_add(1);
            return None;
        }
        known.logged = now;
        Some(std::mem::take(&mut known.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_logged_at_once_and_the_next_one_counts_what_was_suppressed() {
        let (limit, start) = (LogLimit::new(), Instant::now());
        let at = |millis| limit.admit_at("a", start + Duration::from_millis(millis));
        assert_eq!([at(0), at(0), at(10), at(4_999)], [Some(0), None, None, None]);
        assert_eq!([at(5_000), at(5_001), at(60_000), at(65_000)], [Some(3), None, Some(1), Some(0)]);
    }

    #[test]
    fn a_flood_of_one_kind_does_not_suppress_another() {
        let (limit, now) = (LogLimit::new(), Instant::now());
        assert_eq!(limit.admit_at("a", now), Some(0));
        let flood = (0..100_000).filter(|_| limit.admit_at("a", now).is_some()).count();
        assert_eq!((flood, limit.admit_at("b", now)), (0, Some(0)));
        assert_eq!(limit.admit_at("a", now + INTERVAL), Some(100_000));
    }
}
