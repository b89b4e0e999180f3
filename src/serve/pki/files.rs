//! A serving certificate from files, as cert-manager's Secret mounts them. It is reloaded when the files change and belong
//! together.

use std::path::PathBuf;
use std::sync::Arc;

use super::authority;
use super::metrics::{CertificateMetrics, CertificateRole, CertificateStep, CertificateTrouble};
use super::tls::{self, CertificateError, Certificates};
use crate::file_watch::{self, parent_directory};
use crate::regular_file::Unread;

/// Follows the files of a certificate chain and its key.
pub struct CertificateFiles {
    certificate_path: PathBuf,
    key_path: PathBuf,
    content: CertificateContent,
    certificates: Arc<Certificates>,
    metrics: Arc<CertificateMetrics>,
}

/// Both files, read at the same time.
#[derive(PartialEq)]
struct CertificateContent {
    certificate: Result<Vec<u8>, Unread>,
    key: Result<Vec<u8>, Unread>,
}

impl CertificateFiles {
    /// Reads both files and serves the certificate.
    ///
    /// # Errors
    /// [`CertificateError`] names the file and the way out.
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

    /// The served certificate, which later changes replace.
    #[must_use]
    pub fn certificates(&self) -> Arc<Certificates> {
        Arc::clone(&self.certificates)
    }

    /// Follows the files until it is dropped. Files that are missing, incomplete or do not belong together change nothing.
    pub async fn follow(mut self) {
        let directories = [parent_directory(&self.certificate_path), parent_directory(&self.key_path)];
        loop {
            let reads = || read(&self.certificate_path, &self.key_path);
            self.content = file_watch::changed(&self.content, &directories, reads).await;
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
        let bytes = |read: &Result<Vec<u8>, Unread>, path: &PathBuf| {
            let unreadable = |why: Unread| CertificateError::Unreadable { path: path.clone(), source: why.into() };
            read.clone().map_err(unreadable)
        };
        let certificate = bytes(&self.content.certificate, &self.certificate_path)?;
        let key = bytes(&self.content.key, &self.key_path)?;
        let (certificate_path, key_path) = (self.certificate_path.as_path(), self.key_path.as_path());
        let parsed = tls::parse(tls::Pem { certificate_path, certificate: &certificate, key_path, key: &key })?;
        let not_after = parsed.end_entity_cert().ok().and_then(authority::not_after);
        self.certificates.replace(parsed);
        self.metrics.set_expiry(CertificateRole::Leaf, not_after);
        self.metrics.count_step(CertificateStep::Loaded);
        Ok(())
    }
}

fn read(certificate: &PathBuf, key: &PathBuf) -> CertificateContent {
    let read = |path: &PathBuf| tls::read_pem(path).map_err(Unread::from);
    CertificateContent { certificate: read(certificate), key: read(key) }
}
