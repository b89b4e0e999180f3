//! A stand-in for kube-proxy: each new connection from the API server to a Service goes to one of the ready pods. The
//! API server connects as if it were in another network: by `CONNECT` to an egress proxy.

use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpStream, UnixListener, UnixStream};

/// Longer than any request's head.
const HEAD: usize = 1024;

/// Where a connection to an address of the cluster goes now. `None` if no pod is ready.
pub(crate) type Route = Arc<dyn Fn(SocketAddr) -> Option<SocketAddr> + Send + Sync>;

/// Counts of connections since the start.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    nobody: AtomicU64,
    refused: AtomicU64,
}

impl Connections {
    /// Connections while no pod was ready.
    pub(crate) fn nobody(&self) -> u64 {
        self.nobody.load(Ordering::Relaxed)
    }

    /// Connections that a pod refused although it was reported as ready.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// The content of `--egress-selector-config-file`: the API server reaches the cluster through this socket. A TCP port
/// would need TLS.
pub(crate) fn write_egress(file: &Path, proxy: &Path) -> io::Result<()> {
    let selection = json!({
        "name": "cluster",
        "connection": {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": proxy}}},
    });
    let configuration = json!({
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [selection],
    });
    fs::write(file, configuration.to_string())
}

/// Serves until it is dropped.
pub(crate) async fn balance(listener: UnixListener, route: Route, connections: Arc<Connections>) {
    loop {
        if let Ok((client, _)) = listener.accept().await {
            let (route, connections) = (route.clone(), connections.clone());
            tokio::spawn(async move {
                // If one end closes, the other end notices.
                let _ = join(client, &route, &connections).await;
            });
        }
    }
}

async fn join(mut client: UnixStream, route: &Route, connections: &Connections) -> io::Result<()> {
    let wanted = wanted(&mut client).await?;
    let Some(pod) = route(wanted) else {
        connections.nobody.fetch_add(1, Ordering::Relaxed);
        return client.write_all(b"HTTP/1.1 503 No Endpoints\r\nContent-Length: 0\r\n\r\n").await;
    };
    // Tried once: kube-proxy does not try another pod after a failure, and a retry would hide errors that clients see.
    let Ok(mut pod) = TcpStream::connect(pod).await else {
        connections.refused.fetch_add(1, Ordering::Relaxed);
        return client.write_all(b"HTTP/1.1 502 Connection Refused\r\nContent-Length: 0\r\n\r\n").await;
    };
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    copy_bidirectional(&mut client, &mut pod).await.map(drop)
}

/// Reads `CONNECT ADDRESS HTTP/1.1` with its headers. The client sends nothing more before the answer.
async fn wanted(client: &mut UnixStream) -> io::Result<SocketAddr> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > HEAD || client.read_buf(&mut head).await? == 0 {
            return Err(Error::from(ErrorKind::InvalidData));
        }
    }
    let head = String::from_utf8_lossy(&head);
    let address = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next());
    address.and_then(|address| address.parse().ok()).ok_or_else(|| Error::from(ErrorKind::InvalidData))
}
