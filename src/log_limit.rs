//! A limit for log lines that clients and tenants can cause at will, for example with broken requests. The first line of a kind is
//! logged at once, and then one line every few seconds, with the number of suppressed lines. Metrics count every event.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time between two lines of a kind. It is long enough that 24 hours of attack fit in a log (17,000 lines), and short enough to
/// show that the attack continues.
const INTERVAL: Duration = Duration::from_secs(5);

/// The limit of lines that clients of the two ports and writers of objects cause.
pub(crate) static CLIENT_LOG_LIMIT: LogLimit = LogLimit::new();

/// The kinds of lines that were logged recently.
///
/// ```text
/// static LIMIT: LogLimit = LogLimit::new();
/// if let Some(suppressed) = LIMIT.admit("not a review") {
///     tracing::warn!(suppressed, %error, "a body is not a review");
/// }
/// ```
#[derive(Debug, Default)]
pub(crate) struct LogLimit {
    /// The keys are constants of the program, so the map stays small.
    kinds: Mutex<BTreeMap<&'static str, LoggedKind>>,
}

#[derive(Debug)]
struct LoggedKind {
    logged: Instant,
    /// The number of suppressed lines since then.
    suppressed: u64,
}

impl LogLimit {
    /// A limit that has logged nothing.
    pub(crate) const fn new() -> Self {
        Self { kinds: Mutex::new(BTreeMap::new()) }
    }

    /// The number of suppressed lines since the last line, if a line of this kind may be logged now; otherwise `None`.
    pub(crate) fn admit(&self, kind: &'static str) -> Option<u64> {
        self.admit_at(kind, Instant::now())
    }

    fn admit_at(&self, kind: &'static str, now: Instant) -> Option<u64> {
        // Nothing can panic while the lock is held.
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
    fn the_second_line_counts_the_suppressed_ones() {
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
