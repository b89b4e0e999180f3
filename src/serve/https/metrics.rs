//! Metrics of both ports: reviews, rejections, connections.

use std::time::Instant;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::endpoint::Endpoint;
use super::rejection::Rejection;
use crate::serve::openmetrics::{from_zero, label, metrics};

/// Bounds of the review histogram, in seconds. An ordinary review takes tens of microseconds, and the largest possible record a few
/// milliseconds, so a third of the buckets end at 1 ms or below. The API server allows timeouts of at most 30 s.
const REVIEW_BUCKETS: [f64; 18] = [
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
    3.0, 10.0, 30.0,
];

metrics! {
    /// Metrics of both ports.
    pub struct HttpsMetrics {
        /// Time from the head of a request to its answer, reading the body included
        review_duration: Family<(Endpoint, ReviewEnd), Histogram> =
            Family::new_with_constructor(|| Histogram::new(REVIEW_BUCKETS)), Seconds;
        /// Requests of peers that are not known to carry the calls of the API server
        reviews_of_strangers: Counter;
        /// Requests rejected without a review
        http_refusals: Family<Rejection, Counter>;
        /// Reviews that panicked and were answered nevertheless
        panics: Family<Endpoint, Counter> = from_zero([Endpoint::Validate, Endpoint::Mutate]);
        /// Open connections
        connections: Family<Port, Gauge>;
        /// Connections that the server closed early
        connections_cut: Family<Cut, Counter>;
        /// Failures to accept a connection
        accept_errors: Family<Port, Counter>;
        /// TLS handshakes that failed
        tls_handshake_failures: Family<HandshakeFailure, Counter>;
        /// Request bodies held in memory
        bodies_in_flight: Gauge, Bytes;
    }
}

label! {
    /// How the handling of a request ended.
    pub enum ReviewEnd: "end" {
        /// The reviewer answered.
        Answered => "answered",
        /// The reviewer panicked, and its stand-in answered.
        Panicked => "panicked",
        /// The reviewer did not finish in time, and its stand-in answered.
        Late => "late",
        /// The request was rejected before the reviewer saw it.
        Rejected => "refused",
        /// The client disconnected first. The decision, if any, is not reported.
        Unanswered => "unanswered",
    }
}

label! {
    /// Which of the two ports.
    pub enum Port: "port" {
        /// HTTPS, for the API server.
        Admission => "admission",
        /// Plain HTTP, for probes and metrics.
        Admin => "admin",
    }
}

label! {
    /// Why the server closed a connection early. Idle timeouts and clean shutdowns are not counted.
    pub enum Cut: "reason" {
        /// Every slot had a request that waits for its answer.
        Full => "full",
        /// The connection had no complete request, and a new connection needed its slot.
        Evicted => "evicted",
        /// The head of a request did not arrive in time.
        Header => "header",
        /// The client did not read its answer.
        Write => "write",
        /// The shutdown ran out of time, or was aborted.
        Shutdown => "shutdown",
    }
}

label! {
    /// Why a TLS handshake failed.
    pub enum HandshakeFailure: "reason" {
        /// The handshake did not finish in time.
        Timeout => "timeout",
        /// The client uses another protocol, for example plain HTTP.
        NotTls => "not_tls",
        /// The two sides share no version, suite or protocol, or the client did not accept the certificate.
        Protocol => "protocol",
        /// The connection broke.
        Broken => "broken",
    }
}

impl HttpsMetrics {
    /// Starts the clock of one request. The guard records the request once, even if the handler is cancelled.
    #[must_use]
    pub fn review(&self, endpoint: Endpoint) -> ReviewClock<'_> {
        ReviewClock { metrics: self, endpoint, end: ReviewEnd::Unanswered, started: Instant::now() }
    }

    /// Counts a connection that the server closed early.
    pub fn cut(&self, reason: Cut) {
        self.connections_cut.get_or_create(&reason).inc();
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
        let took = self.started.elapsed().as_secs_f64();
        self.metrics.review_duration.get_or_create(&(self.endpoint, self.end)).observe(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::openmetrics;

    #[test]
    fn a_review_is_recorded_however_its_handler_ends() {
        let metrics = HttpsMetrics::default();
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
