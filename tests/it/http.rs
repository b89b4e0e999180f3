//! The routers, without a socket.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use ::http::{Method, Request, StatusCode};
use axum::Router;
use bytes::Bytes;
use http_body_util::Full;
use release_interlock::readiness::Readiness;
use release_interlock::serve::https::limits::BODY_BYTES;
use release_interlock::serve::https::metrics::HttpsMetrics;
use release_interlock::serve::https::{Limits, admin, admission};

use crate::harness::client::Answer;
use crate::harness::client::request;
use crate::harness::client::send;
use crate::harness::metrics::rendered;
use crate::harness::server::Stub;
use crate::harness::server::review;
use crate::harness::server::review_of;

struct Desk {
    router: Router,
    metrics: Arc<HttpsMetrics>,
}

impl Desk {
    fn new() -> Self {
        let metrics = Arc::new(HttpsMetrics::default());
        let router =
            admission::router(Arc::new(Stub::default()), &Limits::default(), Arc::clone(&metrics), Arc::default());
        Self { router, metrics }
    }

    async fn post(&self, path: &str, body: Bytes) -> Answer {
        self.send(request(Method::POST, path, Some("application/json"), body)).await
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        send(&self.router, request).await
    }

    fn counts(&self, line: &str) {
        let text = rendered(|registry| self.metrics.register(registry));
        assert!(text.lines().any(|found| found == line), "no line {line} in\n{text}");
    }
}

