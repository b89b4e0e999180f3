//! Client certificates: limits the admission port to clients with a certificate of a CA and, optionally, certain names.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::file_watch::{self, parent_directory};
use crate::regular_file::Unread;
use crate::serve::pki::metrics::{CertificateMetrics, CertificateStep, CertificateTrouble};
use crate::serve::pki::tls;

/// The CA of the clients, reloaded when its file changes, and the accepted names.
pub struct Clients {
    path: PathBuf,
    /// If empty, any name is accepted.
    names: BTreeSet<String>,
    trust: ArcSwap<ClientTrust>,
}

struct ClientTrust {
    pem: Result<Vec<u8>, Unread>,
    verifier: Arc<dyn ClientCertVerifier>,
}

/// The CA of the clients cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClientsError {
    /// The file is missing or cannot be read.
    #[error("failed to read {}: it must hold the CA of the API server's client certificate", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The file contains no CA.
    #[error("found no CA certificate in {}: it must hold the CA of the API server's client certificate, in PEM", path.display())]
    NoCa { path: PathBuf },
}

impl Clients {
    /// Requires a certificate that a CA in this file signed. If `names` is not empty, one of these names must be the common name or an
    /// alternative name of the certificate.
    ///
    /// # Errors
    /// [`ClientsError`] names the file.
    pub fn open(path: &Path, names: impl IntoIterator<Item = String>) -> Result<Arc<Self>, ClientsError> {
        let trust = ArcSwap::from_pointee(ClientTrust::of(path, read(path))?);
        Ok(Arc::new(Self { path: path.to_owned(), names: names.into_iter().collect(), trust }))
    }

    /// Reloads the file whenever it changes, forever. If the new file is unusable, the previous CA stays in use.
    pub async fn follow(self: Arc<Self>, metrics: Arc<CertificateMetrics>) {
        let mut known = self.trust.load().pem.clone();
        loop {
            known = file_watch::changed(&known, &[parent_directory(&self.path)], || read(&self.path)).await;
            let file = self.path.display();
            match ClientTrust::of(&self.path, known.clone()) {
                Ok(trust) => {
                    self.trust.store(Arc::new(trust));
                    metrics.count_step(CertificateStep::Loaded);
                    tracing::info!(%file, "loaded a new client CA");
                }
                Err(error) => {
                    metrics.count_trouble(CertificateTrouble::Files);
                    tracing::error!(%file, %error, "the new client CA cannot be used; the previous one stays in use");
                }
            }
        }
    }

    fn is_named(&self, certificate: &CertificateDer<'_>) -> bool {
        self.names.is_empty()
            || names(certificate).is_some_and(|names| names.iter().any(|name| self.names.contains(name)))
    }
}

impl ClientTrust {
    fn of(path: &Path, pem: Result<Vec<u8>, Unread>) -> Result<Self, ClientsError> {
        let no_ca = || ClientsError::NoCa { path: path.to_owned() };
        let text = pem
            .as_ref()
            .map_err(|unread| ClientsError::Unreadable { path: path.to_owned(), source: unread.clone().into() })?;
        let mut roots = RootCertStore::empty();
        for der in CertificateDer::pem_slice_iter(text) {
            roots.add(der.map_err(|_| no_ca())?).map_err(|_| no_ca())?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(tls::provider()));
        Ok(Self { verifier: verifier.build().map_err(|_| no_ca())?, pem })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Unread> {
    tls::read_pem(path).map_err(Unread::from)
}

/// The common names and alternative names of a certificate. `None` if the certificate cannot be parsed.
fn names(certificate: &CertificateDer<'_>) -> Option<Vec<String>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let common = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok().map(str::to_owned));
    let alternative = parsed.subject_alternative_name().ok().flatten();
    let alternative = alternative.into_iter().flat_map(|names| &names.value.general_names);
    let alternative = alternative.filter_map(|name| match name {
        GeneralName::DNSName(name) | GeneralName::URI(name) | GeneralName::RFC822Name(name) => Some((*name).to_owned()),
        _ => None,
    });
    Some(common.chain(alternative).collect())
}

impl fmt::Debug for Clients {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Clients").field("path", &self.path).field("names", &self.names).finish_non_exhaustive()
    }
}

impl ClientCertVerifier for Clients {
    /// Empty, because the CA may change and an API server has only one certificate.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.trust.load().verifier.verify_client_cert(end_entity, intermediates, now)?;
        if self.is_named(end_entity) {
            Ok(verified)
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trust.load().verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trust.load().verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trust.load().verifier.supported_verify_schemes()
    }
}
