//! The admission router: bytes in, bytes out, within a deadline.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tracing::{Instrument, Span};

use super::body::{Held, Room, discard};
use super::refusal::sentence;
use super::{Endpoint, Limits, Refusal, Reply, Reviewer};
use crate::serve::report::metrics::{Metrics, ReviewEnd};
use crate::serve::traces;

/// The timeout of a request that names none; the API server's own default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest timeout; the API server allows no longer one.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// The way back takes time too: the reviewer is asked to be ready a tenth of the timeout early, at most this much. An
/// answer that comes a moment too late is a failed call; an undecided one that comes in time is an answer.
const MAX_MARGIN: Duration = Duration::from_millis(200);

/// Routes `POST /validate` and `POST /mutate` to the reviewer. Needs no socket.
pub fn router(reviewer: Arc<dyn Reviewer>, limits: &Limits, metrics: Arc<Metrics>) -> Router {
    let room = Room::new(limits.bytes_in_flight, metrics.body_bytes().clone());
    let desk = Desk { reviewer, room, body_timeout: limits.body, metrics };
    let validate = |State(desk): State<Desk>, request: Request| desk.review(Endpoint::Validate, request);
    let mutate = |State(desk): State<Desk>, request: Request| desk.review(Endpoint::Mutate, request);
    Router::new()
        .route("/validate", post(validate))
        .route("/mutate", post(mutate))
        .method_not_allowed_fallback(|State(desk): State<Desk>| async move { desk.refuse(Refusal::WrongMethod) })
        .fallback(|State(desk): State<Desk>| async move { desk.refuse(Refusal::UnknownPath) })
        .with_state(desk)
}

/// What the handler needs.
#[derive(Clone)]
struct Desk {
    reviewer: Arc<dyn Reviewer>,
    room: Room,
    body_timeout: Duration,
    metrics: Arc<Metrics>,
}

/// A request that may be reviewed.
struct Taken {
    body: Bytes,
    held: Held,
    /// When the caller stops listening.
    last: Instant,
    /// When the reviewer must have answered, a little earlier.
    deadline: Instant,
}

impl Desk {
    /// The one handler. It looks at nothing that the body says.
    async fn review(self, endpoint: Endpoint, request: Request) -> Response {
        let metrics = Arc::clone(&self.metrics);
        let mut clock = metrics.review(endpoint);
        let span = traces::review(endpoint, request.headers());
        let answered = match self.take(request).await {
            Ok(taken) => self.ask(endpoint, taken, span).await,
            Err(refusal) => Err(refusal),
        };
        match answered {
            Ok((reply, end)) => {
                clock.end(end);
                reply.into_response()
            }
            Err(refusal) => {
                clock.end(ReviewEnd::Refused);
                self.refuse(refusal)
            }
        }
    }

    /// Checks the head and reads the body.
    async fn take(&self, request: Request) -> Result<Taken, Refusal> {
        let arrived = Instant::now();
        let (head, body) = request.into_parts();
        let timeout = match check(&head.headers, head.uri.query()) {
            Ok(timeout) => timeout,
            Err(refusal) => {
                discard(body, arrived + self.body_timeout).await;
                return Err(refusal);
            }
        };
        let last = arrived + timeout;
        let deadline = last - (timeout / 10).min(MAX_MARGIN);
        let (body, held) = self.room.read(body, deadline.min(arrived + self.body_timeout)).await?;
        Ok(Taken { body, held, last, deadline })
    }

    /// Runs the reviewer in a task of its own, where a panic is an error value.
    async fn ask(&self, endpoint: Endpoint, taken: Taken, span: Span) -> Result<(Reply, ReviewEnd), Refusal> {
        let Taken { body, held, last, deadline } = taken;
        let reviewer = Arc::clone(&self.reviewer);
        let kept = body.clone();
        let review = async move {
            let _held = held;
            reviewer.answer(endpoint, body, deadline).await
        };
        let mut task = Task(tokio::spawn(review.instrument(span)));
        match timeout_at(last, &mut task.0).await {
            Ok(Ok(reply)) => Ok((reply, ReviewEnd::Answered)),
            Ok(Err(_)) => {
                self.metrics.panicked(endpoint);
                tracing::error!(?endpoint, "a review panicked");
                let stand_in = AssertUnwindSafe(|| self.reviewer.panicked(endpoint, &kept));
                catch_unwind(stand_in).map(|reply| (reply, ReviewEnd::Panicked)).map_err(|_| Refusal::NoAnswer)
            }
            Err(_) => Err(Refusal::ReviewTooSlow),
        }
    }

    fn refuse(&self, refusal: Refusal) -> Response {
        self.metrics.refused(refusal);
        tracing::debug!(?refusal, "refused a request without a review");
        refusal.into_response()
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        if self.status == StatusCode::OK {
            let kind = HeaderValue::from_static("application/json");
            ([(CONTENT_TYPE, kind)], Body::from(self.body)).into_response()
        } else {
            sentence(self.status, self.body)
        }
    }
}

/// A task that ends when nobody waits for it any more: the caller has gone, so the answer would be for no one.
struct Task(JoinHandle<Reply>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reads content type and timeout.
fn check(headers: &HeaderMap, query: Option<&str>) -> Result<Duration, Refusal> {
    let essence = |kind: &HeaderValue| {
        let text = kind.to_str().unwrap_or_default();
        text.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
    };
    if !headers.get(CONTENT_TYPE).is_some_and(essence) {
        return Err(Refusal::NotJson);
    }
    match query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("timeout="))) {
        Some(text) => parse_timeout(text).ok_or(Refusal::BadTimeout),
        None => Ok(DEFAULT_TIMEOUT),
    }
}

/// Reads a Go duration (`3s`, `2500ms`, `1m30s`), cut to [`MAX_TIMEOUT`]. `None` if it is none, or not positive.
fn parse_timeout(text: &str) -> Option<Duration> {
    // A superset of what Go prints: units from h to ns, fractions of the last one.
    let duration = text.parse::<jiff::SignedDuration>().ok()?;
    let duration = Duration::try_from(duration).ok().filter(|duration| !duration.is_zero())?;
    Some(duration.min(MAX_TIMEOUT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_go_writes_them() {
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
            assert_eq!(check(&with(kind), None), Err(Refusal::NotJson), "{kind}");
        }
        assert_eq!(check(&HeaderMap::new(), None), Err(Refusal::NotJson));
    }

    #[test]
    fn the_timeout_is_found_among_other_parameters() {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        assert_eq!(check(&headers, Some("a=b&timeout=3s&c")), Ok(Duration::from_secs(3)));
        assert_eq!(check(&headers, Some("a=b")), Ok(DEFAULT_TIMEOUT));
        assert_eq!(check(&headers, Some("timeout=")), Err(Refusal::BadTimeout));
    }
}
