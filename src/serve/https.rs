//! The HTTPS server: moves bytes between the API server and a [`Reviewer`].
//!
//! ```text
//! Bound -> listener (slots, accept pause) -> TLS handshake -> connection (timers) -> admission router -> Reviewer
//!          listener ------------------------------------------> connection          -> admin router
//! ```
//!
//! Client errors end here, with a status and a sentence ([`Rejection`]) or with a closed connection. The reviewer gets every complete
//! JSON body that arrives in time.

pub mod admin;
pub mod admission;
pub mod clients;
pub mod limits;
pub mod metrics;
pub(crate) mod shutdown;

mod admin_thread;
mod body;
mod connection;
mod endpoint;
mod listener;
mod peers;
mod rejection;
mod reviewer;
mod slots;
mod timed_stream;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::watch;

pub use super::page::OverviewPage;
pub use super::pki::tls::Certificates;
pub use crate::readiness::Readiness;
pub use clients::Clients;
pub use endpoint::Endpoint;
pub use limits::Limits;
pub use peers::KnownPeers;
pub use rejection::Rejection;
pub use reviewer::{Answer, BoxFuture, HttpReply, Peer, ReviewFailure, Reviewer};
pub use shutdown::{Signals, Stopped};

use metrics::{HttpsMetrics, Port};

/// Both sockets, bound but not yet served. A port in use is therefore an error at start.
#[derive(Debug)]
pub struct Bound {
    admission: TcpListener,
    /// Not registered with a runtime: the admin port has its own runtime.
    admin: std::net::TcpListener,
    admission_address: SocketAddr,
    admin_address: SocketAddr,
}

impl Bound {
    /// Binds the HTTPS port for the API server and the plain HTTP port for probes and metrics. Port 0 picks a free port.
    ///
    /// # Errors
    /// [`BindError`] when an address is in use or does not belong to this machine.
    pub async fn bind(admission: SocketAddr, admin: SocketAddr) -> Result<Self, BindError> {
        let (admission, admission_address) = listen("admission", admission).await?;
        let (socket, admin_address) = listen("admin", admin).await?;
        let admin = socket.into_std().map_err(|source| BindError { port: "admin", address: admin, source })?;
        Ok(Self { admission, admin, admission_address, admin_address })
    }

    /// The address for reviews.
    #[must_use]
    pub fn admission_address(&self) -> SocketAddr {
        self.admission_address
    }

    /// The address for probes and metrics.
    #[must_use]
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }
}

/// A port cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on {address} for the {port} port: choose another address, or stop the program that uses it")]
pub struct BindError {
    /// `admission` or `admin`.
    pub port: &'static str,
    pub address: SocketAddr,
    source: io::Error,
}

async fn listen(port: &'static str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), BindError> {
    let failed = |source| BindError { port, address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let real = listener.local_addr().map_err(failed)?;
    Ok((listener, real))
}

/// Everything that a server needs, except its sockets and its reviewer.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The serving certificate. It can be replaced without a restart.
    pub certificates: Arc<Certificates>,
    /// The clients that may send reviews; `None` allows every client.
    pub clients: Option<Arc<Clients>>,
    pub metrics: Arc<HttpsMetrics>,
    /// Shown by `/metrics`.
    pub registry: Arc<Registry>,
    /// Shown by `/`. `None` for no page.
    pub page: Option<OverviewPage>,
    /// Shown by `/readyz`.
    pub readiness: Readiness,
    /// The addresses from which the API server calls.
    pub peers: Arc<KnownPeers>,
    pub limits: Limits,
}

/// Serves both ports until a signal arrives, then waits for the requests in flight.
///
/// 1. After the first signal `/readyz` fails, and every answer closes its connection. The port still accepts connections for
///    [`Limits::drain_delay`], because the API server sees the removed endpoint only after the signal. It stays open for longer
///    while connections arrive.
/// 2. Then the port closes. The server asks clients to close their idle connections. Requests in flight have the rest of
///    [`Limits::drain`] to finish.
///
/// A second signal stops everything at once. The admin port has its own thread and answers until the end.
///
/// # Errors
/// When the thread of the admin port cannot be started.
pub async fn run(bound: Bound, reviewer: Arc<dyn Reviewer>, setup: Setup, signals: Signals) -> io::Result<Stopped> {
    let Setup { certificates, clients, metrics, registry, page, readiness, peers, limits } = setup;
    let (phase, watched) = watch::channel(shutdown::ShutdownPhase::Serving);
    let arrivals = shutdown::Arrivals::new();
    // Never leaves `Serving`: the admin port ends by being dropped.
    let (_always, serving) = watch::channel(shutdown::ShutdownPhase::Serving);

    let admission = listener::Listener {
        port: Port::Admission,
        transport: listener::Transport::tls(certificates, clients),
        router: admission::router(reviewer, &limits, Arc::clone(&metrics), peers),
        slots: limits.connections.min(limits::affordable_connections()),
        limits: limits.clone(),
        metrics: Arc::clone(&metrics),
        phase: watched,
        arrivals: arrivals.clone(),
    };
    let admin = listener::Listener {
        port: Port::Admin,
        transport: listener::Transport::Plain,
        router: admin::router_with_page(readiness.clone(), registry, page),
        slots: limits.admin_connections,
        limits: limits.clone(),
        metrics,
        phase: serving,
        arrivals: shutdown::Arrivals::new(),
    };

    let _admin = admin_thread::AdminThread::start(admin, bound.admin)?;
    let served = admission.serve(bound.admission);
    let stopping = shutdown::run_phases(signals, &phase, &readiness, &arrivals, &limits);
    tokio::pin!(served, stopping);
    Ok(tokio::select! {
        // Ends only after the port is closed, so no connection was cut.
        _ = &mut served => Stopped::Drained,
        stopped = &mut stopping => stopped.with_cut(served.await),
    })
}
