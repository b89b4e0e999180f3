//! Loads a webhook over HTTPS: HTTP/1.1, 32 connections that stay open, as API servers do.

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

use crate::peer::Peer;

const CONNECTIONS: u32 = 32;
const WARM_UP: Duration = Duration::from_millis(500);
const MEASURED: Duration = Duration::from_secs(2);

/// What a round measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// Reviews a second.
    pub(crate) rate: f64,
    /// In seconds, from the moment at which the review was due.
    pub(crate) p50: f64,
    /// Likewise.
    pub(crate) p99: f64,
    /// Processor seconds of the webhook for 1,000 reviews.
    pub(crate) cost: f64,
}

/// Sends one review after another on every connection, or so many a second in all.
pub(crate) async fn round(peer: &Peer, review: &Bytes, rate: Option<f64>) -> Result<Round> {
    let mut connections = JoinSet::new();
    let pause = rate.map(|rate| Duration::from_secs_f64(f64::from(CONNECTIONS) / rate));
    let mut opened = Vec::new();
    for _ in 0..CONNECTIONS {
        opened.push(connect(peer).await?);
    }
    let began = Instant::now();
    for (number, sender) in (0u32..).zip(opened) {
        let first = began + pause.unwrap_or_default() * number / CONNECTIONS;
        connections.spawn(send(sender, peer.path, review.clone(), first, pause, began + WARM_UP));
    }
    tokio::time::sleep(WARM_UP).await;
    let before = peer.processor_time()?;
    tokio::time::sleep(MEASURED).await;
    let used = peer.processor_time()? - before;
    let mut times = Vec::new();
    while let Some(done) = connections.join_next().await {
        times.extend(done??);
    }
    times.sort_unstable();
    let at = |percent: usize| {
        times.get(times.len() * percent / 100).map(Duration::as_secs_f64).context("no review was answered")
    };
    let rate = times.len() as f64 / MEASURED.as_secs_f64();
    Ok(Round { rate, p50: at(50)?, p99: at(99)?, cost: used.as_secs_f64() * 1e3 / times.len() as f64 })
}

async fn connect(peer: &Peer) -> Result<SendRequest<Full<Bytes>>> {
    let tcp = TcpStream::connect(peer.address).await?;
    tcp.set_nodelay(true)?;
    let stream = peer.tls.connect(ServerName::try_from("localhost")?, tcp).await?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// One connection. A review that is late because the one before it was slow counts from the moment at which it was due.
async fn send(
    mut sender: SendRequest<Full<Bytes>>,
    path: &'static str,
    review: Bytes,
    first: Instant,
    pause: Option<Duration>,
    measured_from: Instant,
) -> Result<Vec<Duration>> {
    let (mut times, mut due) = (Vec::new(), first);
    loop {
        let started = match pause {
            Some(pause) => {
                let this = due;
                sleep_until(this.into()).await;
                due += pause;
                this
            }
            None => Instant::now(),
        };
        if started >= measured_from + MEASURED {
            return Ok(times);
        }
        let request = Request::post(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(Full::new(review.clone()))?;
        sender.ready().await?;
        let response = sender.send_request(request).await?;
        ensure!(response.status() == StatusCode::OK, "{path}: {}", response.status());
        response.into_body().collect().await?;
        if started >= measured_from {
            times.push(started.elapsed());
        }
    }
}
