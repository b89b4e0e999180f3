//! Reviews through the real listener, over HTTPS, on 32 keep-alive connections.
//!
//! The first reviewer admits everything and echoes the uid: what the transport costs, the floor. Interlock is given as a
//! ratio to it: in front of a cluster, and standalone, where it remembers what it admits. Client and server share the
//! machine and the process, so the absolute numbers are low; the ratio is what counts. The reviewers take turns in short
//! rounds, and a ratio is the median over the pairs of one round, so that whatever else the machine does falls on both sides.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark has no callers to report an error to")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use interlock_engine::policy::Policy;
use jiff::Timestamp;
use release_interlock::budget::Budget;
use release_interlock::judge::Judge;
use release_interlock::readiness::Readiness;
use release_interlock::serve::https::metrics::HttpsMetrics;
use release_interlock::serve::https::{
    self, Answer, Bound, BoxFuture, Certificates, Endpoint, HttpReply, Limits, Peer, ReviewFailure, Reviewer, Setup,
    Signals,
};
use release_interlock::serve::pki::{dev, tls};
use release_interlock::serve::report::Reporter;
use release_interlock::serve::report::metrics::ReportMetrics;
use release_interlock::serve::webhook::Webhook;
use release_interlock::world::memory::Memory;
use rustls::pki_types::ServerName;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const CONNECTIONS: usize = 32;
const WARM_UP: Duration = Duration::from_millis(500);
const MEASURED: Duration = Duration::from_secs(1);
const ROUNDS: usize = 9;

#[path = "fixtures/reviews.rs"]
mod reviews;
#[path = "fixtures/trust.rs"]
mod trust;

use trust::connector;

