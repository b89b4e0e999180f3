//! The interface between the HTTPS server and what answers reviews.

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use http::StatusCode;
use tokio::time::Instant;

use super::endpoint::Endpoint;
pub use crate::budget::Peer;
pub use interlock_engine::decide::Unjudged;

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

/// A reply, and what follows from it once the caller gets it.
pub struct Answer {
    pub reply: HttpReply,
    /// Runs just before the reply is sent; never if it comes too late or the caller has gone.
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
    /// Answers one whole request body, which need not be JSON. The answer should be ready at `deadline`; a moment later the
    /// caller gets that of [`Self::undecided`]. The future is then dropped, and also when the caller disconnects.
    ///
    /// It is first polled in the task of the connection. What takes longer than some milliseconds must wait for something before,
    /// for example for its turn at a core.
    fn answer(&self, endpoint: Endpoint, body: Bytes, peer: Peer, deadline: Instant) -> BoxFuture<'_, Answer>;

    /// Answers at once for a review that has no answer of its own. Must not repeat what went wrong, and must not read much of
    /// the body: the caller waits on a thread of the network.
    fn undecided(&self, endpoint: Endpoint, body: &Bytes, peer: Peer, why: Unjudged) -> Answer;
}
