//! Why a request gets a sentence instead of a review.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};

use crate::serve::openmetrics::label;

label! {
    /// Why a request gets a sentence instead of a review. The API server treats every rejection as a failed call and applies the failure
    /// policy of the webhook configuration.
    pub enum Rejection: "reason" {
        /// The content type is not `application/json`.
        NotJson => "not_json",
        /// `?timeout=` is not a positive duration.
        BadTimeout => "bad_timeout",
        /// The body is longer than [`BODY_BYTES`](super::limits::BODY_BYTES).
        TooLarge => "too_large",
        /// The body did not arrive in time.
        BodyTooSlow => "body_too_slow",
        /// The connection broke before the end of the body.
        BodyBroken => "body_broken",
        /// Other bodies use the memory. The API server retries within its timeout only if the answer has a `Retry-After`.
        NoMemory => "no_memory",
        /// The review has no answer, and its stand-in panicked.
        NoAnswer => "no_answer",
        /// The path is neither `/validate` nor `/mutate`.
        UnknownPath => "unknown_path",
        /// The method is not POST.
        WrongMethod => "wrong_method",
    }
}

impl Rejection {
    /// The status of the answer.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::BadTimeout | Self::BodyBroken => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::NoMemory => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoAnswer => StatusCode::INTERNAL_SERVER_ERROR,
            Self::UnknownPath => StatusCode::NOT_FOUND,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
        }
    }

    /// The sentence for the caller.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::NotJson => "send an AdmissionReview with content-type application/json",
            Self::BadTimeout => "timeout in the query must be a positive duration such as 3s or 2500ms",
            Self::TooLarge => "the body is larger than the limit of 8 MiB, which is above what an API server sends",
            Self::BodyTooSlow => "the body did not arrive in time",
            Self::BodyBroken => "the connection broke before the end of the body",
            Self::NoMemory => "too many large reviews at the same time; try again in a second",
            Self::NoAnswer => "the review failed and has no answer; see the log of the webhook",
            Self::UnknownPath => "not found; send reviews to /validate or /mutate",
            Self::WrongMethod => "send an AdmissionReview with POST",
        }
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let mut response = sentence(self.status(), format!("{}\n", self.sentence()).into());
        if self == Self::NoMemory {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// A status with a text for people.
pub(super) fn sentence(status: StatusCode, text: Vec<u8>) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    (status, [(CONTENT_TYPE, kind)], text).into_response()
}