type Reviewers = Vec<(&'static str, Arc<dyn Reviewer>)>;

/// A webhook in front of a cluster, and the floor.
fn in_a_cluster() -> Result<Reviewers> {
    let memory = Arc::new(Memory::new(1 << 20));
    let interlock = Webhook::new(judge(&memory)?, Reporter::new(Arc::new(ReportMetrics::default())));
    Ok(vec![("always allows", Arc::new(AlwaysAllows)), ("interlock", Arc::new(interlock))])
}

/// A webhook that remembers what it admits, and the floor.
fn without_a_cluster() -> Result<Reviewers> {
    let memory = Arc::new(Memory::new(64 << 20));
    let interlock = Webhook::standalone(judge(&memory)?, Reporter::new(Arc::new(ReportMetrics::default())), memory);
    Ok(vec![("always allows", Arc::new(AlwaysAllows)), ("standalone", Arc::new(interlock))])
}

fn judge(memory: &Arc<Memory>) -> Result<Judge> {
    Ok(Judge::new(Policy::shipped()?, memory.clone(), Arc::new(Budget::new(256 << 20))))
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!(
        "{:<52}{:>12}{:>10}{:>10}{:>12}{:>12}",
        "median of rounds", "reviews/s", "p50 ms", "p99 ms", "rate ratio", "p99 ratio"
    );
    let ordinary = reviews::deployment_review();
    for (traffic, body) in [("ordinary object", ordinary.clone()), ("record CREATE", reviews::record_review(300 << 10))]
    {
        compare(&runtime, traffic, &Bytes::from(body), in_a_cluster()?)?;
    }
    for (traffic, body) in [
        ("ordinary object", ordinary),
        ("edit that is remembered", reviews::edit_review()),
        ("kind that no rule asks for", reviews::service_review()),
    ] {
        compare(&runtime, traffic, &Bytes::from(body), without_a_cluster()?)?;
    }
    Ok(())
}

fn compare(runtime: &tokio::runtime::Runtime, traffic: &str, body: &Bytes, reviewers: Reviewers) -> Result<()> {
    let metrics = Arc::new(HttpsMetrics::default());
    let mut rounds: Vec<Vec<Round>> = reviewers.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for (index, (_, reviewer)) in reviewers.iter().enumerate() {
            rounds[index].push(runtime.block_on(round(Arc::clone(reviewer), metrics.clone(), body))?);
        }
    }
    for ((name, _), own) in reviewers.iter().zip(&rounds) {
        let name = format!("{traffic}, {} KiB: {name}", body.len() / 1024);
        let (rate, p50, p99) = (|round: &Round| round.rate, |round: &Round| round.p50, |round: &Round| round.p99);
        let ratio = |value: fn(&Round) -> f64| {
            median(own.iter().zip(&rounds[0]).map(|(round, floor)| value(round) / value(floor)))
        };
        println!(
            "{name:<52}{:>12.0}{:>10.3}{:>10.3}{:>12.2}{:>12.2}",
            median(own.iter().map(rate)),
            median(own.iter().map(p50)) * 1e3,
            median(own.iter().map(p99)) * 1e3,
            ratio(rate),
            ratio(p99),
        );
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Rate in reviews a second; times in seconds.
#[derive(Clone, Copy)]
struct Round {
    rate: f64,
    p50: f64,
    p99: f64,
}

/// Starts a server, loads it, and stops it.
async fn round(reviewer: Arc<dyn Reviewer>, metrics: Arc<HttpsMetrics>, body: &Bytes) -> Result<Round> {
    let dir = tempfile::tempdir()?;
    let made = dev::ensure(dir.path(), Timestamp::now())?;
    let setup = Setup {
        certificates: Certificates::new(tls::load(&made.certificate_path, &made.key_path)?),
        clients: None,
        metrics,
        registry: Arc::default(),
        page: None,
        readiness: Readiness::new(),
        peers: Arc::default(),
        limits: Limits::default(),
    };
    let bound = Bound::bind("127.0.0.1:0".parse()?, "127.0.0.1:0".parse()?).await?;
    let address = bound.admission_address();
    let (_signals, received) = Signals::manual();
    let server = tokio::spawn(https::run(bound, reviewer, setup, received));

    let connector = connector(&made.ca_pem)?;
    let mut connections = JoinSet::new();
    let started = Instant::now();
    for _ in 0..CONNECTIONS {
        let tcp = TcpStream::connect(address).await?;
        tcp.set_nodelay(true)?;
        let stream = connector.connect(ServerName::try_from("localhost")?, tcp).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        connections.spawn(load(sender, started, body.clone()));
    }
    let mut times = Vec::new();
    while let Some(done) = connections.join_next().await {
        times.extend(done??);
    }
    server.abort();
    times.sort_unstable();
    let at = |share: usize| {
        times.get(times.len() * share / 100).map(Duration::as_secs_f64).context("no review was answered")
    };
    Ok(Round { rate: times.len() as f64 / MEASURED.as_secs_f64(), p50: at(50)?, p99: at(99)? })
}

/// One connection, one review after another. Returns the times of those that began after the warm-up.
async fn load(mut sender: SendRequest<Full<Bytes>>, started: Instant, body: Bytes) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    loop {
        let begun = Instant::now();
        if begun - started >= WARM_UP + MEASURED {
            return Ok(times);
        }
        let request = Request::post("/validate?timeout=3s")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(Full::new(body.clone()))?;
        sender.ready().await?;
        let response = sender.send_request(request).await?;
        ensure!(response.status() == StatusCode::OK, "{}", response.status());
        response.into_body().collect().await?;
        if begun - started >= WARM_UP {
            times.push(begun.elapsed());
        }
    }
}

/// Echoes the uid and allows.
struct AlwaysAllows;

#[derive(Deserialize)]
struct Review<'a> {
    #[serde(borrow)]
    request: Uid<'a>,
}

#[derive(Deserialize)]
struct Uid<'a> {
    #[serde(borrow)]
    uid: &'a RawValue,
}

impl Reviewer for AlwaysAllows {
    fn answer(&self, _: Endpoint, body: Bytes, _: Peer, _: tokio::time::Instant) -> BoxFuture<'_, Answer> {
        let reply = match serde_json::from_slice::<Review<'_>>(&body) {
            Ok(review) => HttpReply {
                status: StatusCode::OK,
                body: format!(
                    r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{{"uid":{},"allowed":true}}}}"#,
                    review.request.uid
                )
                .into_bytes(),
            },
            Err(error) => HttpReply { status: StatusCode::BAD_REQUEST, body: error.to_string().into_bytes() },
        };
        Box::pin(std::future::ready(reply.into()))
    }

    fn undecided(&self, _: Endpoint, _: &Bytes, _: Peer, _: ReviewFailure) -> Answer {
        HttpReply { status: StatusCode::INTERNAL_SERVER_ERROR, body: Vec::new() }.into()
    }
}
