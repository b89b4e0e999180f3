//! The metrics, as a value with its own registry: a test makes one, runs something, and reads it.
//!
//! Labels come from closed enums only. A label that carried a name or a message would let anyone who can send a
//! request fill the memory of this process and of the monitoring behind it.

mod certificates;
mod decisions;
mod label;
mod policies;
mod process;
mod scans;

use std::fmt;
use std::time::Instant;

pub use certificates::{CertificateMetrics, Done, Role, Trouble};
pub use decisions::{Sink, Write};
pub use policies::{PolicyMetrics, Reloaded};
pub use scans::ScanMetrics;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::serve::https::{Endpoint, Refusal};
use decisions::Decisions;
use process::Process;

/// The content type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Bounds of the review histogram, in seconds. An ordinary review takes tens of microseconds and the largest possible
/// record a few milliseconds, so half of the buckets lie below one millisecond; 30 s is the longest timeout that the
/// API server allows.
const REVIEW_BUCKETS: [f64; 18] = [
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
    3.0, 10.0, 30.0,
];

/// Everything that is counted, with the registry that it is read from.
///
/// A family added here is a field, a line in [`Metrics::new`], and a label type whose members are closed enums.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    process: Registry,
    ready: Gauge,
    leader: Gauge,
    reviews: Family<ReviewLabels, Histogram, fn() -> Histogram>,
    refusals: Family<RefusalLabels, Counter>,
    panics: Family<EndpointLabels, Counter>,
    connections: Family<PortLabels, Gauge>,
    cuts: Family<CutLabels, Counter>,
    accept_errors: Family<PortLabels, Counter>,
    handshake_failures: Family<HandshakeLabels, Counter>,
    body_bytes: Gauge,
    policies: PolicyMetrics,
    scans: ScanMetrics,
    certificates: CertificateMetrics,
    told: Decisions,
}

/// How the handling of a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReviewEnd {
    /// The reviewer answered.
    Answered,
    /// The reviewer panicked, and its stand-in answered.
    Panicked,
    /// The request was refused before the reviewer saw it, or the reviewer took too long.
    Refused,
    /// The client went away first.
    Abandoned,
}

/// Which of the two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Port {
    /// HTTPS, for the API server.
    Admission,
    /// Plain HTTP, for probes and metrics.
    Admin,
}

/// Why a connection was closed by us outside its ordinary life (idle timeouts and clean shutdowns are not counted).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cut {
    /// Every place was taken by a connection in the middle of a request.
    Full,
    /// It was waiting, and had to make room for a new one.
    Evicted,
    /// The head of a request was begun and not finished in time.
    Header,
    /// The client did not take its answer.
    Write,
    /// The shutdown ran out of time, or was aborted.
    Shutdown,
}

/// Why a TLS handshake came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandshakeFailure {
    /// Not finished in time.
    Timeout,
    /// The client speaks something else, for example plain HTTP.
    NotTls,
    /// The two sides share no version, suite or protocol, or the client did not accept the certificate.
    Protocol,
    /// The connection broke.
    Broken,
}

