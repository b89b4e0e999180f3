//! A stand-in for kube-proxy: each new connection from the API server to a Service goes to one of the ready pods. The
//! API server connects as if it were in another network: by `CONNECT` to an egress proxy.

use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;

/// Longer than any request's head.
const HEAD: usize = 1024;
/// Bytes that are passed on at a time.
const CHUNK: usize = 16 << 10;

/// Where a connection to an address of the cluster goes now. `None` if no pod is ready.
pub(crate) type Route = Arc<dyn Fn(SocketAddr) -> Option<SocketAddr> + Send + Sync>;

/// Counts of connections since the start.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    nobody: AtomicU64,
    refused: AtomicU64,
    lost: AtomicU64,
    owing: AtomicU64,
    cut: AtomicU64,
    /// Changes when every connection is cut.
    cuts: watch::Sender<u64>,
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

    /// Connections that a pod ended before the API server did. Each carries at most one call: HTTP/1.1.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// How many of these ended after the API server's last bytes and before any of the pod: about as many calls were open.
    pub(crate) fn owing(&self) -> u64 {
        self.owing.load(Ordering::Relaxed)
    }

    /// Cuts every connection, in the middle of a call or not.
    pub(crate) fn cut_all(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Connections that were cut. Each is counted before the API server can notice its end.
    pub(crate) fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
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
    let mut cut = connections.cuts.subscribe();
    tokio::select! {
        relayed = relay(&mut client, &mut pod, connections) => relayed,
        _ = cut.changed() => {
            connections.cut.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }
}

/// Passes bytes on until one end closes; then the other is closed too.
async fn relay(client: &mut UnixStream, pod: &mut TcpStream, connections: &Connections) -> io::Result<()> {
    let (mut from_client, mut from_pod) = (vec![0; CHUNK], vec![0; CHUNK]);
    let mut is_asked = false;
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => match read? {
                0 => return pod.shutdown().await,
                count => {
                    is_asked = true;
                    // What is lost here is noticed below.
                    let _ = pod.write_all(&from_client[..count]).await;
                }
            },
            read = pod.read(&mut from_pod) => match read {
                Ok(count) if count > 0 => {
                    is_asked = false;
                    client.write_all(&from_pod[..count]).await?;
                }
                _ => {
                    connections.lost.fetch_add(1, Ordering::Relaxed);
                    connections.owing.fetch_add(u64::from(is_asked), Ordering::Relaxed);
                    return client.shutdown().await;
                }
            },
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const CONNECTIONS: u64 = 50;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_client_whose_connection_is_cut_finds_it_counted() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("proxy");
        let pod = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = pod.local_addr().unwrap();
        let connections = Arc::<Connections>::default();
        let route: Route = Arc::new(move |_| Some(address));
        tokio::spawn(balance(UnixListener::bind(&socket).unwrap(), route, connections.clone()));
        let mut clients = Vec::new();
        for number in 0..CONNECTIONS {
            let mut client = UnixStream::connect(&socket).await.unwrap();
            client.write_all(b"CONNECT 10.0.0.1:443 HTTP/1.1\r\n\r\n").await.unwrap();
            let (mut there, _) = pod.accept().await.unwrap();
            // Once an answer has come through, the connection is one that a cut ends.
            there.write_all(&number.to_be_bytes()).await.unwrap();
            let mut answer = [0; b"HTTP/1.1 200 OK\r\n\r\n".len() + size_of::<u64>()];
            client.read_exact(&mut answer).await.unwrap();
            clients.push((client, there));
        }
        assert_eq!(connections.cut(), 0);
        connections.cut_all();
        for (ended, (client, _)) in (1..).zip(&mut clients) {
            assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
            assert!(connections.cut() >= ended, "{} of {ended}", connections.cut());
        }
        assert_eq!((connections.cut(), connections.lost()), (CONNECTIONS, 0));
    }
}
