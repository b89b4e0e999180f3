//! OpenTelemetry spans: one for each review, a child of the API server's span if there is one, and below it one for each
//! query to the cluster. Spans hold what the log line of a decision holds, and never data of an object.
//!
//! Without the feature `otel` nothing here has an effect.

#[cfg(feature = "otel")]
mod sending;
#[cfg(feature = "otel")]
mod world;

use http::HeaderMap;
use interlock_engine::decision::Decision;
use tracing::Span;

use super::https::Endpoint;
#[cfg(feature = "otel")]
use sending::TARGET;

#[cfg(feature = "otel")]
pub(crate) use sending::{Sending, without_spans};
#[cfg(feature = "otel")]
pub(crate) use world::TracedWorld;

/// Sends no spans.
#[cfg(not(feature = "otel"))]
#[derive(Debug)]
pub(crate) struct Sending;

#[cfg(not(feature = "otel"))]
impl Sending {
    /// Starts nothing.
    ///
    /// # Errors
    /// Never, but with the feature `otel` it may fail.
    pub(crate) fn start(_: &tokio::runtime::Handle) -> anyhow::Result<Self> {
        Ok(Self)
    }

    /// Ends nothing.
    pub(crate) fn finish(self) {}
}

/// The longest value, in bytes: a queue of spans is held in memory, and any client of the port chooses the values. No name
/// in Kubernetes is longer.
#[cfg(feature = "otel")]
const MAX_VALUE_BYTES: usize = 253;

/// The span of a request; ends when its last copy is dropped.
#[cfg(feature = "otel")]
#[must_use]
pub(crate) fn review(endpoint: Endpoint, headers: &HeaderMap) -> Span {
    use tracing::field::Empty;
    let name = match endpoint {
        Endpoint::Validate => "validate",
        Endpoint::Mutate => "mutate",
    };
    let span = tracing::info_span!(
        target: TARGET, "review", otel.name = name, otel.kind = "server", uid = Empty, operation = Empty, resource = Empty,
        namespace = Empty, name = Empty, user = Empty, release = Empty, verdict = Empty, rules = Empty, overridden = Empty,
        ticket = Empty, dry_run = Empty,
    );
    sending::continue_from(&span, headers);
    span
}

/// Records the decision in the span of the review.
#[cfg(feature = "otel")]
pub(crate) fn decided(decision: &Decision) {
    let span = Span::current();
    if span.is_disabled() {
        return;
    }
    let rules: Vec<_> = decision.findings.iter().map(|finding| finding.rule.as_str()).collect();
    let release = decision.release.as_ref().map(ToString::to_string).unwrap_or_default();
    let (overridden, ticket) = (decision.overrides(), decision.tickets());
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
        ("overridden", &overridden),
        ("ticket", &ticket),
    ] {
        span.record(field, &value[..value.floor_char_boundary(MAX_VALUE_BYTES)]);
    }
    span.record("dry_run", decision.dry_run);
}

/// No span.
#[cfg(not(feature = "otel"))]
#[must_use]
pub(crate) fn review(_: Endpoint, _: &HeaderMap) -> Span {
    Span::none()
}

/// Records nothing.
#[cfg(not(feature = "otel"))]
pub(crate) fn decided(_: &Decision) {}
