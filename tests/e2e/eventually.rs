//! Waiting for a condition, never for time.

use std::time::{Duration, Instant};

/// Between two looks. Short against a helm run, long against a kubectl call.
const PAUSE: Duration = Duration::from_millis(100);

/// Calls `look` until it gives a value, and fails at the deadline with what was expected and the last thing seen.
#[track_caller]
pub(crate) fn eventually<T>(deadline: Duration, expected: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match look() {
            Ok(value) => return value,
            Err(seen) if start.elapsed() >= deadline => {
                panic!("expected within {deadline:?}: {expected}\nlast seen: {seen}")
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}
