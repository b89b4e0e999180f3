//! Clients that keep the memory for bodies of a server full: each announces a large review and never ends it.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::ClientConfig;

use crate::harness::tls_client::{connect, trusting};

/// Together more than the server keeps of bodies.
const CLIENTS: usize = 12;

/// The largest review that is read.
const BODY_BYTES: usize = 8 << 20;

/// How long a client waits until it begins again.
const PATIENCE: Duration = Duration::from_secs(3);

/// Ends when it is dropped.
pub(super) struct Flood {
    ended: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Flood {
    pub(super) fn of(address: &str, ca: &Path) -> Self {
        let config = trusting(&std::fs::read(ca).unwrap());
        let ended = Arc::<AtomicBool>::default();
        let clients = (0..CLIENTS).map(|_| {
            let (address, config, ended) = (address.to_owned(), Arc::clone(&config), Arc::clone(&ended));
            std::thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    // The server may close the connection at any time.
                    let _ = hold(&address, &config);
                }
            })
        });
        Self { clients: clients.collect(), ended }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            let _ = client.join();
        }
    }
}

/// Sends all of a review but its last byte, and waits.
fn hold(address: &str, config: &Arc<ClientConfig>) -> std::io::Result<()> {
    let mut stream = connect(address, config)?;
    stream.sock.set_read_timeout(Some(PATIENCE))?;
    let head = "POST /validate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    stream.write_all(format!("{head}Content-Length: {BODY_BYTES}\r\n\r\n").as_bytes())?;
    stream.write_all(&vec![b' '; BODY_BYTES - 1])?;
    stream.read_exact(&mut [0])
}
