//! Clients that keep the memory for bodies of a server full: each announces a large review and never ends it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use release_interlock::serve::pki::tls::provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};

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
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(CertificateDer::pem_file_iter(ca).unwrap().flatten());
        let config =
            ClientConfig::builder_with_provider(Arc::new(provider())).with_safe_default_protocol_versions().unwrap();
        let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
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
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut connection = ClientConnection::new(Arc::clone(config), "127.0.0.1".try_into().unwrap()).unwrap();
    let mut stream = Stream::new(&mut connection, &mut socket);
    let head = "POST /validate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    stream.write_all(format!("{head}Content-Length: {BODY_BYTES}\r\n\r\n").as_bytes())?;
    stream.write_all(&vec![b' '; BODY_BYTES - 1])?;
    stream.read_exact(&mut [0])
}
