//! The states of Interlock, created by its registration and by stand-ins for broken servers.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use release_interlock::readiness::Readiness;
use release_interlock::serve::https::metrics::HttpsMetrics;
use release_interlock::serve::https::{
    Answer, Bound, BoxFuture, Certificates, Endpoint, HttpReply, Limits, Peer, ReviewFailure, Reviewer, Setup, Signals,
    run,
};
use release_interlock::serve::pki::{dev, tls};
use tokio::time::Instant;

use super::flood::Flood;
use crate::harness::clock::WrongClock;
use crate::harness::eventually::eventually;
use crate::harness::plane::Plane;
use crate::harness::webhook::{MUTATING, NOWHERE, VALIDATING, Webhook, register_file};

/// Older than the lifetime of a development leaf, younger than its CA's.
const LONG_AGO: SignedDuration = SignedDuration::from_hours(24 * 200);

const MEMORY_FULL: &str = "clients fill the memory of a replica";

/// How long a replica may take until it is in a state.
const READY: Duration = Duration::from_secs(30);

/// Half of what a replica keeps of bodies.
const HELD_BYTES: f64 = 24e6;

/// Where reviews go, and which CA is trusted there.
struct Server {
    url: String,
    ca: PathBuf,
}

/// The servers and files for all states.
pub(super) struct States<'p> {
    plane: &'p Plane,
    good: Server,
    cut_off: Webhook,
    /// A replica whose clock is an hour ahead.
    ahead: Webhook,
    /// A replica whose policy was right when it started.
    misled: Webhook,
    /// A replica for clients that fill its memory.
    full: Webhook,
    flood: Mutex<Option<Flood>>,
    silent: TcpListener,
    failing: Server,
    expired: Server,
    /// An empty file.
    no_ca: PathBuf,
}

impl<'p> States<'p> {
    #[track_caller]
    pub(super) fn new(plane: &'p Plane) -> Self {
        let no_ca = plane.dir().join("no-ca");
        std::fs::write(&no_ca, "").unwrap();
        Self {
            plane,
            good: Server { url: plane.webhook().url(), ca: plane.webhook().ca().to_owned() },
            cut_off: Webhook::cut_off(plane).unwrap_or_else(|error| panic!("{error}")),
            ahead: ahead(plane),
            misled: misled(plane),
            full: replica(plane, plane.webhook().policies(), "full"),
            flood: Mutex::default(),
            silent: TcpListener::bind("127.0.0.1:0").unwrap(),
            failing: broken(&plane.dir().join("failing"), Timestamp::now()),
            expired: broken(&plane.dir().join("expired"), Timestamp::now() - LONG_AGO),
            no_ca,
        }
    }

