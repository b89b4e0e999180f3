//! A serving certificate from files, as in a mounted Secret of cert-manager. It is reloaded if the files change and belong together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bundle;
use super::metrics::{CertificateMetrics, CertificateRole, CertificateStep, CertificateTrouble};
use super::tls::{self, CertificateError, Certificates};
use crate::file_watch::{self, parent_directory};
use crate::regular_file::Unread;

/// Follows the files of a certificate chain and of its key.
pub struct CertificateFiles {
    certificate_path: PathBuf,
    key_path: PathBuf,
    content: CertificateContent,
    certificates: Arc<Certificates>,
    metrics: Arc<CertificateMetrics>,
}

/// The certificate chain and the key, read at the same time.
type CertificateContent = [Result<Vec<u8>, Unread>; 2];

impl CertificateFiles {
    /// Reads both files and serves the certificate.
    ///
    /// # Errors
    /// [`CertificateError`] names the file and what to do.
    pub fn open(
        certificate_path: PathBuf,
        key_path: PathBuf,
        metrics: Arc<CertificateMetrics>,
    ) -> Result<Self, CertificateError> {
        let content = read(&certificate_path, &key_path);
        let mut followed = Self { certificate_path, key_path, content, certificates: Certificates::none(), metrics };
        followed.take()?;
        Ok(followed)
    }

    /// The served certificate. Later changes of the files replace it.
    #[must_use]
    pub fn certificates(&self) -> Arc<Certificates> {
        Arc::clone(&self.certificates)
    }

    /// Follows the files until the future is dropped. If files are missing, incomplete or do not belong together, the previous certificate
    /// stays in use.
    pub async fn follow(mut self) {
        let directories = [parent_directory(&self.certificate_path), parent_directory(&self.key_path)];
        loop {
            self.content =
                file_watch::changed(&self.content, &directories, || read(&self.certificate_path, &self.key_path)).await;
            let file = self.certificate_path.display().to_string();
            match self.take() {
                Ok(()) => tracing::info!(%file, "serving a new certificate"),
                Err(error) => {
                    self.metrics.count_trouble(CertificateTrouble::Files);
                    let why = format!("{:#}", anyhow::Error::new(error));
                    tracing::error!(%file, %why, "the new certificate cannot be used; the previous one stays in use");
                }
            }
        }
    }

    /// Serves the content that was read.
    fn take(&mut self) -> Result<(), CertificateError> {
        let (certificate_path, key_path) = (self.certificate_path.as_path(), self.key_path.as_path());
        let [certificate, key] = &self.content;
        let certificate = readable(certificate, certificate_path)?;
        let key = readable(key, key_path)?;
        let parsed = tls::parse(tls::Pem { certificate_path, certificate, key_path, key })?;
        let not_after =
            parsed.end_entity_cert().ok().and_then(|leaf| bundle::validity(leaf)).map(|(_, not_after)| not_after);
        self.certificates.replace(parsed);
        self.metrics.set_expiry(CertificateRole::Leaf, not_after);
        self.metrics.count_step(CertificateStep::Loaded);
        Ok(())
    }
}

fn readable<'c>(content: &'c Result<Vec<u8>, Unread>, path: &Path) -> Result<&'c [u8], CertificateError> {
    content
        .as_deref()
        .map_err(|unread| CertificateError::Unreadable { path: path.to_owned(), source: unread.clone().into() })
}

fn read(certificate: &Path, key: &Path) -> CertificateContent {
    [certificate, key].map(|path| tls::read_pem(path).map_err(Unread::from))
}
