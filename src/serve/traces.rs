//! OpenTelemetry spans. Each review has a span, as a child of the API server's span if there is one. Each query to the cluster has a
//! span below that of the review. Spans have the fields of a decision's log line, and never data of an object.
//!
//! Without the feature `otel`, nothing here has an effect.

#[cfg(feature = "otel")]
mod sending;
#[cfg(feature = "otel")]
mod world;

use http::HeaderMap;
use interlock_engine::decision::Decision;
use tracing::Span;

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
    /// Never. With the feature `otel`, this may fail.
    pub(crate) fn start(
        _: &tokio::runtime::Handle,
        _: Option<&crate::cluster_name::ClusterName>,
    ) -> anyhow::Result<Self> {
        Ok(Self)
    }

    /// Ends nothing.
    pub(crate) fn finish(self) {}
}

/// The longest value, in bytes. No name in Kubernetes is longer. There is a limit because the queue of spans is in memory, and any client of
/// the port can choose the values.
#[cfg(feature = "otel")]
const MAX_VALUE_BYTES: usize = 253;

/// The span of a request to an endpoint. Ends when its last clone is dropped.
#[cfg(feature = "otel")]
#[must_use]
pub(crate) fn review(endpoint: &'static str, headers: &HeaderMap) -> Span {
    use tracing::field::Empty;
    let span = tracing::info_span!(
        target: TARGET, "review", otel.name = endpoint, otel.kind = "server", uid = Empty, operation = Empty, resource = Empty,
        k8s.namespace.name = Empty, name = Empty, user.name = Empty, release = Empty, verdict = Empty, rules = Empty,
        overridden = Empty, ticket = Empty, dry_run = Empty,
    );
    sending::continue_from(&span, headers);
    span
}

/// Adds the decision to the span of the review.
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
        ("k8s.namespace.name", &decision.namespace),
        ("name", &decision.name),
        ("user.name", &decision.user),
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
pub(crate) fn review(_: &'static str, _: &HeaderMap) -> Span {
    Span::none()
}

/// Does nothing.
#[cfg(not(feature = "otel"))]
pub(crate) fn decided(_: &Decision) {}
