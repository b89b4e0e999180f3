//! Spans, as a receiver of OpenTelemetry gets them.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::harness::fixtures::creation;
use crate::harness::secrets::{SECRET, tell_secrets};
use crate::harness::standalone::Standalone;

/// As an API server sends it: trace id, parent id, sampled.
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: [u8; 16] =
    [0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36];
const PARENT: [u8; 8] = [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7];

/// A receiver. It sends path and body of each request to the channel.
async fn receiver() -> (String, mpsc::UnboundedReceiver<(String, Bytes)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (received, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let received = received.clone();
            let take = service_fn(move |request: hyper::Request<Incoming>| {
                let received = received.clone();
                async move {
                    let path = request.uri().path().to_owned();
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    received.send((path, body)).unwrap();
                    Ok::<_, Infallible>(hyper::Response::new(Full::new(Bytes::new())))
                }
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), take));
        }
    });
    (format!("http://{address}"), requests)
}

fn count(body: &[u8], part: &[u8]) -> usize {
    body.windows(part.len()).filter(|window| *window == part).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_continues_the_trace_of_the_api_server_and_objects_stay_out_of_it() {
    let (endpoint, mut requests) = receiver().await;
    let server = Standalone::start(&[], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]);
    server.post("/validate", creation("pending-install").to_string(), &[("traceparent", TRACEPARENT)]).await;
    tell_secrets(&server, &[("traceparent", TRACEPARENT)]).await;
    let log = server.stop();
    let mut sent = Vec::new();
    while let Ok((path, body)) = requests.try_recv() {
        assert_eq!(path, "/v1/traces");
        sent.extend(body);
    }
    assert!(!sent.is_empty(), "nothing was sent:\n{log}");
    // Every span belongs to the trace, and the spans of queries are children of our own.
    assert!(count(&sent, &TRACE) > count(&sent, &PARENT) && count(&sent, &PARENT) > 0);
    // Both halves, a query, and fields of the log.
    for part in ["validate", "mutate", "history", "shop/web", "concurrent-operation", "interlock", "alice"] {
        assert!(count(&sent, part.as_bytes()) > 0, "no {part} in {}", String::from_utf8_lossy(&sent));
    }
    assert_eq!(count(&sent, SECRET.as_bytes()), 0, "{}", String::from_utf8_lossy(&sent));
    // Spans do not appear in the log.
    assert!(log.contains("decided") && !log.contains("otel"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_that_the_api_server_does_not_sample_is_not_sent() {
    let (endpoint, mut requests) = receiver().await;
    let server = Standalone::start(&[], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]);
    let unsampled = TRACEPARENT.replace("-01", "-00");
    server.post("/validate", creation("pending-install").to_string(), &[("traceparent", &unsampled)]).await;
    let log = server.stop();
    assert!(log.contains(r#""message":"transition""#), "{log}");
    assert!(requests.try_recv().is_err());
}
