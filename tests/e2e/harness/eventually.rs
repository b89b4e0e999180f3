//! Waiting for a condition, never for time.

use std::time::{Duration, Instant};

use crate::harness::profile::{Reason, took};

/// The first pauses between looks; short compared to a helm run.
const PAUSE: Duration = Duration::from_millis(100);
/// The later pauses: most looks run helm or kubectl, which compete for cores with the process under test.
const LONGEST: Duration = Duration::from_secs(1);

/// Each deadline is for a machine that does nothing else. A slower one may take so many times as long.
const ON_A_SLOW_MACHINE: u32 = 3;

/// Calls `look` until it gives a value, and fails at the deadline with what was expected and the last thing seen.
#[track_caller]
pub(crate) fn eventually<T>(deadline: Duration, expected: &str, look: impl FnMut() -> Result<T, String>) -> T {
    within(deadline, expected, look).unwrap_or_else(|error| panic!("{error}"))
}

/// Like `eventually`, with the failure as a value.
pub(crate) fn within<T>(
    deadline: Duration,
    expected: &str,
    mut look: impl FnMut() -> Result<T, String>,
) -> Result<T, String> {
    let (start, deadline) = (Instant::now(), deadline * ON_A_SLOW_MACHINE);
    loop {
        match look() {
            Ok(value) => {
                took(|| Reason::Wait(without_digits(expected)), start.elapsed());
                return Ok(value);
            }
            Err(seen) if start.elapsed() >= deadline => {
                return Err(format!("expected within {deadline:?}: {expected}\nlast seen: {seen}"));
            }
            Err(_) => std::thread::sleep((start.elapsed() / 8).clamp(PAUSE, LONGEST)),
        }
    }
}

/// One row for all namespaces: their names end in numbers.
fn without_digits(text: &str) -> String {
    text.chars().filter(|it| !it.is_ascii_digit()).collect()
}
