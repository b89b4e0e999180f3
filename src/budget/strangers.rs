//! The share of all strangers together.

use std::time::Duration;

use tokio::time::Instant;

/// The share of strangers while the API server calls: one part in four.
const SHARE_DIVISOR: usize = 4;

/// How long after a call the API server still counts as calling.
const CALLS_FOR: Duration = Duration::from_secs(30);

/// The share of strangers: a quarter while the API server calls, and everything otherwise.
#[derive(Debug, Default)]
pub(crate) struct StrangersShare {
    /// When the API server called last.
    called: Option<Instant>,
}

impl StrangersShare {
    /// Notes a call of the API server.
    pub(crate) fn api_server_calls(&mut self) {
        self.called = Some(Instant::now());
    }

    /// Their part of a total.
    pub(crate) fn of(&self, total: usize) -> usize {
        let calls = self.called.is_some_and(|called| called.elapsed() < CALLS_FOR);
        if calls { total / SHARE_DIVISOR } else { total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn strangers_get_all_unless_the_api_server_called_recently() {
        let mut share = StrangersShare::default();
        assert_eq!(share.of(100), 100);
        share.api_server_calls();
        tokio::time::advance(CALLS_FOR - Duration::from_millis(1)).await;
        assert_eq!(share.of(100), 25);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(share.of(100), 100);
    }
}
