//! The HTTPS shell: moves bytes between the API server and a [`Reviewer`], and holds no opinion about them.
//!
//! ```text
//! Bound -> listener (places, accept pause) -> TLS handshake -> connection (timers) -> admission router -> Reviewer
//!          listener ------------------------------------------> connection          -> admin router
//! ```
//!
//! Everything a client can do wrong ends here, as a status and a sentence ([`Refusal`]) or as a closed connection;
//! everything that is a whole JSON body in time is the reviewer's.

pub mod admin;
pub mod admission;
pub mod clients;
pub mod limits;
pub mod shutdown;

mod body;
mod connection;
mod listener;
mod patience;
mod places;
mod refusal;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;

use super::report::metrics::{Metrics, Port};

pub use super::pki::tls::Certificates;
pub use crate::readiness::Readiness;
pub use clients::Clients;
pub use limits::Limits;
pub use refusal::Refusal;
pub use shutdown::{Signals, Stopped};

/// A future on the heap, as a trait object needs it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Which half of the webhook was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `POST /validate`
    Validate,
    /// `POST /mutate`
    Mutate,
}

/// What goes back to the caller. With status 200 the body is an AdmissionReview and is sent as `application/json`;
/// with any other status it is a sentence and is sent as `text/plain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// 200 for every review that could be read, allowed or not: any other status makes the API server apply the
    /// failure policy.
    pub status: StatusCode,
    /// JSON or a sentence, see above.
    pub body: Vec<u8>,
}

/// The seam between the shell and the core.
pub trait Reviewer: Send + Sync + 'static {
    /// Answers one whole request body, which need not even be JSON. The answer must be there at `deadline`; a little
    /// later the caller is told that there is none. The future is dropped when the caller goes away.
    fn answer(&self, endpoint: Endpoint, body: Bytes, deadline: Instant) -> BoxFuture<'_, Reply>;

    /// Answers for a review that panicked. Must not do again what panicked.
    fn panicked(&self, endpoint: Endpoint, body: &[u8]) -> Reply;
}

/// Both sockets, bound but not yet served: a port that is taken is an error at start, not a log line of a task.
#[derive(Debug)]
pub struct Bound {
    admission: TcpListener,
    admin: TcpListener,
    admission_address: SocketAddr,
    admin_address: SocketAddr,
}

impl Bound {
    /// Binds the HTTPS port for the API server and the plain HTTP port for probes and metrics. Port 0 takes a free one.
    ///
    /// # Errors
    /// [`BindError`] when an address is taken or not ours.
    pub async fn bind(admission: SocketAddr, admin: SocketAddr) -> Result<Self, BindError> {
        let (admission, admission_address) = listen("admission", admission).await?;
        let (admin, admin_address) = listen("admin", admin).await?;
        Ok(Self { admission, admin, admission_address, admin_address })
    }

    /// Where reviews are answered.
    #[must_use]
    pub fn admission_address(&self) -> SocketAddr {
        self.admission_address
    }

    /// Where probes and metrics are answered.
    #[must_use]
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }
}

/// A port could not be had.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on {address} for the {port} port: choose another address, or end the program that holds it")]
pub struct BindError {
    /// `admission` or `admin`.
    pub port: &'static str,
    /// The address that was asked for.
    pub address: SocketAddr,
    source: io::Error,
}

async fn listen(port: &'static str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), BindError> {
    let failed = |source| BindError { port, address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let real = listener.local_addr().map_err(failed)?;
    Ok((listener, real))
}

/// What a server needs besides its sockets and its reviewer. Each part is shared with whoever else changes or reads it.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The serving certificate; replacing it needs no restart.
    pub certificates: Arc<Certificates>,
    /// Who may ask for a review; anybody without it.
    pub clients: Option<Arc<Clients>>,
    /// Where everything is counted.
    pub metrics: Arc<Metrics>,
    /// What `/readyz` asks.
    pub readiness: Readiness,
    /// Sizes and times.
    pub limits: Limits,
}

/// Serves both ports until `signals` asks for the end, then lets the work in flight finish.
///
/// First signal: `/readyz` fails at once and every answer closes its connection, but new connections are still
/// accepted for [`Limits::drain_delay`], because endpoints are taken out of the API server's sight only after we were
/// told to go. Then the port closes and the requests in flight have [`Limits::drain`] to finish. A second signal, at any
/// time, ends everything at once. The admin port answers until the very end.
pub async fn run(bound: Bound, reviewer: Arc<dyn Reviewer>, setup: Setup, signals: Signals) -> Stopped {
    let Setup { certificates, clients, metrics, readiness, limits } = setup;
    let (phase, watched) = watch::channel(shutdown::Phase::Serving);
    // Never leaves `Serving`: the admin port ends by being dropped.
    let (_always, serving) = watch::channel(shutdown::Phase::Serving);

    let admission = listener::Listener {
        port: Port::Admission,
        transport: listener::Transport::tls(certificates, clients),
        router: admission::router(reviewer, &limits, Arc::clone(&metrics)),
        places: limits.connections.min(limits::affordable_connections()),
        limits: limits.clone(),
        metrics: Arc::clone(&metrics),
        phase: watched,
    };
    let admin = listener::Listener {
        port: Port::Admin,
        transport: listener::Transport::Plain,
        router: admin::router(readiness.clone(), Arc::clone(&metrics)),
        places: limits.admin_connections,
        limits: limits.clone(),
        metrics,
        phase: serving,
    };

    let served = admission.serve(bound.admission);
    let conducted = shutdown::conduct(signals, &phase, &readiness, &limits);
    let work = async {
        tokio::pin!(served, conducted);
        tokio::select! {
            // Ends only after the port was closed, so nothing was cut.
            _ = &mut served => Stopped::Drained,
            ending = &mut conducted => ending.with_cut(served.await),
        }
    };
    tokio::select! {
        biased;
        stopped = work => stopped,
        _ = admin.serve(bound.admin) => Stopped::Drained,
    }
}
