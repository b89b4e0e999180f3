//! The interface between the HTTPS server and what answers reviews.

use std::pin::Pin;

use bytes::Bytes;
use http::StatusCode;
use tokio::time::Instant;

use super::endpoint::Endpoint;

/// A boxed future, as a trait object needs it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The reply to the caller. With status 200 the body is an AdmissionReview and is sent as `application/json`; with any other
/// status it is a sentence and is sent as `text/plain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReply {
    /// 200 for every review that can be parsed, allowed or not: any other status makes the API server apply the failure
    /// policy.
    pub status: StatusCode,
    pub body: Vec<u8>,
}

/// Answers reviews.
pub trait Reviewer: Send + Sync + 'static {
    /// Answers one whole request body, which need not be JSON. The answer must be ready at `deadline`; shortly after it the
    /// caller gets an error. The future is dropped when the caller disconnects.
    fn answer(&self, endpoint: Endpoint, body: Bytes, deadline: Instant) -> BoxFuture<'_, HttpReply>;

    /// Answers for a review that panicked. Must not repeat what panicked.
    fn panicked(&self, endpoint: Endpoint, body: &[u8]) -> HttpReply;
}
