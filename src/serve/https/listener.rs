//! The accept loop of a port.

use std::io;
use std::sync::Arc;

use axum::Router;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::connection::{self, Shared};
use super::places::{Place, Places};
use super::shutdown::{Phase, reached};
use super::{Certificates, Clients, Limits};
use crate::serve::pki::tls;
use crate::serve::report::metrics::{Cut, HandshakeFailure, Metrics, Port};

/// The first byte of every TLS handshake (RFC 8446, 5.1: content type handshake).
const TLS_HANDSHAKE: u8 = 22;

/// For those who come with `http://` to the HTTPS port.
const NOT_TLS: &[u8] = b"HTTP/1.0 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n\
    this port speaks HTTPS only\n";

/// How a port talks.
#[derive(Clone)]
pub(super) enum Transport {
    Plain,
    Tls(TlsAcceptor),
}

impl Transport {
    pub(super) fn tls(certificates: Arc<Certificates>, clients: Option<Arc<Clients>>) -> Self {
        Self::Tls(TlsAcceptor::from(tls::server_config(certificates, clients)))
    }
}

/// A port, ready to serve.
pub(super) struct Listener {
    pub(super) port: Port,
    pub(super) transport: Transport,
    pub(super) router: Router,
    pub(super) places: usize,
    pub(super) limits: Limits,
    pub(super) metrics: Arc<Metrics>,
    pub(super) phase: watch::Receiver<Phase>,
}

impl Listener {
    /// Accepts until the server closes, then waits for its connections. Returns how many were cut.
    pub(super) async fn serve(self, socket: TcpListener) -> usize {
        let Self { port, transport, router, places, limits, metrics, mut phase } = self;
        let places = Places::new(places);
        let pause = limits.accept_pause;
        let shared = Shared { router, limits, metrics: Arc::clone(&metrics), phase: phase.clone() };
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = reached(&mut phase, Phase::Closing) => break,
                Some(_) = connections.join_next() => {}
                accepted = socket.accept() => match accepted {
                    Ok((stream, _)) => match places.take() {
                        Some(place) => {
                            connections.spawn(connect(stream, place, port, transport.clone(), shared.clone()));
                        }
                        None => metrics.cut(Cut::Full),
                    },
                    Err(error) if is_of_one_connection(&error) => {}
                    Err(error) => {
                        metrics.accept_failed(port);
                        tracing::error!(%error, "failed to accept a connection");
                        sleep(pause).await;
                    }
                }
            }
        }
        drop(socket);
        tracing::debug!(open = connections.len(), "closed the port");
        drain(connections, phase, &metrics).await
    }
}

/// Waits for connections until told to abort. Returns how many were left then.
async fn drain(mut connections: JoinSet<()>, mut phase: watch::Receiver<Phase>, metrics: &Metrics) -> usize {
    loop {
        tokio::select! {
            biased;
            ended = connections.join_next() => if ended.is_none() { return 0 },
            () = reached(&mut phase, Phase::Aborting) => {
                let cut = connections.len();
                (0..cut).for_each(|_| metrics.cut(Cut::Shutdown));
                connections.shutdown().await;
                return cut;
            }
        }
    }
}

/// The life of one connection, handshake included: a client that dawdles in it holds up nobody else.
async fn connect(stream: TcpStream, place: Place, port: Port, transport: Transport, shared: Shared) {
    if place.evicted_another {
        tracing::warn!(?port, "every place is taken; a waiting connection made room");
    }
    let open = shared.metrics.connections(port);
    open.inc();
    let _open = OnDrop(|| {
        open.dec();
    });
    // Answers are written whole; waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    match transport {
        Transport::Plain => connection::serve(stream, place.activity(), shared).await,
        Transport::Tls(acceptor) => {
            let handshake = timeout(shared.limits.handshake, handshake(stream, &acceptor));
            let shaken = tokio::select! {
                shaken = handshake => shaken.unwrap_or(Err(HandshakeFailure::Timeout)),
                () = place.activity().evicted() => return shared.metrics.cut(Cut::Evicted),
            };
            match shaken {
                Ok(stream) => connection::serve(stream, place.activity(), shared).await,
                Err(failure) => shared.metrics.handshake_failed(failure),
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
                // It has read nothing of ours yet, so a failure to tell it changes nothing.
                let _ = stream.write_all(NOT_TLS).await;
                let _ = stream.shutdown().await;
            }
            return Err(HandshakeFailure::NotTls);
        }
        _ => return Err(HandshakeFailure::Broken),
    }
    acceptor.accept(stream).await.map_err(|error| {
        tracing::debug!(%error, "TLS handshake failed");
        // rustls reports its own errors as InvalidData; everything else comes from the socket.
        match error.kind() {
            io::ErrorKind::InvalidData => HandshakeFailure::Protocol,
            _ => HandshakeFailure::Broken,
        }
    })
}

/// Errors that say something about the connection that was to be accepted, not about us.
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
