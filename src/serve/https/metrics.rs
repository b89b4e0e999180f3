//! Metrics of both ports: reviews, rejections, connections.

use std::time::Instant;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::endpoint::Endpoint;
use super::rejection::Rejection;
use crate::serve::openmetrics;

/// Bounds of the review histogram, in seconds. An ordinary review takes tens of microseconds, and the largest possible record a few
/// milliseconds, so a third of the buckets end at 1 ms or below. The API server allows timeouts of at most 30 s.
const REVIEW_BUCKETS: [f64; 18] = [
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
    3.0, 10.0, 30.0,
];

/// Metrics of both ports.
#[derive(Debug)]
pub struct HttpsMetrics {
    reviews: Family<ReviewLabels, Histogram, fn() -> Histogram>,
    of_strangers: Counter,
    rejections: Family<RejectionLabels, Counter>,
    panics: Family<EndpointLabels, Counter>,
    connections: Family<PortLabels, Gauge>,
    cuts: Family<CutLabels, Counter>,
    accept_errors: Family<PortLabels, Counter>,
    handshake_failures: Family<HandshakeLabels, Counter>,
    body_bytes: Gauge,
}

/// How the handling of a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReviewEnd {
    /// The reviewer answered.
    Answered,
    /// The reviewer panicked, and its stand-in answered.
    Panicked,
    /// The reviewer did not finish in time, and its stand-in answered.
    Late,
    /// The request was rejected before the reviewer saw it.
    Rejected,
    /// The client disconnected first. The decision, if any, is not reported.
    Unanswered,
}

/// Which of the two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Port {
    /// HTTPS, for the API server.
    Admission,
    /// Plain HTTP, for probes and metrics.
    Admin,
}

/// Why the server closed a connection early. Idle timeouts and clean shutdowns are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cut {
    /// Every slot had a request that waits for its answer.
    Full,
    /// The connection had no complete request, and a new connection needed its slot.
    Evicted,
    /// The head of a request did not arrive in time.
    Header,
    /// The client did not read its answer.
    Write,
    /// The shutdown ran out of time, or was aborted.
    Shutdown,
}

/// Why a TLS handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandshakeFailure {
    /// The handshake did not finish in time.
    Timeout,
    /// The client uses another protocol, for example plain HTTP.
    NotTls,
    /// The two sides share no version, suite or protocol, or the client did not accept the certificate.
    Protocol,
    /// The connection broke.
    Broken,
}

