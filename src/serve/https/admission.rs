//! The admission router: bytes in, bytes out, within a deadline.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use bytes::Bytes;
use futures_util::FutureExt;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tracing::{Instrument, Span};

use super::body::{BodyBudget, HeldBytes, NotRead, discard};
use super::endpoint::Endpoint;
use super::limits::Limits;
use super::metrics::{HttpsMetrics, ReviewEnd};
use super::peers::{Caller, KnownPeers};
use super::rejection::{Rejection, sentence};
use super::reviewer::{Answer, HttpReply, Peer, ReviewFailure, Reviewer};
use super::slots::Activity;
use crate::log_limit::CLIENT_LOG_LIMIT;
use crate::serve::traces;

/// The timeout of a request without `?timeout=`: the default of the API server.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest timeout that the API server allows.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// The server replies 10 % before the timeout, at most this much before, because sending takes time. A late answer is a failed call,
/// so an undecided answer in time is better.
///
/// The reviewer stops asking one more margin earlier: it can name the undecided rules, and its stand-in cannot.
const MAX_MARGIN: Duration = Duration::from_millis(200);

/// Routes `POST /validate` and `POST /mutate` to the reviewer. Needs no socket.
pub fn router(
    reviewer: Arc<dyn Reviewer>,
    limits: &Limits,
    metrics: Arc<HttpsMetrics>,
    peers: Arc<KnownPeers>,
) -> Router {
    let bodies = BodyBudget::new(limits.bytes_in_flight, metrics.bodies_in_flight.clone());
    let handler = Handler { reviewer, bodies, body_timeout: limits.body, metrics, peers };
    Router::new()
        .route("/validate", review(Endpoint::Validate))
        .route("/mutate", review(Endpoint::Mutate))
        .method_not_allowed_fallback(
            |State(handler): State<Handler>| async move { handler.reject(Rejection::WrongMethod) },
        )
        .fallback(|State(handler): State<Handler>| async move { handler.reject(Rejection::UnknownPath) })
        .with_state(handler)
}

fn review(endpoint: Endpoint) -> MethodRouter<Handler> {
    post(move |State(handler): State<Handler>, request| handler.review(endpoint, request))
}

#[derive(Clone)]
struct Handler {
    reviewer: Arc<dyn Reviewer>,
    bodies: BodyBudget,
    body_timeout: Duration,
    metrics: Arc<HttpsMetrics>,
    peers: Arc<KnownPeers>,
}

/// A request whose head is valid and whose body has arrived.
struct ReceivedRequest {
    body: Bytes,
    held: HeldBytes,
    peer: Peer,
    /// When an answer must be sent.
    until: Instant,
    /// When the reviewer should have answered: one margin earlier.
    deadline: Instant,
}

impl Handler {
    /// Handles both endpoints. Does not parse the body.
    async fn review(self, endpoint: Endpoint, request: Request) -> Response {
        let metrics = Arc::clone(&self.metrics);
        let mut clock = metrics.review(endpoint);
        let span = traces::review(endpoint.as_str(), request.headers());
        let peer = self.peer_of(&request);
        let answered = match self.receive(request, peer).await {
            Ok(received) => self.run(endpoint, received, &span).await,
            Err(not_read) => self.without_body(endpoint, peer, not_read),
        };
        match answered {
            Ok((Answer { reply, delivered }, end)) => {
                clock.end(end);
                if let Some(delivered) = delivered {
                    span.in_scope(delivered);
                }
                reply.into_response()
            }
            Err(rejection) => {
                clock.end(ReviewEnd::Rejected);
                self.reject(rejection)
            }
        }
    }

    /// Whether the sender of a request is known. A request without a connection comes from this process.
    fn peer_of(&self, request: &Request) -> Peer {
        let peer = request.extensions().get::<Caller>().map_or(Peer::Known, |caller| self.peers.peer_of(*caller));
        if peer == Peer::Stranger {
            self.metrics.reviews_of_strangers.inc();
        }
        peer
    }

    /// The answer to a body that was not read. If memory ran out, the stand-in answers by the head of the body: a rejection would be a
    /// failed call, which the API server admits if the entry fails open.
    fn without_body(
        &self,
        endpoint: Endpoint,
        peer: Peer,
        NotRead { why, head }: NotRead,
    ) -> Result<(Answer, ReviewEnd), Rejection> {
        if head.is_empty() {
            return Err(why);
        }
        self.metrics.http_refusals.get_or_create(&why).inc();
        let stand_in = AssertUnwindSafe(|| self.reviewer.undecided(endpoint, &head, peer, ReviewFailure::Busy));
        catch_unwind(stand_in).map(|answer| (answer, ReviewEnd::Rejected)).map_err(|_| why)
    }

    /// Checks the head and reads the body.
    async fn receive(&self, request: Request, peer: Peer) -> Result<ReceivedRequest, NotRead> {
        let arrived = Instant::now();
        let (head, body) = request.into_parts();
        let timeout = match check(&head.headers, head.uri.query()) {
            Ok(timeout) => timeout,
            Err(rejection) => {
                discard(body, arrived + self.body_timeout).await;
                return Err(rejection.into());
            }
        };
        let margin = (timeout / 10).min(MAX_MARGIN);
        let until = arrived + timeout - margin;
        let deadline = until - margin;
        let (body, held) = self.bodies.read(body, peer, deadline.min(arrived + self.body_timeout)).await?;
        if let Some(caller) = head.extensions.get::<Caller>() {
            self.peers.search_nonce(*caller, &body);
        }
        if let Some(activity) = head.extensions.get::<Arc<Activity>>() {
            activity.body_arrived();
        }
        Ok(ReceivedRequest { body, held, peer, until, deadline })
    }

