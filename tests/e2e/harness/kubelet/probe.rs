//! Probes of a container over HTTP.

use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// Shorter than the specified period, so that tests do not wait for probes.
const PERIOD: Duration = Duration::from_millis(200);

/// One probe, and what it has found.
pub(super) struct Probe {
    path: String,
    port: IntOrString,
    timeout: Duration,
    /// How long it may fail before the failure counts: the specified threshold times the specified period.
    patience: Duration,
    next: Instant,
    failing: Option<Instant>,
    /// `None` before the first result counts.
    pub(super) passes: Option<bool>,
    /// The last failure.
    pub(super) failure: String,
}

impl Probe {
    pub(super) fn new(probe: &v1::Probe) -> Result<Self, String> {
        let Some(get) = &probe.http_get else { return Err("a probe is not httpGet".to_owned()) };
        let seconds =
            |value: Option<i32>, default| Duration::from_secs(u64::try_from(value.unwrap_or(default)).unwrap_or(1));
        let period = seconds(probe.period_seconds, 10);
        Ok(Self {
            path: get.path.clone().unwrap_or_else(|| "/".to_owned()),
            port: get.port.clone(),
            timeout: seconds(probe.timeout_seconds, 1),
            patience: period * u32::try_from(probe.failure_threshold.unwrap_or(3) - 1).unwrap_or(0),
            next: Instant::now(),
            failing: None,
            passes: None,
            failure: String::new(),
        })
    }

    pub(super) fn port(&self) -> &IntOrString {
        &self.port
    }

    /// Probes if the period has passed.
    pub(super) async fn look(&mut self, address: Option<SocketAddr>) {
        if Instant::now() < self.next {
            return;
        }
        let asked = match address {
            Some(address) => timeout(self.timeout, get(address, &self.path)).await,
            None => Ok(Err("nothing listens yet".to_owned())),
        };
        self.next = Instant::now() + PERIOD;
        match asked.unwrap_or_else(|_| Err(format!("{} did not answer in time", self.path))) {
            Ok(()) => {
                self.failing = None;
                self.failure.clear();
                self.passes = Some(true);
            }
            Err(failure) => {
                self.failure = failure;
                let since = *self.failing.get_or_insert_with(Instant::now);
                if since.elapsed() >= self.patience {
                    self.passes = Some(false);
                }
            }
        }
    }
}

async fn get(address: SocketAddr, path: &str) -> Result<(), String> {
    let ask = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.map(|_| answer)
    };
    let answer = ask.await.map_err(|e: std::io::Error| format!("{path}: {e}"))?;
    let code = answer.split(' ').nth(1).and_then(|code| code.parse::<u16>().ok()).unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    if (200..400).contains(&code) { Ok(()) } else { Err(format!("{path} answered {code}: {}", body.trim())) }
}
