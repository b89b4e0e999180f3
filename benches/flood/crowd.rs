//! Many users and strangers at a time: what they do to small honest reviews and to forgeries beside them.
//!
//! The server is in this process, so that it can be told which address is the API server's. Users come from there, each with a
//! namespace of its own; strangers come from fifty others. The server, the crowd and who measures have threads of their own: what
//! is measured must not wait for its turn among the tasks of the crowd.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use release_interlock::readiness::Readiness;
use release_interlock::serve::https::limits::BODY_BYTES;
use release_interlock::serve::https::metrics::HttpsMetrics;
use release_interlock::serve::https::{self, Bound, Certificates, KnownPeers, Limits, Setup, Signals};
use release_interlock::serve::pki::{dev, tls};
use release_interlock::serve::report::Reporter;
use release_interlock::serve::report::metrics::ReportMetrics;
use release_interlock::serve::webhook::Webhook;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::hostile::{ALL, Situation, Stage, judge_of, small_record};
use super::{Missed, check, is_refused, reviews};

const API_SERVER: Ipv4Addr = Ipv4Addr::LOCALHOST;
const USERS: usize = 40;
const STRANGERS: u8 = 50;
const STALLED: usize = 200;

/// How often each honest request and each forgery is sent, over so many connections: one that gets no turn takes three seconds.
const TIMES: usize = 200;
const CONNECTIONS: usize = 10;
const PACE: Duration = Duration::from_secs(1);

const MAX_SMALL: Duration = Duration::from_millis(100);

/// A server in this process.
struct Server {
    address: SocketAddr,
    tls: TlsConnector,
    running: JoinHandle<std::io::Result<https::Stopped>>,
    _signals: tokio::sync::mpsc::Sender<()>,
}

impl Server {
    async fn start(objects: &[Value]) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let made = dev::ensure(dir.path(), Timestamp::now())?;
        let peers = Arc::new(KnownPeers::default());
        peers.set_endpoints([API_SERVER.into()]);
        let setup = Setup {
            certificates: Certificates::new(tls::load(&made.certificate_path, &made.key_path)?),
            clients: None,
            metrics: Arc::new(HttpsMetrics::default()),
            registry: Arc::default(),
            page: None,
            readiness: Readiness::new(),
            peers,
            limits: Limits::default(),
        };
        let webhook = Webhook::new(judge_of(objects), Reporter::new(Arc::new(ReportMetrics::default())));
        let bound = Bound::bind("127.0.0.1:0".parse()?, "127.0.0.1:0".parse()?).await?;
        let (address, tls) = (bound.admission_address(), super::served::trusting(&made.ca_pem)?);
        let (signals, received) = Signals::manual();
        let running = tokio::spawn(https::run(bound, Arc::new(webhook), setup, received));
        Ok(Self { address, tls, running, _signals: signals })
    }

    async fn stream(&self, from: Ipv4Addr) -> Result<TlsStream<TcpStream>> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((from, 0)))?;
        let tcp = socket.connect(self.address).await?;
        tcp.set_nodelay(true)?;
        Ok(self.tls.connect(ServerName::try_from("localhost")?, tcp).await?)
    }

    async fn connect(&self, from: Ipv4Addr) -> Result<SendRequest<Full<Bytes>>> {
        let (sender, connection) = http1::handshake(TokioIo::new(self.stream(from).await?)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// Sends a review. `None` if the call fails, as a full port makes it.
async fn post(sender: &mut SendRequest<Full<Bytes>>, review: &Bytes) -> Option<Value> {
    let request = Request::post("/validate?timeout=3s")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(Full::new(review.clone()))
        .ok()?;
    sender.ready().await.ok()?;
    let body = sender.send_request(request).await.ok()?.into_body().collect().await.ok()?;
    serde_json::from_slice(&body.to_bytes()).ok()
}

/// What is sent, how it must end, and how long it may take.
struct Probe {
    name: &'static str,
    review: Bytes,
    is_honest: bool,
}

/// The scenes of this part.
pub(crate) fn beside(missed: &mut Missed) -> Result<()> {
    let (serving, crowding) = (Runtime::new()?, Runtime::new()?);
    let measuring = Builder::new_current_thread().enable_all().build()?;
    let stage = |namespace: &str| Stage { namespace: namespace.to_owned(), now: Timestamp::now() };
    let honest = small_record(&stage("honest"));
    let [plain, padded] = [0, 1].map(|index| ALL[index](&stage(["forged", "padded"][index])));
    let worst: Vec<_> = ALL.iter().map(|request| request(&stage("crowd")).padded).collect();
    let objects = [&honest, &plain.plain, &padded.padded].into_iter().chain(&worst);
    let objects: Vec<Value> = objects.flat_map(|situation| situation.objects.clone()).collect();
    let server = Arc::new(serving.block_on(Server::start(&objects))?);
    let probes = [
        Probe { name: "honest edits of an object", review: reviews::deployment_review().into(), is_honest: true },
        Probe { name: "honest small records", review: honest.review.into(), is_honest: true },
        Probe { name: "forged records", review: plain.plain.review.into(), is_honest: false },
        Probe { name: "forged records, padded", review: padded.padded.review.into(), is_honest: false },
    ];
    println!(
        "\n{TIMES} of each over {CONNECTIONS} connections{:>31}{:>9}{:>9}{:>10}{:>10}",
        "right", "wrong", "failed", "p50", "p99"
    );
    println!("beside {USERS} users and {STRANGERS} strangers who loop heavy reviews");
    let users = (0..USERS).map(|number| (API_SERVER, format!("system:serviceaccount:team-{number}:bot")));
    let strangers = (2..2 + STRANGERS).map(|last| (Ipv4Addr::new(127, 0, 0, last), format!("stranger-{last}")));
    let mut crowd = JoinSet::new();
    for ((from, user), situation) in users.chain(strangers).zip(worst.iter().cycle()) {
        crowd.spawn_on(loop_of(Arc::clone(&server), from, as_user(situation, &user)), crowding.handle());
    }
    measuring.block_on(scene(&server, &probes, missed))?;
    drop(crowd);
    println!("beside {STALLED} bodies of 8 MiB that stop at 99 %");
    let mut stalled = JoinSet::new();
    for _ in 0..STALLED {
        stalled.spawn_on(stall(Arc::clone(&server)), crowding.handle());
    }
    measuring.block_on(scene(&server, &probes[..2], missed))?;
    drop(stalled);
    server.running.abort();
    Ok(())
}

/// The same request by another user.
fn as_user(situation: &Situation, user: &str) -> Bytes {
    let mut review: Value = serde_json::from_str(&situation.review).unwrap_or_default();
    review["request"]["userInfo"]["username"] = user.into();
    review.to_string().into()
}

/// Sends a review again and again, over a new connection where the last one ended.
async fn loop_of(server: Arc<Server>, from: Ipv4Addr, review: Bytes) {
    loop {
        if let Ok(mut sender) = server.connect(from).await {
            while post(&mut sender, &review).await.is_some() {}
        }
        tokio::task::yield_now().await;
    }
}

/// Sends nearly all of a body and waits, again and again.
async fn stall(server: Arc<Server>) {
    let head = format!(
        "POST /validate?timeout=30s HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {BODY_BYTES}\r\n\r\n"
    );
    let body = vec![b' '; BODY_BYTES / 100 * 99];
    loop {
        if let Ok(mut stream) = server.stream(API_SERVER).await {
            let sent = async {
                stream.write_all(head.as_bytes()).await?;
                stream.write_all(&body).await?;
                tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 1]).await
            };
            _ = sent.await;
        }
        tokio::task::yield_now().await;
    }
}

