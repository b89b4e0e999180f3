//! The API server's clock. Ages are computed with it, because the clock of a laptop may be wrong.

use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

/// The API server's clock, continued from one reading of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerClock {
    start: Timestamp,
    read_at: Instant,
}

impl ServerClock {
    /// Continues from a reading that was taken just now.
    #[must_use]
    pub(crate) fn starting_at(start: Timestamp) -> Self {
        Self { start, read_at: Instant::now() }
    }

    /// The current time.
    #[must_use]
    pub(crate) fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.read_at.elapsed()).unwrap_or_default();
        self.start.checked_add(elapsed).unwrap_or(self.start)
    }
}
