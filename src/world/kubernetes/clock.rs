//! The API server's clock.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use http::Request;
use http::header::DATE;
use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use kube::{Client, Error};
use tokio::time::sleep;

use crate::readiness::Gate;

/// The tolerated difference of this machine's clock, in seconds. A Date has whole seconds, and an answer takes some time.
const TOLERATED_SECONDS: i64 = 5;

/// The time between two comparisons. A clock that is set while the process runs stays wrong for as long.
const INTERVAL: Duration = Duration::from_secs(60);

const RETRY: Duration = Duration::from_secs(1);

/// The API server's clock as this process knows it: this machine's clock, corrected if it differs by more than
/// [`TOLERATED_SECONDS`]. Ages are computed with it from times that the API server and other replicas have written. With a clock
/// that is minutes fast, every operation would count as stuck. With a difference above the tolerance for stamps, the stamps of
/// other replicas would count as forged.
///
/// The default is this machine's clock, until [`follow`] corrects it.
#[derive(Debug, Default)]
pub struct ServerClock {
    correction_seconds: AtomicI64,
}

impl ServerClock {
    /// Reads the API server's clock once.
    pub(crate) async fn read(client: &Client) -> Result<Self, ClockError> {
        let clock = Self::default();
        clock.compare(server_time(client).await?, Timestamp::now());
        Ok(clock)
    }

    /// A clock that is so many seconds ahead of this machine's clock.
    #[cfg(test)]
    pub(crate) fn ahead_by(seconds: i64) -> Self {
        Self { correction_seconds: AtomicI64::new(seconds) }
    }

    /// The time by the API server's clock, as far as it is known.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let local = Timestamp::now();
        let correction = SignedDuration::from_secs(self.correction_seconds.load(Relaxed));
        local.checked_add(correction).unwrap_or(local)
    }

    /// Compares two readings of one moment. Returns the correction in seconds if it has changed.
    fn compare(&self, server: Timestamp, local: Timestamp) -> Option<i64> {
        let off = server.as_second().saturating_sub(local.as_second());
        let known = self.correction_seconds.load(Relaxed);
        let correction = if off.abs() > TOLERATED_SECONDS { off } else { 0 };
        // A Date varies by a second.
        let has_changed = (correction == 0) != (known == 0) || (correction - known).abs() > TOLERATED_SECONDS;
        has_changed.then(|| {
            self.correction_seconds.store(correction, Relaxed);
            correction
        })
    }
}

/// Compares the clocks forever. Opens `known` after the first comparison, or when the API server does not report its time.
pub(crate) async fn follow(client: Client, clock: Arc<ServerClock>, known: Gate) {
    loop {
        let pause = match server_time(&client).await {
            Ok(server) => {
                if let Some(seconds) = clock.compare(server, Timestamp::now()) {
                    tracing::warn!(
                        seconds,
                        "this machine's clock is corrected by the API server's: synchronize the clocks of the nodes"
                    );
                }
                known.open();
                INTERVAL
            }
            Err(ClockError::NoAnswer(error)) => {
                tracing::debug!(%error, "the API server did not say its time");
                RETRY
            }
            Err(error @ (ClockError::NoDate | ClockError::BadDate(_))) => {
                tracing::debug!(%error, "ages are computed by this machine's clock");
                known.open();
                INTERVAL
            }
        };
        sleep(pause).await;
    }
}

/// The API server's clock cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClockError {
    #[error("failed to reach the API server")]
    NoAnswer(#[from] Error),
    #[error("the answer of the API server has no Date header")]
    NoDate,
    #[error("the API server's Date {0:?} cannot be parsed")]
    BadDate(String),
}

/// The time by the API server's clock, in whole seconds. It decides the age of a record, because the clock of this machine may be
/// wrong.
pub(crate) async fn server_time(client: &Client) -> Result<Timestamp, ClockError> {
    let request = Request::get("/version").body(Body::empty()).map_err(Error::HttpError)?;
    let response = client.send(request).await?;
    let date = response.headers().get(DATE).and_then(|date| date.to_str().ok()).ok_or(ClockError::NoDate)?;
    let parsed = rfc2822::parse(date).map_err(|_| ClockError::BadDate(date.to_owned()))?;
    Ok(parsed.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_that_is_clearly_off_is_corrected() {
        let at = |second: i64| Timestamp::from_second(1_795_255_200 + second).unwrap();
        let clock = ServerClock::default();
        for (server, local, changed) in [
            (0, 0, None),
            (0, 5, None),
            (120, 0, Some(120)),
            (121, 0, None),
            (0, 120, Some(-120)),
            (3, 0, Some(0)),
            (4, 0, None),
        ] {
            assert_eq!(clock.compare(at(server), at(local)), changed, "{server} {local}");
        }
        clock.compare(at(3_600), at(0));
        let ahead = clock.now().duration_since(Timestamp::now()).as_secs();
        assert!((3_599..=3_600).contains(&ahead), "{ahead}");
    }
}
