//! TLS: the protocol versions, and the served certificate.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::regular_file;

/// The longest file of certificates or of a key, in bytes: the size limit of a Secret.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// The serving certificate. A replacement affects only later handshakes, not open connections.
pub struct Certificates {
    current: ArcSwapOption<CertifiedKey>,
}

/// A certificate chain and its key. They may not belong together.
#[derive(Clone, Copy, Debug)]
pub struct Pem<'a> {
    /// The origin of the chain, for messages.
    pub certificate_path: &'a Path,
    /// The chain, leaf first.
    pub certificate: &'a [u8],
    /// The origin of the key, for messages.
    pub key_path: &'a Path,
    /// PKCS#8, PKCS#1 or SEC1.
    pub key: &'a [u8],
}

/// A certificate cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file is missing or cannot be read.
    #[error("failed to read {}: write a certificate there with `interlock certs dev`, or name another file", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The file contains no certificate.
    #[error("found no certificate in {}: it must hold the chain in PEM, the server's own certificate first", path.display())]
    NoCertificate {
        path: PathBuf,
        /// `None` if there is no PEM section.
        source: Option<pem::Error>,
    },
    /// The file contains no private key.
    #[error("found no private key in {}: it must hold one key in PEM (PKCS#8, PKCS#1 or SEC1), not encrypted", path.display())]
    NoKey { path: PathBuf, source: pem::Error },
    /// The key belongs to another certificate, or cannot sign.
    #[error("the key in {} does not belong to the certificate in {}: replace both together", key.display(), certificate.display())]
    Mismatch { key: PathBuf, certificate: PathBuf, source: rustls::Error },
}

impl Certificates {
    /// Serves `key` until it is replaced.
    #[must_use]
    pub fn new(key: CertifiedKey) -> Arc<Self> {
        Arc::new(Self { current: ArcSwapOption::from_pointee(key) })
    }

    /// Serves nothing yet: every handshake fails with an alert until there is a key.
    #[must_use]
    pub fn none() -> Arc<Self> {
        Arc::new(Self { current: ArcSwapOption::empty() })
    }

    /// Serves `key` from the next handshake on.
    pub fn replace(&self, key: CertifiedKey) {
        self.current.store(Some(Arc::new(key)));
    }

    /// The served certificate, if any.
    #[must_use]
    pub fn current(&self) -> Option<Arc<CertifiedKey>> {
        self.current.load_full()
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Certificates {
    /// Accepts any server name. Clients may connect by address, through a port-forward, or as a probe, and decide by themselves whether the
    /// certificate is valid.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current()
    }
}

/// Reads a chain and its key from files.
///
/// # Errors
/// [`CertificateError`] names the file and what to do.
pub fn load(certificate_path: &Path, key_path: &Path) -> Result<CertifiedKey, CertificateError> {
    let (certificate, key) = (load_file(certificate_path)?, load_file(key_path)?);
    parse(Pem { certificate_path, certificate: &certificate, key_path, key: &key })
}

fn load_file(path: &Path) -> Result<Vec<u8>, CertificateError> {
    read_pem(path).map_err(|source| CertificateError::Unreadable { path: path.to_owned(), source })
}

/// Reads a file of certificates or of a key.
///
/// # Errors
/// Those of [`regular_file::read`].
pub(crate) fn read_pem(path: &Path) -> io::Result<Vec<u8>> {
    regular_file::read(path, MAX_PEM_BYTES)
}

/// Parses a chain and its key.
///
/// # Errors
/// [`CertificateError`], except `Unreadable`.
pub fn parse(pem: Pem<'_>) -> Result<CertifiedKey, CertificateError> {
    let no_certificate = |source| CertificateError::NoCertificate { path: pem.certificate_path.to_owned(), source };
    let chain = CertificateDer::pem_slice_iter(pem.certificate)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| no_certificate(Some(error)))?;
    if chain.is_empty() {
        return Err(no_certificate(None));
    }
    let key = PrivateKeyDer::from_pem_slice(pem.key)
        .map_err(|source| CertificateError::NoKey { path: pem.key_path.to_owned(), source })?;
    CertifiedKey::from_der(chain, key, &provider()).map_err(|source| CertificateError::Mismatch {
        key: pem.key_path.to_owned(),
        certificate: pem.certificate_path.to_owned(),
        source,
    })
}

/// The crypto provider of this program. Every TLS setup gets it explicitly, because any library may set the process-wide default.
#[must_use]
pub fn provider() -> CryptoProvider {
    aws_lc_rs::default_provider()
}

/// TLS 1.2 and 1.3, and only HTTP/1.1: API servers use HTTP/1.1 for webhooks, because HTTP/2 does not balance load.
pub(crate) fn server_config(
    certificates: Arc<Certificates>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> Arc<ServerConfig> {
    let provider = Arc::new(provider());
    let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
    #[expect(
        clippy::expect_used,
        reason = "fails only for a provider without a suite for either version, and the provider is fixed"
    )]
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .expect("aws-lc-rs has suites for TLS 1.2 and 1.3");
    let config = match clients {
        Some(clients) => config.with_client_cert_verifier(clients),
        None => config.with_no_client_auth(),
    };
    let mut config = config.with_cert_resolver(certificates);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // API servers do not resume sessions. Without tickets, every later handshake uses the current certificate.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Arc::new(config)
}