#[tokio::test]
async fn both_endpoints_reach_the_reviewer_and_answer_json() {
    let desk = Desk::new();
    for (path, endpoint) in [("/validate", "Validate"), ("/mutate", "Mutate")] {
        let answer = desk.post(path, review("1", None)).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.json()["response"]["uid"], "1");
        assert!(answer.json()["response"]["status"]["message"].as_str().unwrap().starts_with(endpoint));
    }
    desk.counts(r#"interlock_review_duration_seconds_count{endpoint="validate",end="answered"} 1"#);
    desk.counts(r#"interlock_review_duration_seconds_count{endpoint="mutate",end="answered"} 1"#);
}

#[tokio::test]
async fn what_is_not_json_is_the_reviewers_to_refuse_and_is_text() {
    let answer = Desk::new().post("/validate", Bytes::from_static(b"{\"kind\": \"Admis")).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(answer.text(), "not an AdmissionReview\n");
}

#[tokio::test]
async fn another_content_type_is_refused_with_a_sentence() {
    let desk = Desk::new();
    for kind in [None, Some("text/plain"), Some("application/yaml")] {
        let answer = desk.send(request(Method::POST, "/validate", kind, review("1", None))).await;
        assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind:?}");
        assert!(answer.text().contains("application/json"), "{}", answer.text());
    }
    desk.counts(r#"interlock_http_refusals_total{reason="not_json"} 3"#);
    desk.counts(r#"interlock_review_duration_seconds_count{endpoint="validate",end="refused"} 3"#);
}

#[tokio::test]
async fn another_method_is_refused_with_a_sentence_and_the_right_one() {
    let desk = Desk::new();
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let answer = desk.send(request(method.clone(), "/validate", None, Bytes::new())).await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
        assert_eq!(answer.header("allow"), Some("POST"));
        assert!(answer.text().contains("POST"), "{}", answer.text());
    }
    desk.counts(r#"interlock_http_refusals_total{reason="wrong_method"} 3"#);
}

#[tokio::test]
async fn an_unknown_path_is_refused_with_the_known_ones() {
    let desk = Desk::new();
    for path in ["/", "/validate/", "/validate/x", "/metrics"] {
        let answer = desk.post(path, review("1", None)).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        assert!(answer.text().contains("/validate or /mutate"), "{}", answer.text());
    }
    desk.counts(r#"interlock_http_refusals_total{reason="unknown_path"} 4"#);
}

#[tokio::test]
async fn the_body_limit_is_eight_mebibytes() {
    let desk = Desk::new();
    for bytes in [BODY_BYTES - 1, BODY_BYTES] {
        assert_eq!(desk.post("/validate", review_of(bytes)).await.status, StatusCode::OK, "{bytes}");
    }
    let answer = desk.post("/validate", review_of(BODY_BYTES + 1)).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(answer.text().contains("8 MiB"), "{}", answer.text());
    assert_eq!(BODY_BYTES, 8 * 1024 * 1024);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_the_timeout_of_the_request_less_the_way_back() {
    let desk = Desk::new();
    for (path, left) in [
        ("/validate", 9_600),
        ("/validate?timeout=3s", 2_600),
        ("/validate?timeout=2500ms", 2_100),
        ("/validate?timeout=1s", 800),
        ("/validate?timeout=10m", 29_600),
    ] {
        let answer = desk.post(path, review("1", None)).await;
        assert_eq!(answer.json()["response"]["status"]["message"], format!("Validate, {left} ms left"), "{path}");
    }
    let answer = desk.post("/validate?timeout=soon", review("1", None)).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(answer.text().contains("3s"), "{}", answer.text());
}

#[tokio::test(start_paused = true)]
async fn a_reviewer_that_misses_its_deadline_is_not_waited_for() {
    let desk = Desk::new();
    for (timeout, left) in [("3s", 200), ("1s", 100)] {
        let started = tokio::time::Instant::now();
        let answer = desk.post(&format!("/validate?timeout={timeout}"), review("1", Some("dawdle"))).await;
        assert_eq!(answer.status, StatusCode::OK);
        let response = &answer.json()["response"];
        assert_eq!((&response["uid"], &response["status"]["message"]), (&"1".into(), &"Late".into()));
        let patience: Duration = timeout.parse::<jiff::SignedDuration>().unwrap().unsigned_abs();
        assert_eq!(started.elapsed(), patience - Duration::from_millis(left));
    }
    desk.counts(r#"interlock_review_duration_seconds_count{endpoint="validate",end="late"} 2"#);
}

#[tokio::test]
async fn a_panic_is_answered_and_counted_and_the_next_review_works() {
    let desk = Desk::new();
    let answer = desk.post("/validate", review("1", Some("panic"))).await;
    assert_eq!(answer.status, StatusCode::OK);
    let response = &answer.json()["response"];
    assert_eq!((response["uid"].as_str(), response["allowed"].as_bool()), (Some("1"), Some(false)));
    desk.counts(r#"interlock_panics_total{endpoint="validate"} 1"#);
    desk.counts(r#"interlock_review_duration_seconds_count{endpoint="validate",end="panicked"} 1"#);
    assert_eq!(desk.post("/validate", review("2", None)).await.json()["response"]["uid"], "2");
}

#[tokio::test]
async fn a_stand_in_that_panics_too_is_answered() {
    let desk = Desk::new();
    let answer = desk.post("/mutate", review("1", Some("panic twice"))).await;
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(answer.text().contains("log"), "{}", answer.text());
    assert_eq!(desk.post("/mutate", review("2", None)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_review_whose_caller_has_gone_is_ended_and_its_memory_given_back() {
    let (stub, metrics) = (Arc::new(Stub::default()), Arc::new(HttpsMetrics::default()));
    let router = admission::router(Arc::clone(&stub) as _, &Limits::default(), Arc::clone(&metrics), Arc::default());
    let waiting = tokio::spawn(async move {
        send(&router, request(Method::POST, "/validate", Some("application/json"), review("1", Some("wait")))).await
    });
    stub.entered.notified().await;
    assert!(metrics.bodies_in_flight.get() > 0);
    waiting.abort();
    assert!(waiting.await.is_err_and(|error| error.is_cancelled()));
    while metrics.bodies_in_flight.get() > 0 {
        tokio::task::yield_now().await;
    }
    let text = rendered(|registry| metrics.register(registry));
    assert!(text.contains(r#"{endpoint="validate",end="unanswered"} 1"#), "{text}");
    assert_eq!(stub.delivered.load(Relaxed), 0);
}

#[tokio::test]
async fn what_follows_from_an_answer_follows_once_it_is_delivered() {
    let (stub, metrics) = (Arc::new(Stub::default()), Arc::new(HttpsMetrics::default()));
    let desk = Desk {
        router: admission::router(Arc::clone(&stub) as _, &Limits::default(), metrics.clone(), Arc::default()),
        metrics,
    };
    assert_eq!(desk.post("/validate", review("1", None)).await.status, StatusCode::OK);
    assert_eq!(stub.delivered.load(Relaxed), 1);
    assert_eq!(desk.post("/validate", review("2", Some("panic"))).await.status, StatusCode::OK);
    assert_eq!(stub.delivered.load(Relaxed), 1);
}

#[tokio::test]
async fn probes_distinguish_alive_from_ready() {
    let readiness = Readiness::new();
    let gate = readiness.gate("policies");
    let router = admin::router(readiness.clone(), Arc::default());
    let get = |path: &'static str| send(&router, request(Method::GET, path, None, Bytes::new()));

    assert_eq!(get("/livez").await.status, StatusCode::OK);
    let answer = get("/readyz").await;
    assert_eq!((answer.status, answer.text()), (StatusCode::SERVICE_UNAVAILABLE, "waiting for policies\n"));
    gate.open();
    assert_eq!(get("/readyz").await.status, StatusCode::OK);
    readiness.leave();
    let answer = get("/readyz").await;
    assert_eq!((answer.status, answer.text()), (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n"));
    assert_eq!(get("/livez").await.status, StatusCode::OK);
}

#[tokio::test]
async fn metrics_are_open_metrics_text() {
    let router = admin::router(Readiness::new(), Arc::default());
    let answer = send(&router, request(Method::GET, "/metrics", None, Bytes::new())).await;
    assert!(answer.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    assert!(answer.text().ends_with("# EOF\n"));
    let answer = send(&router, request(Method::GET, "/validate", None, Bytes::new())).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
}
