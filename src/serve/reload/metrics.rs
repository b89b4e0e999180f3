//! What is told of the policies in force.

use std::fmt;

use jiff::Timestamp;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// How policy files that changed were taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reloaded {
    /// All of them.
    Good,
    /// Without those of namespaces that were wrong.
    Partly,
    /// Not at all: what was in force stays.
    Bad,
}

/// The policies in force.
#[derive(Debug, Default)]
pub struct PolicyMetrics {
    reloads: Family<ReloadLabels, Counter>,
    errors: Gauge,
    loaded: Gauge,
}

impl PolicyMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("policy_reloads", "Changes of policy files, by what came of them", self.reloads.clone());
        registry.register("policy_errors", "Errors in the policy files as they are now", self.errors.clone());
        registry.register_with_unit(
            "policy_loaded_timestamp",
            "When the policies in force were taken up, since 1970",
            Unit::Seconds,
            self.loaded.clone(),
        );
    }

    /// Policies were taken up.
    pub fn loaded(&self, at: Timestamp) {
        self.loaded.set(at.as_second());
    }

    /// Files have changed, and now have so many errors.
    pub fn reloaded(&self, result: Reloaded, errors: usize) {
        self.reloads.get_or_create(&ReloadLabels { result }).inc();
        self.errors.set(i64::try_from(errors).unwrap_or(i64::MAX));
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabels {
    result: Reloaded,
}

impl EncodeLabelValue for Reloaded {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        match self {
            Self::Good => "good",
            Self::Partly => "partly",
            Self::Bad => "bad",
        }
        .encode(encoder)
    }
}
