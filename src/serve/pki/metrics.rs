//! Metrics of the certificates.

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::serve::openmetrics;

/// The role of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CertificateRole {
    /// The CA that signs leaves.
    Ca,
    /// The CA that signs leaves after the next promotion.
    Next,
    /// The certificate that this replica serves.
    Leaf,
}

/// A change of certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CertificateStep {
    /// The Secret of the CA was created.
    Created,
    /// An unusable Secret was replaced.
    Replaced,
    /// A leaf was signed.
    Signed,
    /// CAs were added to caBundles that lacked them.
    Healed,
    /// A rotation began.
    Begun,
    /// The next CA became the current one.
    Promoted,
    /// The old CA was removed from the Secret's bundle.
    Retired,
    /// Foreign CAs were removed from the caBundles.
    Tidied,
    /// Changed files were loaded.
    Loaded,
}

/// A failure around certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CertificateTrouble {
    /// The API server did not answer, or denied the request.
    Read,
    /// The API server rejected a write.
    Write,
    /// The Secret cannot be used.
    Secret,
    /// No leaf could be signed.
    Sign,
    /// The files cannot be used.
    Files,
}

/// Metrics of the certificates.
#[derive(Debug, Default)]
pub struct CertificateMetrics {
    not_after: Family<RoleLabels, Gauge>,
    steps: Family<StepLabels, Counter>,
    troubles: Family<TroubleLabels, Counter>,
}

impl CertificateMetrics {
    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "cert_not_after",
            "Expiry of a certificate, in seconds since 1970: the current CA, the next one, and the serving certificate",
            Unit::Seconds,
            self.not_after.clone(),
        );
        registry.register("cert_steps", "Changes of certificates", self.steps.clone());
        registry.register("cert_troubles", "Failures around certificates", self.troubles.clone());
    }

    /// Sets the expiry of the certificate in a role. `None` if there is no such certificate.
    pub fn set_expiry(&self, role: CertificateRole, not_after: Option<Timestamp>) {
        match not_after {
            Some(not_after) => _ = self.not_after.get_or_create(&RoleLabels { role }).set(not_after.as_second()),
            None => _ = self.not_after.remove(&RoleLabels { role }),
        }
    }

    /// Counts a change.
    pub fn count_step(&self, step: CertificateStep) {
        self.steps.get_or_create(&StepLabels { step }).inc();
    }

    /// Counts a failure.
    pub fn count_trouble(&self, reason: CertificateTrouble) {
        self.troubles.get_or_create(&TroubleLabels { reason }).inc();
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RoleLabels {
    role: CertificateRole,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    step: CertificateStep,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TroubleLabels {
    reason: CertificateTrouble,
}

openmetrics::named!(CertificateRole { Ca => "ca", Next => "next", Leaf => "leaf" });
openmetrics::named!(CertificateStep {
    Created => "created",
    Replaced => "replaced",
    Signed => "signed",
    Healed => "healed",
    Begun => "begun",
    Promoted => "promoted",
    Retired => "retired",
    Tidied => "tidied",
    Loaded => "loaded",
});
openmetrics::named!(CertificateTrouble {
    Read => "read",
    Write => "write",
    Secret => "secret",
    Sign => "sign",
    Files => "files",
});
