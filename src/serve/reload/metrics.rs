//! Metrics of the policies in force.

use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::serve::openmetrics::{label, metrics};

metrics! {
    /// Metrics of the policies in force.
    pub struct PolicyMetrics {
        /// Changes of policy files, by result
        policy_reloads: Family<ReloadResult, Counter>;
        /// Errors in the policy files as they are now
        policy_errors: Gauge;
        /// When the policies in force were loaded, in seconds since 1970
        policy_loaded_timestamp: Gauge, Seconds;
    }
}

label! {
    /// The result of a change of policy files.
    pub enum ReloadResult: "result" {
        /// All files are in force.
        Good => "good",
        /// All files are in force, except invalid ones of some namespaces.
        Partly => "partly",
        /// The change is ignored, and the policies in force stay.
        Bad => "bad",
    }
}

impl PolicyMetrics {
    /// Sets the time at which the policies in force were loaded.
    pub fn set_loaded(&self, at: Timestamp) {
        self.policy_loaded_timestamp.set(at.as_second());
    }

    /// Counts a change of files, which now have `errors` errors.
    pub fn count_reload(&self, result: ReloadResult, errors: usize) {
        self.policy_reloads.get_or_create(&result).inc();
        self.policy_errors.set(i64::try_from(errors).unwrap_or(i64::MAX));
    }
}
