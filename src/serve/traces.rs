//! Spans of reviews, for OpenTelemetry: one a review, a child of the API server's own where that sends one, and one below it
//! for each question to the cluster. They hold what the log line of a decision holds, and never any of an object.
//!
//! Without the feature `otel` there are none, and what is here comes to nothing.

#[cfg(feature = "otel")]
mod sending;

use http::HeaderMap;
use tracing::Span;

use super::https::Endpoint;
use crate::engine::decision::Decision;
use crate::engine::evidence::Query;

#[cfg(feature = "otel")]
pub use sending::{Sending, without_spans};

/// Nothing that sends spans.
#[cfg(not(feature = "otel"))]
#[derive(Debug)]
pub struct Sending;

#[cfg(not(feature = "otel"))]
impl Sending {
    /// Starts nothing.
    ///
    /// # Errors
    /// Never; the one that sends may fail.
    pub fn start(_: &tokio::runtime::Handle) -> anyhow::Result<Self> {
        Ok(Self)
    }

    /// Ends nothing.
    pub fn finish(self) {}
}

/// Of every span, so that the log leaves them out and nothing else is sent.
#[cfg(feature = "otel")]
const TARGET: &str = "interlock::traces";

/// The longest value, in bytes: a queue of spans is held in memory, and whoever reaches the port chooses the values. No name
/// in Kubernetes is longer.
#[cfg(feature = "otel")]
const LONGEST: usize = 253;

/// The span of a request to one half of the webhook; ends when the last copy of it is dropped.
#[cfg(feature = "otel")]
#[must_use]
pub fn review(endpoint: Endpoint, headers: &HeaderMap) -> Span {
    use tracing::field::Empty;
    let name = match endpoint {
        Endpoint::Validate => "validate",
        Endpoint::Mutate => "mutate",
    };
    let span = tracing::info_span!(
        target: TARGET, "review", otel.name = name, otel.kind = "server", uid = Empty, operation = Empty, resource = Empty,
        namespace = Empty, name = Empty, user = Empty, release = Empty, verdict = Empty, rules = Empty, dry_run = Empty,
    );
    sending::continue_from(&span, headers);
    span
}

/// The span of a question to the cluster, below that of the review.
#[cfg(feature = "otel")]
#[must_use]
pub fn question(query: &Query) -> Span {
    tracing::info_span!(target: TARGET, "question", otel.name = query.kind(), otel.kind = "client")
}

/// Tells the span of the review what came of it.
#[cfg(feature = "otel")]
pub fn decided(decision: &Decision) {
    let span = Span::current();
    if span.is_disabled() {
        return;
    }
    let rules: Vec<_> = decision.findings.iter().map(|finding| finding.rule.as_str()).collect();
    let release = decision.release.as_ref().map(ToString::to_string).unwrap_or_default();
    for (field, value) in [
        ("uid", decision.uid.as_str()),
        ("operation", decision.operation.as_str()),
        ("resource", &decision.resource),
        ("namespace", &decision.namespace),
        ("name", &decision.name),
        ("user", &decision.user),
        ("release", &release),
        ("verdict", decision.verdict().as_str()),
        ("rules", &rules.join(",")),
    ] {
        span.record(field, &value[..value.floor_char_boundary(LONGEST)]);
    }
    span.record("dry_run", decision.dry_run);
}

/// No span.
#[cfg(not(feature = "otel"))]
#[must_use]
pub fn review(_: Endpoint, _: &HeaderMap) -> Span {
    Span::none()
}

/// No span.
#[cfg(not(feature = "otel"))]
#[must_use]
pub fn question(_: &Query) -> Span {
    Span::none()
}

/// Tells nobody.
#[cfg(not(feature = "otel"))]
pub fn decided(_: &Decision) {}
