//! A server under test: the real listener with a reviewer that does what the body asks for.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use ::http::StatusCode;
use bytes::Bytes;
use jiff::Timestamp;
use release_interlock::readiness::Readiness;
use release_interlock::serve::https::metrics::HttpsMetrics;
use release_interlock::serve::https::{
    self, Answer, Bound, BoxFuture, Certificates, Clients, Endpoint, HttpReply, Limits, Peer, ReviewFailure, Reviewer,
    Setup, Signals, Stopped,
};
use release_interlock::serve::pki::{dev, tls};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::harness::client::Client;
use crate::harness::metrics::rendered;

/// Admits every review, unless the key `test` of the body asks for something else.
#[derive(Debug, Default)]
pub(crate) struct Stub {
    /// Notified for each review with `"test": "wait"` or `"block"`.
    pub(crate) entered: Notify,
    /// What the former wait for.
    pub(crate) release: Notify,
    /// How many answers were delivered.
    pub(crate) delivered: Arc<AtomicUsize>,
}

impl Reviewer for Stub {
    fn answer(&self, endpoint: Endpoint, body: Bytes, _: Peer, deadline: Instant) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let Ok(review) = serde_json::from_slice::<Value>(&body) else {
                let body = b"not an AdmissionReview\n".to_vec();
                return HttpReply { status: StatusCode::BAD_REQUEST, body }.into();
            };
            match review["test"].as_str() {
                Some("panic" | "panic twice") => panic!("as the test asks"),
                Some("dawdle") => std::future::pending().await,
                Some("wait") => {
                    self.entered.notify_one();
                    self.release.notified().await;
                }
                Some("block") => {
                    // As a step waits for its turn at a core.
                    tokio::task::yield_now().await;
                    self.entered.notify_one();
                    block_for_ever();
                }
                _ => {}
            }
            let left = deadline.saturating_duration_since(Instant::now()).as_millis();
            let delivered = Arc::clone(&self.delivered);
            Answer {
                reply: reply(&review, true, &format!("{endpoint:?}, {left} ms left")),
                delivered: Some(Box::new(move || _ = delivered.fetch_add(1, Relaxed))),
            }
        })
    }

    fn undecided(&self, _: Endpoint, body: &Bytes, _: Peer, why: ReviewFailure) -> Answer {
        let review: Value = serde_json::from_slice(body).unwrap();
        assert!(review["test"] != "panic twice", "as the test asks");
        reply(&review, false, &format!("{why:?}")).into()
    }
}

/// As a step of a review that does not end.
fn block_for_ever() {
    let (_sender, receiver) = std::sync::mpsc::channel::<()>();
    tokio::task::block_in_place(|| receiver.recv().unwrap());
}

fn reply(review: &Value, allowed: bool, message: &str) -> HttpReply {
    let response = json!({"uid": review["request"]["uid"], "allowed": allowed, "status": {"message": message}});
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    HttpReply { status: StatusCode::OK, body: body.to_string().into_bytes() }
}

/// A review with a uid, and an instruction for the stub.
pub(crate) fn review(uid: &str, test: Option<&str>) -> Bytes {
    json!({"kind": "AdmissionReview", "request": {"uid": uid}, "test": test}).to_string().into()
}

/// A review of exactly `bytes` bytes.
pub(crate) fn review_of(bytes: usize) -> Bytes {
    let mut body = review("large", None).to_vec();
    body.resize(bytes, b' ');
    body.into()
}

/// A running server.
pub(crate) struct Server {
    pub(crate) admission: std::net::SocketAddr,
    pub(crate) admin: std::net::SocketAddr,
    pub(crate) ca_pem: String,
    pub(crate) certificates: Arc<Certificates>,
    pub(crate) metrics: Arc<HttpsMetrics>,
    pub(crate) readiness: Readiness,
    pub(crate) stub: Arc<Stub>,
    pub(crate) signals: mpsc::Sender<()>,
    running: JoinHandle<std::io::Result<Stopped>>,
}

impl Server {
    pub(crate) async fn start(limits: Limits) -> Self {
        Self::start_for(None, limits).await
    }

    /// A server that accepts only some clients.
    pub(crate) async fn start_for(clients: Option<Arc<Clients>>, limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let made = dev::ensure(dir.path(), Timestamp::now()).unwrap();
        let key = tls::load(&made.certificate_path, &made.key_path).unwrap();
        let setup = Setup {
            certificates: Certificates::new(key),
            clients,
            metrics: Arc::new(HttpsMetrics::default()),
            registry: Arc::default(),
            page: None,
            readiness: Readiness::new(),
            peers: Arc::default(),
            limits,
        };
        let any = "127.0.0.1:0".parse().unwrap();
        let bound = Bound::bind(any, any).await.unwrap();
        let (signals, received) = Signals::manual();
        let stub = Arc::new(Stub::default());
        Self {
            admission: bound.admission_address(),
            admin: bound.admin_address(),
            ca_pem: made.ca_pem,
            certificates: Arc::clone(&setup.certificates),
            metrics: Arc::clone(&setup.metrics),
            readiness: setup.readiness.clone(),
            stub: Arc::clone(&stub),
            signals,
            running: tokio::spawn(https::run(bound, stub, setup, received)),
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.admission, &self.ca_pem)
    }

    /// The next honest review is answered, on a new connection.
    pub(crate) async fn answers_an_honest_review(&self) {
        let answer =
            soon(async { self.client().connect().await.post("/validate", review("honest", None)).await }).await;
        assert_eq!((answer.status, answer.json()["response"]["uid"].as_str()), (StatusCode::OK, Some("honest")));
    }

    fn metrics(&self) -> String {
        rendered(|registry| self.metrics.register(registry))
    }

    /// Waits for a line of the metrics.
    pub(crate) async fn counts(&self, line: &str) {
        let counted = async {
            while !self.metrics().lines().any(|found| found == line) {
                tokio::task::yield_now().await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, counted).await.is_ok(), "no line {line} in\n{}", self.metrics());
    }

    /// Waits for the server's end.
    pub(crate) async fn stopped(self) -> Stopped {
        soon(self.running).await.unwrap().unwrap()
    }
}

/// How long a test waits for an expected event, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Fails if `future` takes too long.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("took too long")
}
