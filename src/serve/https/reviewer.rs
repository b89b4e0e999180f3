//! The interface between the HTTPS server and the reviewer.

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use http::StatusCode;
use tokio::time::Instant;

use super::endpoint::Endpoint;
pub use crate::budget::Peer;
pub use interlock_engine::decide::ReviewFailure;

/// A boxed future, as a trait object needs it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The reply to the caller. With status 200 the body is an AdmissionReview, sent as `application/json`. With any other status the body
/// is a sentence, sent as `text/plain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReply {
    /// 200 for every review that can be parsed, allowed or not. With any other status the API server applies the failure policy.
    pub status: StatusCode,
    pub body: Vec<u8>,
}

/// A reply, and an action for the moment at which it is sent.
pub struct Answer {
    pub reply: HttpReply,
    /// Runs just before the reply is sent. Does not run if the reply is too late or the caller has disconnected.
    pub delivered: Option<Box<dyn FnOnce() + Send>>,
}

impl From<HttpReply> for Answer {
    fn from(reply: HttpReply) -> Self {
        Self { reply, delivered: None }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Answer").field("reply", &self.reply).finish_non_exhaustive()
    }
}

/// Answers reviews.
pub trait Reviewer: Send + Sync + 'static {
    /// Answers one complete request body, which need not be JSON. The answer should be ready at `deadline`. A moment later the caller
    /// gets the answer of [`Self::undecided`] instead, and the future is dropped. The future is also dropped if the caller
    /// disconnects.
    ///
    /// The task of the connection polls the future first. Work of more than a few milliseconds must wait for something before, for
    /// example for its turn at a core.
    fn answer(&self, endpoint: Endpoint, body: Bytes, peer: Peer, deadline: Instant) -> BoxFuture<'_, Answer>;

    /// Answers at once for a review without an answer. Must not repeat the work that failed, and must not read much of the body,
    /// because it runs on a network thread.
    fn undecided(&self, endpoint: Endpoint, body: &Bytes, peer: Peer, why: ReviewFailure) -> Answer;
}