    /// Registers this state. The API server applies it some moments later.
    #[track_caller]
    pub(super) fn enter(&self, state: &str) {
        let Self { good, cut_off, ahead, misled, full, silent, failing, expired, .. } = self;
        let flood = (state == MEMORY_FULL).then(|| Flood::of(full.listen(), full.ca()));
        *self.flood.lock().unwrap_or_else(PoisonError::into_inner) = flood;
        let both = |url: &str, ca: &Path| [(url.to_owned(), ca.to_owned()), (url.to_owned(), ca.to_owned())];
        let [judging, stamping] = match state {
            "all is well" => both(&good.url, &good.ca),
            "no replica is there" => both(NOWHERE, &good.ca),
            "it accepts connections and never answers" => {
                // Connections are never accepted.
                both(&format!("https://{}", silent.local_addr().unwrap()), &good.ca)
            }
            "it answers with an error" => both(&failing.url, &failing.ca),
            "its certificate has expired" => both(&expired.url, &expired.ca),
            "the caBundle is wiped" => both(&good.url, &self.no_ca),
            "the mutating half alone is away" => {
                [(good.url.clone(), good.ca.clone()), (NOWHERE.to_owned(), good.ca.clone())]
            }
            "Interlock cannot reach the API server" => both(&cut_off.url(), cut_off.ca()),
            "the clock of a replica is wrong" => both(&ahead.url(), ahead.ca()),
            "a wrong policy while it runs" => both(&misled.url(), misled.ca()),
            MEMORY_FULL => {
                eventually(READY, "the memory for bodies is full", || is_full(full));
                both(&full.url(), full.ca())
            }
            other => panic!("nobody knows how to make this state: {other}"),
        };
        // The slowest change shows that both are in force.
        for (file, (url, ca)) in [(MUTATING, stamping), (VALIDATING, judging)] {
            register_file(self.plane, file, &url, &ca).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    /// The refusal of a record's CREATE that occurs only in this state. `None` if it passes.
    #[track_caller]
    pub(super) fn sign(&self, state: &str) -> Option<&'static str> {
        match state {
            "all is well"
            | "the mutating half alone is away"
            | "the clock of a replica is wrong"
            | "a wrong policy while it runs"
            | MEMORY_FULL => None,
            "no replica is there" => Some("connection refused"),
            "it accepts connections and never answers" => Some("deadline exceeded"),
            "it answers with an error" => Some("an error on the server"),
            "its certificate has expired" => Some("certificate has expired"),
            "the caBundle is wiped" => Some("signed by unknown authority"),
            "Interlock cannot reach the API server" => Some("Could not check"),
            other => panic!("nobody knows the sign of this state: {other}"),
        }
    }
}

fn replica(plane: &Plane, policies: &Path, name: &str) -> Webhook {
    let replica = Webhook::replica(plane, policies, name, &[]).unwrap_or_else(|error| panic!("{error}"));
    replica.await_ready();
    replica
}

fn ahead(plane: &Plane) -> Webhook {
    let clock = WrongClock::build(plane.dir()).unwrap_or_else(|error| panic!("{error}"));
    let replica = replica(plane, plane.webhook().policies(), "ahead");
    replica.stop();
    replica.restart_with(&clock.ahead(3_600));
    replica.await_ready();
    let log = replica.log();
    assert!(log.contains("this machine's clock is corrected by the API server's"), "{log}");
    replica
}

fn misled(plane: &Plane) -> Webhook {
    let policies = plane.dir().join("misled-policies");
    fs::create_dir_all(&policies).unwrap();
    for file in fs::read_dir(plane.webhook().policies()).unwrap().map(Result::unwrap) {
        if file.path().is_file() {
            fs::copy(file.path(), policies.join(file.file_name())).unwrap();
        }
    }
    let replica = replica(plane, &policies, "misled");
    fs::write(policies.join("cluster.yaml"), "rules: {manual-edit: {mode: enforced}}\n").unwrap();
    eventually(READY, "the wrong policy is noticed", || match replica.admin("/readyz?verbose") {
        (200, text) if text.contains("earlier ones stay in force") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    replica
}

/// Whether clients hold more than half of the memory for bodies.
fn is_full(replica: &Webhook) -> Result<(), String> {
    let (_, metrics) = replica.admin("/metrics");
    let line = metrics.lines().find(|line| line.starts_with("interlock_bodies_in_flight_bytes "));
    let held = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).unwrap_or_default();
    if held >= HELD_BYTES { Ok(()) } else { Err(format!("{held} bytes are held")) }
}

struct Failing;

impl Reviewer for Failing {
    fn answer(&self, _: Endpoint, _: Bytes, _: Peer, _: Instant) -> BoxFuture<'_, Answer> {
        Box::pin(async { HttpReply { status: StatusCode::INTERNAL_SERVER_ERROR, body: Vec::new() }.into() })
    }

    fn undecided(&self, _: Endpoint, _: &Bytes, _: Peer, _: ReviewFailure) -> Answer {
        HttpReply { status: StatusCode::INTERNAL_SERVER_ERROR, body: Vec::new() }.into()
    }
}

/// A server that answers with errors, with a certificate issued at this time. It runs as long as the test process.
fn broken(certificates: &Path, made_at: Timestamp) -> Server {
    let (ready, started) = channel();
    let certificates = certificates.to_owned();
    std::thread::spawn(move || serve(&certificates, made_at, &ready));
    started.recv().expect("the stand-in starts")
}

fn serve(certificates: &Path, made_at: Timestamp, ready: &Sender<Server>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let made = dev::ensure(certificates, made_at).unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let bound = Bound::bind(any, any).await.unwrap();
        let (_signals, never) = Signals::manual();
        let setup = Setup {
            clients: None,
            certificates: Certificates::new(tls::load(&made.certificate_path, &made.key_path).unwrap()),
            metrics: Arc::new(HttpsMetrics::default()),
            registry: Arc::default(),
            page: None,
            readiness: Readiness::new(),
            peers: Arc::default(),
            limits: Limits::default(),
        };
        let url = format!("https://{}", bound.admission_address());
        ready.send(Server { url, ca: made.ca_path }).unwrap();
        run(bound, Arc::new(Failing), setup, never).await.unwrap();
    });
}
