//! A client without a certificate that trusts one CA, for what no HTTP library sends.

use std::net::TcpStream;
use std::sync::Arc;

use release_interlock::serve::pki::tls::provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A connection to a server at 127.0.0.1.
pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;

/// Trusts the certificates in `ca`, which is PEM.
pub(crate) fn trusting(ca: &[u8]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(ca).flatten());
    let config =
        ClientConfig::builder_with_provider(Arc::new(provider())).with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_root_certificates(roots).with_no_client_auth())
}

/// Connects. The handshake takes place when something is sent.
pub(crate) fn connect(address: &str, config: &Arc<ClientConfig>) -> std::io::Result<Stream> {
    let connection = ClientConnection::new(Arc::clone(config), "127.0.0.1".try_into().unwrap()).unwrap();
    Ok(StreamOwned::new(connection, TcpStream::connect(address)?))
}
