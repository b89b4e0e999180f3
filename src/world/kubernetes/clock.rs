//! The API server's clock.

use http::Request;
use http::header::DATE;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use kube::client::Body;
use kube::{Client, Error};

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

/// The time by the API server's clock, in whole seconds. It decides how old a record is; the clock of this machine may be
/// wrong.
pub(crate) async fn server_time(client: &Client) -> Result<Timestamp, ClockError> {
    let request = Request::get("/version").body(Body::empty()).map_err(Error::HttpError)?;
    let response = client.send(request).await?;
    let date = response.headers().get(DATE).and_then(|date| date.to_str().ok()).ok_or(ClockError::NoDate)?;
    let parsed = rfc2822::parse(date).map_err(|_| ClockError::BadDate(date.to_owned()))?;
    Ok(parsed.timestamp())
}