impl Metrics {
    /// A fresh registry in which everything stands at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("interlock");
        let mut process = Registry::default();
        process.register_collector(Box::new(Process::starting()));
        let metrics = Self {
            process,
            ready: Gauge::default(),
            leader: Gauge::default(),
            reviews: Family::new_with_constructor(|| Histogram::new(REVIEW_BUCKETS)),
            refusals: Family::default(),
            panics: Family::default(),
            connections: Family::default(),
            cuts: Family::default(),
            accept_errors: Family::default(),
            handshake_failures: Family::default(),
            body_bytes: Gauge::default(),
            policies: PolicyMetrics::default(),
            scans: ScanMetrics::default(),
            certificates: CertificateMetrics::default(),
            told: Decisions::register(&mut registry),
            registry: Registry::default(),
        };
        registry.register_with_unit(
            "review_duration",
            "Time from the head of a request to its answer, reading the body included",
            Unit::Seconds,
            metrics.reviews.clone(),
        );
        registry.register("http_refusals", "Requests refused without a review", metrics.refusals.clone());
        registry.register("panics", "Reviews that panicked and were answered all the same", metrics.panics.clone());
        registry.register("connections", "Open connections", metrics.connections.clone());
        registry.register("connections_cut", "Connections closed outside their ordinary life", metrics.cuts.clone());
        registry.register("accept_errors", "Failures to accept a connection", metrics.accept_errors.clone());
        registry.register(
            "tls_handshake_failures",
            "TLS handshakes that came to nothing",
            metrics.handshake_failures.clone(),
        );
        registry.register_with_unit(
            "bodies_in_flight",
            "Request bodies held in memory",
            Unit::Bytes,
            metrics.body_bytes.clone(),
        );
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "What is running", version);
        registry.register("ready", "Whether this replica says that it is ready", metrics.ready.clone());
        registry.register("leader", "Whether this replica does what one does for all", metrics.leader.clone());
        // What is to be told of the first time it happens must have stood at zero before.
        for endpoint in [Endpoint::Validate, Endpoint::Mutate] {
            metrics.panics.get_or_create(&EndpointLabels { endpoint }).inc_by(0);
        }
        metrics.policies.register(&mut registry);
        metrics.scans.register(&mut registry);
        metrics.certificates.register(&mut registry);
        Self { registry, ..metrics }
    }

    /// The whole registry as OpenMetrics text ([`CONTENT_TYPE`]).
    ///
    /// # Errors
    /// Only when a metric cannot be formatted, which the formatter of a `String` does not do by itself.
    pub fn render(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        encode_registry(&mut text, &self.process)?;
        encode_eof(&mut text)?;
        Ok(text)
    }

    /// Says whether this replica is ready.
    pub fn ready(&self, ready: bool) {
        self.ready.set(ready.into());
    }

    /// Says whether this replica leads.
    pub fn leads(&self, leads: bool) {
        self.leader.set(leads.into());
    }

    /// Starts the clock of one request. Whatever way the handler is left by, the guard records the request once.
    #[must_use]
    pub fn review(&self, endpoint: Endpoint) -> ReviewClock<'_> {
        ReviewClock { metrics: self, endpoint, end: ReviewEnd::Abandoned, started: Instant::now() }
    }

    /// Counts a request that was refused without a review.
    pub fn refused(&self, reason: Refusal) {
        self.refusals.get_or_create(&RefusalLabels { reason }).inc();
    }

    /// Counts a review that panicked.
    pub fn panicked(&self, endpoint: Endpoint) {
        self.panics.get_or_create(&EndpointLabels { endpoint }).inc();
    }

    /// Counts a connection that was closed outside its ordinary life.
    pub fn cut(&self, reason: Cut) {
        self.cuts.get_or_create(&CutLabels { reason }).inc();
    }

    /// Counts a failure to accept.
    pub fn accept_failed(&self, port: Port) {
        self.accept_errors.get_or_create(&PortLabels { port }).inc();
    }

    /// Counts a handshake that came to nothing.
    pub fn handshake_failed(&self, reason: HandshakeFailure) {
        self.handshake_failures.get_or_create(&HandshakeLabels { reason }).inc();
    }

    /// The number of open connections of a port.
    #[must_use]
    pub fn connections(&self, port: Port) -> Gauge {
        self.connections.get_or_create(&PortLabels { port }).clone()
    }

    /// Those of scans.
    #[must_use]
    pub fn scans(&self) -> &ScanMetrics {
        &self.scans
    }

    /// Those of the certificates.
    #[must_use]
    pub fn certificates(&self) -> &CertificateMetrics {
        &self.certificates
    }

    /// Those of the policies in force.
    #[must_use]
    pub fn policies(&self) -> &PolicyMetrics {
        &self.policies
    }

    /// The bytes of request bodies held in memory.
    #[must_use]
    pub fn body_bytes(&self) -> &Gauge {
        &self.body_bytes
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Records one request in the histogram when it is dropped.
#[derive(Debug)]
pub struct ReviewClock<'a> {
    metrics: &'a Metrics,
    endpoint: Endpoint,
    end: ReviewEnd,
    started: Instant,
}

impl ReviewClock<'_> {
    /// Says how the request ended; without this it counts as abandoned.
    pub fn end(&mut self, end: ReviewEnd) {
        self.end = end;
    }
}

impl Drop for ReviewClock<'_> {
    fn drop(&mut self) {
        let labels = ReviewLabels { endpoint: self.endpoint, end: self.end };
        self.metrics.reviews.get_or_create(&labels).observe(self.started.elapsed().as_secs_f64());
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReviewLabels {
    endpoint: Endpoint,
    end: ReviewEnd,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    reason: Refusal,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndpointLabels {
    endpoint: Endpoint,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PortLabels {
    port: Port,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CutLabels {
    reason: Cut,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HandshakeLabels {
    reason: HandshakeFailure,
}

label::named!(Endpoint { Validate => "validate", Mutate => "mutate" });
label::named!(ReviewEnd {
    Answered => "answered",
    Panicked => "panicked",
    Refused => "refused",
    Abandoned => "abandoned",
});
label::named!(Port { Admission => "admission", Admin => "admin" });
label::named!(Cut {
    Full => "full",
    Evicted => "evicted",
    Header => "header",
    Write => "write",
    Shutdown => "shutdown",
});
label::named!(HandshakeFailure {
    Timeout => "timeout",
    NotTls => "not_tls",
    Protocol => "protocol",
    Broken => "broken",
});
label::named!(Refusal {
    NotJson => "not_json",
    BadTimeout => "bad_timeout",
    TooLarge => "too_large",
    BodyTooSlow => "body_too_slow",
    BodyBroken => "body_broken",
    NoMemory => "no_memory",
    ReviewTooSlow => "review_too_slow",
    NoAnswer => "no_answer",
    UnknownPath => "unknown_path",
    WrongMethod => "wrong_method",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_is_recorded_whichever_way_the_handler_is_left() {
        let metrics = Metrics::new();
        metrics.review(Endpoint::Validate).end(ReviewEnd::Answered);
        drop(metrics.review(Endpoint::Mutate));

        let text = metrics.render().unwrap();
        assert!(
            text.contains(r#"interlock_review_duration_seconds_count{endpoint="validate",end="answered"} 1"#),
            "{text}"
        );
        assert!(
            text.contains(r#"interlock_review_duration_seconds_count{endpoint="mutate",end="abandoned"} 1"#),
            "{text}"
        );
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn buckets_rise_and_reach_below_a_millisecond() {
        assert!(REVIEW_BUCKETS.is_sorted());
        assert!(REVIEW_BUCKETS.iter().filter(|bound| **bound < 0.001).count() >= 4);
    }
}
