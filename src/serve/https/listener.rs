//! The accept loop of a port.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use rustls::server::danger::ClientCertVerifier;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::clients::Clients;
use super::connection::{self, ConnectionContext};
use super::limits::Limits;
use super::metrics::{Cut, HandshakeFailure, HttpsMetrics, Port};
use super::peers::Caller;
use super::shutdown::{Arrivals, ShutdownPhase, reached};
use super::slots::{Slot, Slots};
use crate::log_limit::CLIENT_LOG_LIMIT;
use crate::serve::pki::tls::{self, Certificates};

/// The first byte of every TLS handshake (RFC 8446, 5.1: content type handshake).
const TLS_HANDSHAKE: u8 = 22;

/// The answer to a client that uses `http://` on the HTTPS port.
const NOT_TLS: &[u8] = b"HTTP/1.0 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n\
    this port accepts HTTPS only\n";

/// The protocol of a port.
#[derive(Clone)]
pub(super) enum Transport {
    Plain,
    Tls(TlsAcceptor),
}

impl Transport {
    pub(super) fn tls(certificates: Arc<Certificates>, clients: Option<Arc<Clients>>) -> Self {
        let verifier = clients.map(|clients| clients as Arc<dyn ClientCertVerifier>);
        Self::Tls(TlsAcceptor::from(tls::server_config(certificates, verifier)))
    }
}

/// A port, ready to serve.
pub(super) struct Listener {
    pub(super) port: Port,
    pub(super) transport: Transport,
    pub(super) router: Router,
    pub(super) slots: usize,
    pub(super) limits: Limits,
    pub(super) metrics: Arc<HttpsMetrics>,
    pub(super) phase: watch::Receiver<ShutdownPhase>,
    pub(super) arrivals: Arrivals,
}

impl Listener {
    /// Accepts connections until the server closes, then waits for them to end. Returns how many were cut.
    pub(super) async fn serve(self, socket: TcpListener) -> usize {
        let Self { port, transport, router, slots, limits, metrics, mut phase, arrivals } = self;
        let slots = Slots::new(slots);
        let pause = limits.accept_pause;
        let context = ConnectionContext { router, limits, metrics: Arc::clone(&metrics), phase: phase.clone() };
        let mut connections = JoinSet::new();
        let admit = |connections: &mut JoinSet<()>, stream, peer: SocketAddr| match slots.take(peer.ip()) {
            Some(slot) => {
                connections.spawn(connect(stream, peer, slot, port, transport.clone(), context.clone()));
            }
            None => metrics.cut(Cut::Full),
        };
        loop {
            tokio::select! {
                biased;
                () = reached(&mut phase, ShutdownPhase::Closing) => break,
                Some(_) = connections.join_next() => {}
                accepted = socket.accept() => match accepted {
                    Ok((stream, peer)) => {
                        arrivals.note();
                        admit(&mut connections, stream, peer);
                    }
                    Err(error) if is_of_one_connection(&error) => {}
                    Err(error) => {
                        metrics.accept_errors.get_or_create(&port).inc();
                        tracing::error!(%error, "failed to accept a connection");
                        sleep(pause).await;
                    }
                }
            }
        }
        queued(socket).for_each(|(stream, peer)| admit(&mut connections, stream, peer));
        tracing::debug!(open = connections.len(), "closed the port");
        drain(connections, phase, &metrics).await
    }
}

/// Closes the port, and returns the connections that are not accepted yet: their clients are already connected.
fn queued(socket: TcpListener) -> impl Iterator<Item = (TcpStream, SocketAddr)> {
    let socket = socket.into_std().ok();
    std::iter::from_fn(move || {
        let (stream, peer) = socket.as_ref()?.accept().ok()?;
        stream.set_nonblocking(true).ok()?;
        Some((TcpStream::from_std(stream).ok()?, peer))
    })
}

/// Waits for connections to end, until the shutdown aborts them. Returns how many were aborted.
async fn drain(
    mut connections: JoinSet<()>,
    mut phase: watch::Receiver<ShutdownPhase>,
    metrics: &HttpsMetrics,
) -> usize {
    loop {
        tokio::select! {
            biased;
            ended = connections.join_next() => if ended.is_none() { return 0 },
            () = reached(&mut phase, ShutdownPhase::Aborting) => {
                let cut = connections.len();
                (0..cut).for_each(|_| metrics.cut(Cut::Shutdown));
                connections.shutdown().await;
                return cut;
            }
        }
    }
}

/// Serves one connection, including the handshake, so that a slow client delays no other.
async fn connect(
    stream: TcpStream,
    peer: SocketAddr,
    slot: Slot,
    port: Port,
    transport: Transport,
    context: ConnectionContext,
) {
    if slot.evicted_another {
        let kind = "every slot is taken";
        if let Some(suppressed) = CLIENT_LOG_LIMIT.admit(kind) {
            tracing::warn!(?port, suppressed, "{kind}; closed a connection without a whole request for a new one");
        }
    }
    let open = context.metrics.connections.get_or_create_owned(&port);
    open.inc();
    let _open = OnDrop(|| {
        open.dec();
    });
    // Each answer is written at once, so Nagle's algorithm would only delay it.
    let _ = stream.set_nodelay(true);
    match transport {
        Transport::Plain => {
            let caller = Caller { address: peer, is_certified: false };
            connection::serve(stream, caller, slot.activity(), context).await;
        }
        Transport::Tls(acceptor) => {
            let handshake = timeout(context.limits.handshake, handshake(stream, &acceptor));
            let shaken = tokio::select! {
                shaken = handshake => shaken.unwrap_or(Err(HandshakeFailure::Timeout)),
                () = slot.activity().evicted() => return context.metrics.cut(Cut::Evicted),
            };
            match shaken {
                Ok(stream) => {
                    let is_certified = stream.get_ref().1.peer_certificates().is_some();
                    let caller = Caller { address: peer, is_certified };
                    connection::serve(stream, caller, slot.activity(), context).await;
                }
                Err(failure) => _ = context.metrics.tls_handshake_failures.get_or_create(&failure).inc(),
            }
        }
    }
}

async fn handshake(mut stream: TcpStream, acceptor: &TlsAcceptor) -> Result<TlsStream<TcpStream>, HandshakeFailure> {
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(1) if first[0] == TLS_HANDSHAKE => {}
        Ok(1) => {
            if first[0].is_ascii_uppercase() {
                // The connection ends even if the write fails.
                let _ = stream.write_all(NOT_TLS).await;
                let _ = stream.shutdown().await;
            }
            return Err(HandshakeFailure::NotTls);
        }
        _ => return Err(HandshakeFailure::Broken),
    }
    acceptor.accept(stream).await.map_err(|error| {
        tracing::debug!(%error, "TLS handshake failed");
        // rustls reports its own errors as InvalidData. All other errors come from the socket.
        match error.kind() {
            io::ErrorKind::InvalidData => HandshakeFailure::Protocol,
            _ => HandshakeFailure::Broken,
        }
    })
}

/// Whether an accept failed because of the one connection, and not because of the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
