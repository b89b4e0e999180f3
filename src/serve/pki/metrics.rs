//! What is told of the certificates.

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::label;

/// Which certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The CA that signs.
    Ca,
    /// The CA that will.
    Next,
    /// What this replica serves.
    Leaf,
}

/// What was done about certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Done {
    /// The Secret of the CA was made.
    Created,
    /// A Secret that could not be used was made anew.
    Replaced,
    /// A leaf was signed.
    Signed,
    /// CAs were added to caBundles that lacked them.
    Healed,
    /// A rotation began.
    Begun,
    /// The next CA became the current one.
    Promoted,
    /// The old CA left the bundle.
    Retired,
    /// CAs of nobody were taken out of the caBundles.
    Tidied,
    /// Files that changed were taken up.
    Loaded,
}

/// What went wrong about certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// The API server did not answer, or forbade it.
    Read,
    /// It did not take what was to be written.
    Write,
    /// The Secret cannot be used.
    Secret,
    /// No leaf could be signed.
    Sign,
    /// The files cannot be used.
    Files,
}

/// The certificates.
#[derive(Debug, Default)]
pub struct CertificateMetrics {
    not_after: Family<RoleLabels, Gauge>,
    done: Family<DoneLabels, Counter>,
    troubles: Family<TroubleLabels, Counter>,
}

impl CertificateMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "cert_not_after",
            "When a certificate ends, since 1970: our CA, the one that follows it, and what this replica serves",
            Unit::Seconds,
            self.not_after.clone(),
        );
        registry.register("cert_steps", "What was done about certificates", self.done.clone());
        registry.register("cert_troubles", "What went wrong about certificates", self.troubles.clone());
    }

    /// There is a certificate in this role, or none any more.
    pub fn lasts(&self, role: Role, not_after: Option<Timestamp>) {
        match not_after {
            Some(not_after) => _ = self.not_after.get_or_create(&RoleLabels { role }).set(not_after.as_second()),
            None => _ = self.not_after.remove(&RoleLabels { role }),
        }
    }

    /// Something was done.
    pub fn done(&self, step: Done) {
        self.done.get_or_create(&DoneLabels { step }).inc();
    }

    /// Something went wrong.
    pub fn trouble(&self, reason: Trouble) {
        self.troubles.get_or_create(&TroubleLabels { reason }).inc();
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RoleLabels {
    role: Role,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DoneLabels {
    step: Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TroubleLabels {
    reason: Trouble,
}

label::named!(Role { Ca => "ca", Next => "next", Leaf => "leaf" });
label::named!(Done {
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
label::named!(Trouble {
    Read => "read",
    Write => "write",
    Secret => "secret",
    Sign => "sign",
    Files => "files",
});
