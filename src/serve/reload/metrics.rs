//! Metrics of the policies in force.

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::serve::openmetrics;

/// The result of a change of policy files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReloadResult {
    /// All files are in force.
    Good,
    /// All files are in force, except invalid ones of some namespaces.
    Partly,
    /// The change is ignored, and the policies in force stay.
    Bad,
}

/// Metrics of the policies in force.
#[derive(Debug, Default)]
pub struct PolicyMetrics {
    reloads: Family<ReloadLabels, Counter>,
    errors: Gauge,
    loaded: Gauge,
}

impl PolicyMetrics {
    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("policy_reloads", "Changes of policy files, by result", self.reloads.clone());
        registry.register("policy_errors", "Errors in the policy files as they are now", self.errors.clone());
        registry.register_with_unit(
            "policy_loaded_timestamp",
            "When the policies in force were loaded, in seconds since 1970",
            Unit::Seconds,
            self.loaded.clone(),
        );
    }

    /// Sets the time at which the policies in force were loaded.
    pub fn set_loaded(&self, at: Timestamp) {
        self.loaded.set(at.as_second());
    }

    /// Counts a change of files, which now have `errors` errors.
    pub fn count_reload(&self, result: ReloadResult, errors: usize) {
        self.reloads.get_or_create(&ReloadLabels { result }).inc();
        self.errors.set(i64::try_from(errors).unwrap_or(i64::MAX));
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabels {
    result: ReloadResult,
}

openmetrics::named!(ReloadResult { Good => "good", Partly => "partly", Bad => "bad" });
