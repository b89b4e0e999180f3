//! The API server's clock. Ages are computed with it, because the clock of a laptop may be wrong.

use std::time::Instant;

use http::Request;
use http::header::DATE;
use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use kube::{Client, Error};

/// Reads the API server's clock from the Date header of an answer; `None` without a readable one.
///
/// # Errors
/// When the API server does not answer.
pub async fn server_time(client: &Client) -> Result<Option<Timestamp>, Error> {
    let request = Request::get("/version").body(Body::empty()).map_err(Error::HttpError)?;
    let response = client.send(request).await?;
    let date = response.headers().get(DATE).and_then(|date| date.to_str().ok());
    Ok(date.and_then(|date| rfc2822::parse(date).ok()).map(|date| date.timestamp()))
}

/// The API server's clock, continued from one reading of it.
#[derive(Debug, Clone, Copy)]
pub struct ServerClock {
    start: Timestamp,
    read_at: Instant,
}

impl ServerClock {
    /// Continues from a reading that was taken just now.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, read_at: Instant::now() }
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.read_at.elapsed()).unwrap_or_default();
        self.start.checked_add(elapsed).unwrap_or(self.start)
    }
}