impl HttpsMetrics {
    /// Metrics that are all zero.
    #[must_use]
    pub fn new() -> Self {
        let metrics = Self {
            reviews: Family::new_with_constructor(|| Histogram::new(REVIEW_BUCKETS)),
            of_strangers: Counter::default(),
            rejections: Family::default(),
            panics: Family::default(),
            connections: Family::default(),
            cuts: Family::default(),
            accept_errors: Family::default(),
            handshake_failures: Family::default(),
            body_bytes: Gauge::default(),
        };
        // An alert on the first panic needs a series that was zero before.
        for endpoint in [Endpoint::Validate, Endpoint::Mutate] {
            metrics.panics.get_or_create(&EndpointLabels { endpoint }).inc_by(0);
        }
        metrics
    }

    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Time from the head of a request to its answer, reading the body included";
        registry.register_with_unit("review_duration", help, Unit::Seconds, self.reviews.clone());
        let help = "Requests of peers that are not known to carry the calls of the API server";
        registry.register("reviews_of_strangers", help, self.of_strangers.clone());
        registry.register("http_refusals", "Requests rejected without a review", self.rejections.clone());
        registry.register("panics", "Reviews that panicked and were answered nevertheless", self.panics.clone());
        registry.register("connections", "Open connections", self.connections.clone());
        registry.register("connections_cut", "Connections that the server closed early", self.cuts.clone());
        registry.register("accept_errors", "Failures to accept a connection", self.accept_errors.clone());
        registry.register("tls_handshake_failures", "TLS handshakes that failed", self.handshake_failures.clone());
        let help = "Request bodies held in memory";
        registry.register_with_unit("bodies_in_flight", help, Unit::Bytes, self.body_bytes.clone());
    }

    /// Starts the clock of one request. The guard records the request once, even if the handler is cancelled.
    #[must_use]
    pub fn review(&self, endpoint: Endpoint) -> ReviewClock<'_> {
        ReviewClock { metrics: self, endpoint, end: ReviewEnd::Unanswered, started: Instant::now() }
    }

    /// Counts a request of a peer that is not known to carry API server calls.
    pub fn came_from_stranger(&self) {
        self.of_strangers.inc();
    }

    /// Counts a request that was rejected without a review.
    pub fn rejected(&self, reason: Rejection) {
        self.rejections.get_or_create(&RejectionLabels { reason }).inc();
    }

    /// Counts a review that panicked.
    pub fn panicked(&self, endpoint: Endpoint) {
        self.panics.get_or_create(&EndpointLabels { endpoint }).inc();
    }

    /// Counts a connection that the server closed early.
    pub fn cut(&self, reason: Cut) {
        self.cuts.get_or_create(&CutLabels { reason }).inc();
    }

    /// Counts a failed accept.
    pub fn accept_failed(&self, port: Port) {
        self.accept_errors.get_or_create(&PortLabels { port }).inc();
    }

    /// Counts a handshake that failed.
    pub fn handshake_failed(&self, reason: HandshakeFailure) {
        self.handshake_failures.get_or_create(&HandshakeLabels { reason }).inc();
    }

    /// The number of open connections of a port.
    #[must_use]
    pub fn connections(&self, port: Port) -> Gauge {
        self.connections.get_or_create(&PortLabels { port }).clone()
    }

    /// The bytes of request bodies held in memory.
    #[must_use]
    pub fn body_bytes(&self) -> &Gauge {
        &self.body_bytes
    }
}

impl Default for HttpsMetrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Records one request in the histogram when it is dropped.
#[derive(Debug)]
pub struct ReviewClock<'a> {
    metrics: &'a HttpsMetrics,
    endpoint: Endpoint,
    end: ReviewEnd,
    started: Instant,
}

impl ReviewClock<'_> {
    /// Sets how the request ended. Without this call the request counts as unanswered.
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
struct RejectionLabels {
    reason: Rejection,
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

openmetrics::named!(Endpoint { Validate => "validate", Mutate => "mutate" });
openmetrics::named!(ReviewEnd {
    Answered => "answered",
    Panicked => "panicked",
    Late => "late",
    Rejected => "refused",
    Unanswered => "unanswered",
});
openmetrics::named!(Port { Admission => "admission", Admin => "admin" });
openmetrics::named!(Cut {
    Full => "full",
    Evicted => "evicted",
    Header => "header",
    Write => "write",
    Shutdown => "shutdown",
});
openmetrics::named!(HandshakeFailure {
    Timeout => "timeout",
    NotTls => "not_tls",
    Protocol => "protocol",
    Broken => "broken",
});
openmetrics::named!(Rejection {
    NotJson => "not_json",
    BadTimeout => "bad_timeout",
    TooLarge => "too_large",
    BodyTooSlow => "body_too_slow",
    BodyBroken => "body_broken",
    NoMemory => "no_memory",
    NoAnswer => "no_answer",
    UnknownPath => "unknown_path",
    WrongMethod => "wrong_method",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_is_recorded_however_its_handler_ends() {
        let metrics = HttpsMetrics::new();
        metrics.review(Endpoint::Validate).end(ReviewEnd::Answered);
        drop(metrics.review(Endpoint::Mutate));

        let text = openmetrics::rendered(|registry| metrics.register(registry));
        assert!(
            text.contains(r#"interlock_review_duration_seconds_count{endpoint="validate",end="answered"} 1"#),
            "{text}"
        );
        assert!(
            text.contains(r#"interlock_review_duration_seconds_count{endpoint="mutate",end="unanswered"} 1"#),
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
