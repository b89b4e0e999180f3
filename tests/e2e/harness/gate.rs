//! A second webhook, in the test process: it counts one user's writes in a namespace and blocks the n-th, so that a
//! test can kill the client at exactly that step.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use interlock_engine::reply::allow_with_patch;
use interlock_engine::review::Review;
use jiff::Timestamp;
use release_interlock::readiness::Readiness;
use release_interlock::serve::https::metrics::HttpsMetrics;
use release_interlock::serve::https::{
    Answer, Bound, BoxFuture, Certificates, Endpoint, HttpReply, Limits, Peer, ReviewFailure, Reviewer, Setup, Signals,
    run,
};
use release_interlock::serve::pki::{dev, tls};
use serde_json::json;
use tokio::time::Instant;

use crate::harness::clients::Identity;
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::process::Running;

/// The writes in one namespace.
struct Count {
    seen: usize,
    /// The write to block, and the channel that reports its arrival.
    hold: Option<(usize, Sender<()>)>,
}

/// The server of all gates of this process.
struct Gates {
    url: String,
    ca: String,
    counts: Arc<Mutex<HashMap<String, Count>>>,
}

struct Gatekeeper(Arc<Mutex<HashMap<String, Count>>>);

impl Gatekeeper {
    /// Counts a write. True if this write is to be blocked.
    fn count(&self, body: &[u8]) -> bool {
        let review = Review::parse(body).expect("the API server sends reviews");
        let mut counts = self.0.lock().unwrap();
        let Some(count) = counts.get_mut(review.request.namespace()) else { return false };
        count.seen += 1;
        match &count.hold {
            Some((at, reached)) if *at == count.seen => reached.send(()).is_ok(),
            _ => false,
        }
    }
}

impl Reviewer for Gatekeeper {
    fn answer(&self, _: Endpoint, body: Bytes, _: Peer, _: Instant) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            if self.count(&body) {
                // Blocked until the API server gives up, which it does when its client ends.
                std::future::pending::<()>().await;
            }
            let review = Review::parse(&body).expect("the API server sends reviews");
            HttpReply { status: StatusCode::OK, body: allow_with_patch(&review.request.uid, None) }.into()
        })
    }

    fn undecided(&self, _: Endpoint, _: &Bytes, _: Peer, _: ReviewFailure) -> Answer {
        HttpReply { status: StatusCode::INTERNAL_SERVER_ERROR, body: Vec::new() }.into()
    }
}

fn gates() -> &'static Gates {
    static GATES: OnceLock<Gates> = OnceLock::new();
    GATES.get_or_init(|| {
        let counts = Arc::new(Mutex::new(HashMap::new()));
        let (ready, started) = channel();
        let keeper = Arc::new(Gatekeeper(counts.clone()));
        std::thread::spawn(move || serve(keeper, &ready));
        let (url, ca) = started.recv().expect("the gate starts");
        Gates { url, ca, counts }
    })
}

/// Runs for as long as the test process does.
fn serve(keeper: Arc<Gatekeeper>, ready: &Sender<(String, String)>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let certificates = tempfile::tempdir().unwrap();
        let made = dev::ensure(certificates.path(), Timestamp::now()).unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let bound = Bound::bind(any, any).await.unwrap();
        let (_signals, never) = Signals::manual();
        let setup = Setup {
            certificates: Certificates::new(tls::load(&made.certificate_path, &made.key_path).unwrap()),
            clients: None,
            metrics: Arc::new(HttpsMetrics::default()),
            registry: Arc::default(),
            page: None,
            readiness: Readiness::new(),
            peers: Arc::default(),
            limits: Limits::default(),
        };
        let url = format!("https://{}/validate", bound.admission_address());
        ready.send((url, made.ca_pem.clone())).unwrap();
        run(bound, keeper, setup, never).await.unwrap();
    });
}

/// The gate of one namespace.
pub(crate) struct Gate {
    namespace: String,
}

impl Gate {
    /// Counts every write of a person in a namespace.
    pub(crate) fn new(namespace: &Namespace<'_>, person: &str) -> Self {
        Self::before(namespace, &namespace.plane().person(person))
    }

    /// Like `new`, for any identity.
    pub(crate) fn before(namespace: &Namespace<'_>, who: &Identity) -> Self {
        let gates = gates();
        let name = namespace.name().to_owned();
        gates.counts.lock().unwrap().insert(name.clone(), Count { seen: 0, hold: None });
        let registration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": format!("gate-{name}")},
            "webhooks": [{
                "name": "gate.test.interlock.dev", "failurePolicy": "Ignore", "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
                "clientConfig": {"url": gates.url, "caBundle": STANDARD.encode(&gates.ca)},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
                "matchConditions": [{"name": "person", "expression": format!("request.userInfo.username == '{}'", who.user())}],
                "rules": [{
                    "operations": ["CREATE", "UPDATE", "DELETE"], "apiGroups": ["", "apps", "batch"],
                    "apiVersions": ["v1"], "resources": ["secrets", "configmaps", "services", "deployments", "jobs"],
                }],
            }],
        });
        let gate = Self { namespace: name };
        namespace.kubectl("admin").with_file("create", &registration, &[]).expect_success();
        let kubectl = namespace.kubectl_as(who);
        eventually(Duration::from_secs(30), "the API server asks the gate", || {
            kubectl.run(&["create", "configmap", "probe", "--dry-run=server"]).into_result()?;
            if gate.seen() > 0 { Ok(()) } else { Err("nothing has come yet".to_owned()) }
        });
        gate
    }

    /// Restarts the count and blocks the `at`-th write from now on.
    pub(crate) fn hold(&self, at: usize) -> Hold {
        let (reached, hears) = channel();
        let mut counts = gates().counts.lock().unwrap();
        counts.insert(self.namespace.clone(), Count { seen: 0, hold: Some((at, reached)) });
        Hold(hears)
    }

    /// Blocks no further writes.
    pub(crate) fn open(&self) {
        gates().counts.lock().unwrap().insert(self.namespace.clone(), Count { seen: 0, hold: None });
    }

    fn seen(&self) -> usize {
        gates().counts.lock().unwrap()[&self.namespace].seen
    }
}

/// A write that is to be blocked.
pub(crate) struct Hold(Receiver<()>);

impl Hold {
    /// Waits until the client makes that write. False if the client ends without it.
    pub(crate) fn reached_by(&self, client: &mut Running) -> bool {
        loop {
            if self.0.recv_timeout(Duration::from_millis(50)).is_ok() {
                return true;
            }
            if !client.is_running() {
                return false;
            }
        }
    }
}