/// Sends the probes side by side, and prints a row for each.
async fn scene(server: &Server, probes: &[Probe], missed: &mut Missed) -> Result<()> {
    let rows = probes.iter().map(|probe| measure(server, probe));
    for (probe, row) in probes.iter().zip(futures_util::future::try_join_all(rows).await?) {
        let Row { right, wrong, failed, times } = row;
        let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
        ensure!(!times.is_empty(), "{}: no answer", probe.name);
        println!("  {:<46}{right:>10}{wrong:>9}{failed:>9}{:>10.1?}{:>10.1?}", probe.name, at(50), at(99));
        check(missed, &format!("{}: {wrong} wrong, {failed} failed", probe.name), wrong + failed == 0);
        if probe.is_honest {
            check(missed, &format!("{}: {:?}", probe.name, at(99)), at(99) < MAX_SMALL);
        }
    }
    Ok(())
}

#[derive(Default)]
struct Row {
    right: usize,
    wrong: usize,
    failed: usize,
    /// In order.
    times: Vec<Duration>,
}

async fn measure(server: &Server, probe: &Probe) -> Result<Row> {
    let parts = (0..CONNECTIONS).map(|_| measure_one(server, probe));
    let mut row = Row::default();
    for part in futures_util::future::try_join_all(parts).await? {
        row.right += part.right;
        row.wrong += part.wrong;
        row.failed += part.failed;
        row.times.extend(part.times);
    }
    row.times.sort();
    Ok(row)
}

/// The part of one connection.
async fn measure_one(server: &Server, probe: &Probe) -> Result<Row> {
    let mut row = Row::default();
    let mut sender = server.connect(API_SERVER).await.context("the honest connection")?;
    let mut pace = tokio::time::interval(PACE);
    for _ in 0..TIMES / CONNECTIONS {
        pace.tick().await;
        let started = Instant::now();
        match post(&mut sender, &probe.review).await {
            Some(answer) if is_refused(&answer) != probe.is_honest => row.right += 1,
            Some(_) => row.wrong += 1,
            None => {
                row.failed += 1;
                sender = server.connect(API_SERVER).await?;
            }
        }
        row.times.push(started.elapsed());
    }
    Ok(row)
}