    /// Runs the reviewer. A panic is an error value.
    ///
    /// A review that has to wait moves to its own task, so that an answer is sent in time even if the review blocks. Other reviews stay
    /// in this task: a new one would wake another thread for a few microseconds of work.
    async fn run(
        &self,
        endpoint: Endpoint,
        received: ReceivedRequest,
        span: &Span,
    ) -> Result<(Answer, ReviewEnd), Rejection> {
        let ReceivedRequest { body, held, peer, until, deadline } = received;
        let reviewer = Arc::clone(&self.reviewer);
        let body_copy = body.clone();
        let review = async move {
            // A step can outlive the answer, and then still uses the body.
            let _held = held;
            reviewer.answer(endpoint, body, peer, deadline).await
        };
        let mut review = Box::pin(AssertUnwindSafe(review).catch_unwind().instrument(span.clone()));
        let answered = match poll_fn(|context| Poll::Ready(review.as_mut().poll(context))).await {
            Poll::Ready(answered) => Ok(answered.ok()),
            Poll::Pending => {
                // The set aborts the review if its answer is too late or its caller disconnects. The review ends when it next waits.
                let mut task = JoinSet::new();
                task.spawn(review);
                timeout_at(until, task.join_next()).await.map(|ended| ended?.ok()?.ok())
            }
        };
        let (why, end) = match answered {
            Ok(Some(answer)) => return Ok((answer, ReviewEnd::Answered)),
            Ok(None) => {
                self.metrics.panics.get_or_create(&endpoint).inc();
                let kind = "a review panicked";
                if let Some(suppressed) = CLIENT_LOG_LIMIT.admit(kind) {
                    tracing::error!(?endpoint, suppressed, "{kind}");
                }
                (ReviewFailure::Failed, ReviewEnd::Panicked)
            }
            Err(_) => (ReviewFailure::Late, ReviewEnd::Late),
        };
        let stand_in = AssertUnwindSafe(|| self.reviewer.undecided(endpoint, &body_copy, peer, why));
        catch_unwind(stand_in).map(|answer| (answer, end)).map_err(|_| Rejection::NoAnswer)
    }

    fn reject(&self, rejection: Rejection) -> Response {
        self.metrics.http_refusals.get_or_create(&rejection).inc();
        tracing::debug!(?rejection, "rejected a request without a review");
        rejection.into_response()
    }
}

impl IntoResponse for HttpReply {
    fn into_response(self) -> Response {
        if self.status == StatusCode::OK {
            let kind = HeaderValue::from_static("application/json");
            ([(CONTENT_TYPE, kind)], Body::from(self.body)).into_response()
        } else {
            sentence(self.status, self.body)
        }
    }
}

/// Checks the content type and returns the timeout.
fn check(headers: &HeaderMap, query: Option<&str>) -> Result<Duration, Rejection> {
    if !headers.get(CONTENT_TYPE).is_some_and(is_json) {
        return Err(Rejection::NotJson);
    }
    match query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("timeout="))) {
        Some(text) => parse_timeout(text).ok_or(Rejection::BadTimeout),
        None => Ok(DEFAULT_TIMEOUT),
    }
}

/// Whether a content type is JSON. Ignores its parameters.
fn is_json(content_type: &HeaderValue) -> bool {
    let text = content_type.to_str().unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// Parses a Go duration (`3s`, `2500ms`, `1m30s`), at most [`MAX_TIMEOUT`]. `None` if it is invalid or not positive.
fn parse_timeout(text: &str) -> Option<Duration> {
    // jiff accepts everything that Go prints: units from h to ns, and fractions of the last one.
    let duration = text.parse::<jiff::SignedDuration>().ok()?;
    let duration = Duration::try_from(duration).ok().filter(|duration| !duration.is_zero())?;
    Some(duration.min(MAX_TIMEOUT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_parsed_as_go_prints_them() {
        for (text, milliseconds) in [
            ("3s", 3_000),
            ("2500ms", 2_500),
            ("2.5s", 2_500),
            ("10s", 10_000),
            ("1m0s", 30_000),
            ("1m30s", 30_000),
            ("1h", 30_000),
            ("1ms", 1),
        ] {
            assert_eq!(parse_timeout(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "3", "s", "0s", "-3s", "soon", "3 parsecs", "99999999999999999999h"] {
            assert_eq!(parse_timeout(text), None, "{text}");
        }
    }

    #[test]
    fn content_type_may_have_parameters_and_any_case() {
        let with = |kind: &'static str| HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
        for kind in ["application/json", "application/json; charset=utf-8", "Application/JSON"] {
            assert_eq!(check(&with(kind), None), Ok(DEFAULT_TIMEOUT), "{kind}");
        }
        for kind in ["text/plain", "application/json-patch+json", "", "application/x-www-form-urlencoded"] {
            assert_eq!(check(&with(kind), None), Err(Rejection::NotJson), "{kind}");
        }
        assert_eq!(check(&HeaderMap::new(), None), Err(Rejection::NotJson));
    }

    #[test]
    fn the_timeout_is_found_among_other_parameters() {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        assert_eq!(check(&headers, Some("a=b&timeout=3s&c")), Ok(Duration::from_secs(3)));
        assert_eq!(check(&headers, Some("a=b")), Ok(DEFAULT_TIMEOUT));
        assert_eq!(check(&headers, Some("timeout=")), Err(Rejection::BadTimeout));
    }
}
