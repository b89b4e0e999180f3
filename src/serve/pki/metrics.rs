//! Metrics of the certificates.

use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::serve::openmetrics::{label, metrics};

metrics! {
    /// Metrics of the certificates.
    pub struct CertificateMetrics {
        /// Expiry of a certificate, in seconds since 1970: the current CA, the next one, and the serving certificate
        cert_not_after: Family<CertificateRole, Gauge>, Seconds;
        /// Changes of certificates
        cert_steps: Family<CertificateStep, Counter>;
        /// Failures around certificates
        cert_troubles: Family<CertificateTrouble, Counter>;
    }
}

label! {
    /// The role of a certificate.
    pub enum CertificateRole: "role" {
        /// The CA that signs leaves.
        Ca => "ca",
        /// The CA that signs leaves after the next promotion.
        Next => "next",
        /// The certificate that this replica serves.
        Leaf => "leaf",
    }
}

label! {
    /// A change of certificates.
    pub enum CertificateStep: "step" {
        /// The Secret of the CA was created.
        Created => "created",
        /// An unusable Secret was replaced.
        Replaced => "replaced",
        /// A leaf was signed.
        Signed => "signed",
        /// CAs were added to caBundles that lacked them.
        Healed => "healed",
        /// A rotation began.
        Begun => "begun",
        /// The next CA became the current one.
        Promoted => "promoted",
        /// The old CA was removed from the Secret's bundle.
        Retired => "retired",
        /// Foreign CAs were removed from the caBundles.
        Tidied => "tidied",
        /// Changed files were loaded.
        Loaded => "loaded",
    }
}

label! {
    /// A failure around certificates.
    pub enum CertificateTrouble: "reason" {
        /// The API server did not answer, or denied the request.
        Read => "read",
        /// The API server rejected a write.
        Write => "write",
        /// The Secret cannot be used.
        Secret => "secret",
        /// No leaf could be signed.
        Sign => "sign",
        /// The files cannot be used.
        Files => "files",
    }
}

impl CertificateMetrics {
    /// Sets the expiry of the certificate in a role. `None` if there is no such certificate.
    pub fn set_expiry(&self, role: CertificateRole, not_after: Option<Timestamp>) {
        match not_after {
            Some(not_after) => _ = self.cert_not_after.get_or_create(&role).set(not_after.as_second()),
            None => _ = self.cert_not_after.remove(&role),
        }
    }

    /// Counts a change.
    pub fn count_step(&self, step: CertificateStep) {
        self.cert_steps.get_or_create(&step).inc();
    }

    /// Counts a failure.
    pub fn count_trouble(&self, reason: CertificateTrouble) {
        self.cert_troubles.get_or_create(&reason).inc();
    }
}
