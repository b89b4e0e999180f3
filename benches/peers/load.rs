//! Loads a server over HTTPS: HTTP/1.1, on connections that stay open, as API servers call webhooks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep_until;
use tokio_rustls::TlsConnector;

use crate::process;

/// Makes a request from the number of its connection and its own number on it.
pub(crate) type Requests = dyn Fn(u32, u32) -> Result<Request<Full<Bytes>>> + Send + Sync;

/// A server, and how it is trusted.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) tls: TlsConnector,
}

pub(crate) struct Load<'a> {
    pub(crate) target: &'a Target,
    pub(crate) connections: u32,
    pub(crate) requests: Arc<Requests>,
    /// Requests a second in all. `None`: one after another on every connection.
    pub(crate) rate: Option<f64>,
    pub(crate) measured: Duration,
    /// The processes whose work is counted.
    pub(crate) webhook: Option<u32>,
    pub(crate) api_server: u32,
}

/// What a round measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// Requests a second.
    pub(crate) rate: f64,
    /// In seconds, from the moment at which the request was due.
    pub(crate) p50: f64,
    /// Likewise.
    pub(crate) p99: f64,
    /// Processor seconds of the webhook for 1,000 requests.
    pub(crate) webhook: f64,
    /// Likewise of the API server.
    pub(crate) api_server: f64,
    /// The memory of the webhook at the end of the round, in MiB.
    pub(crate) memory: f64,
}

/// One request on a connection of its own: its status and the body of the answer.
pub(crate) async fn once(target: &Target, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes)> {
    let response = connect(target).await?.send_request(request).await?;
    Ok((response.status(), response.into_body().collect().await?.to_bytes()))
}

pub(crate) async fn round(load: &Load<'_>) -> Result<Round> {
    let warm_up = load.measured / 4;
    let pause = load.rate.map(|rate| Duration::from_secs_f64(f64::from(load.connections) / rate));
    let mut opened = Vec::new();
    for _ in 0..load.connections {
        opened.push(connect(load.target).await?);
    }
    let began = Instant::now();
    let from = began + warm_up;
    let mut connections = JoinSet::new();
    for (number, sender) in (0u32..).zip(opened) {
        let first = began + pause.unwrap_or_default() * number / load.connections;
        let connection = Connection { number, sender, requests: Arc::clone(&load.requests), first, pause };
        connections.spawn(connection.send(from, from + load.measured));
    }
    tokio::time::sleep(warm_up).await;
    let before = [load.webhook, Some(load.api_server)].map(used);
    tokio::time::sleep(load.measured).await;
    let after = [load.webhook, Some(load.api_server)].map(used);
    let memory = load.webhook.map_or(Ok(0.0), |webhook| process::memory(webhook).map(|(now, _)| now))?;
    let mut times = Vec::new();
    while let Some(done) = connections.join_next().await {
        times.extend(done??);
    }
    times.sort_unstable();
    let at = |percent: usize| {
        times.get(times.len() * percent / 100).map(Duration::as_secs_f64).context("no request was answered")
    };
    let cost = |which: usize| -> Result<f64> {
        let used = after[which].as_ref().ok().zip(before[which].as_ref().ok()).context("a process has ended")?;
        Ok((*used.0 - *used.1).as_secs_f64() * 1e3 / times.len() as f64)
    };
    let rate = times.len() as f64 / load.measured.as_secs_f64();
    Ok(Round { rate, p50: at(50)?, p99: at(99)?, webhook: cost(0)?, api_server: cost(1)?, memory })
}

/// The processor time of a process that need not be there.
fn used(process: Option<u32>) -> Result<Duration> {
    process.map_or(Ok(Duration::ZERO), process::processor_time)
}

async fn connect(target: &Target) -> Result<SendRequest<Full<Bytes>>> {
    let tcp = TcpStream::connect(target.address).await?;
    tcp.set_nodelay(true)?;
    let stream = target.tls.connect(ServerName::from(target.address.ip()), tcp).await?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

struct Connection {
    number: u32,
    sender: SendRequest<Full<Bytes>>,
    requests: Arc<Requests>,
    first: Instant,
    pause: Option<Duration>,
}

impl Connection {
    /// Returns the times of the requests that began within the measured time. A request that is late because the one before
    /// it was slow counts from the moment at which it was due.
    async fn send(mut self, from: Instant, until: Instant) -> Result<Vec<Duration>> {
        let (mut times, mut due) = (Vec::new(), self.first);
        for number in 0.. {
            let started = match self.pause {
                Some(pause) => {
                    let this = due;
                    sleep_until(this.into()).await;
                    due += pause;
                    this
                }
                None => Instant::now(),
            };
            if started >= until {
                break;
            }
            let request = (self.requests)(self.number, number)?;
            self.sender.ready().await?;
            let response = self.sender.send_request(request).await?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            ensure!(status == StatusCode::OK, "{status}: {}", String::from_utf8_lossy(&body));
            if started >= from {
                times.push(started.elapsed());
            }
        }
        Ok(times)
    }
}
