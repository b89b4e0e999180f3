//! Proves that reviews arrive, with a dry run that the API server sends through an entry for probes. The nonce of the dry run comes
//! back in the API server's response.
//!
//! Readiness proves nothing about the path from the API server to a replica. The entries for probes match only probes and always
//! fail closed, so the response contains the API server's own error. An entry that fails open hides the error.

mod obstacle;
mod probe;
mod registration;

pub(crate) use obstacle::Obstacle;
pub(crate) use probe::{Passage, nonce, probe, probe_with};
pub(crate) use registration::{FAIL, OPEN_UNTIL_CALLED, Registration};

/// The name of both webhook configurations.
pub(crate) const CONFIGURATION: &str = "interlock";

/// One of the two webhook configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Half {
    Validating,
    Mutating,
}

impl Half {
    pub(crate) const ALL: [Self; 2] = [Self::Validating, Self::Mutating];

    /// The value of the probe label and of the metric label.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Validating => "validating",
            Self::Mutating => "mutating",
        }
    }

    #[must_use]
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Validating => "ValidatingWebhookConfiguration",
            Self::Mutating => "MutatingWebhookConfiguration",
        }
    }

    /// The plural, as kubectl spells it.
    #[must_use]
    pub(crate) fn resource(self) -> &'static str {
        match self {
            Self::Validating => "validatingwebhookconfigurations",
            Self::Mutating => "mutatingwebhookconfigurations",
        }
    }

    /// The entries through which the probe may go, the preferred one first. Manifests of 0.1.0 have no entry for probes.
    fn probed(self) -> [&'static str; 2] {
        match self {
            Self::Validating => ["probes.interlock.dev", "overrides.interlock.dev"],
            Self::Mutating => ["stamp.probes.interlock.dev", "stamp.overrides.interlock.dev"],
        }
    }

    /// The path of all configurations of this kind.
    fn path(self) -> String {
        format!("/apis/admissionregistration.k8s.io/v1/{}", self.resource())
    }
}
