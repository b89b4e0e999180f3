//! The metrics of the server: the metrics of every room, in one registry.

use std::sync::Arc;

use prometheus_client::registry::Registry;

use crate::readiness::Readiness;
use crate::serve::https::metrics::HttpsMetrics;
use crate::serve::leader::metrics::LeaderMetrics;
use crate::serve::pki::metrics::CertificateMetrics;
use crate::serve::reload::metrics::PolicyMetrics;
use crate::serve::report::metrics::ReportMetrics;
use crate::serve::{openmetrics, process};
use crate::world::kubernetes::IntakeMetrics;

/// The metrics of every room.
#[derive(Default)]
pub(super) struct Metrics {
    pub(super) https: Arc<HttpsMetrics>,
    pub(super) reports: Arc<ReportMetrics>,
    pub(super) certificates: Arc<CertificateMetrics>,
    pub(super) policies: Arc<PolicyMetrics>,
    pub(super) leader: Arc<LeaderMetrics>,
    pub(super) intake: Arc<IntakeMetrics>,
}

impl Metrics {
    /// The registry that `/metrics` shows.
    pub(super) fn registry(&self, readiness: &Readiness) -> Arc<Registry> {
        let mut registry = Registry::default();
        process::register(&mut registry);
        let ours = registry.sub_registry_with_prefix(openmetrics::PREFIX);
        readiness.register(ours);
        self.https.register(ours);
        self.reports.register(ours);
        self.certificates.register(ours);
        self.policies.register(ours);
        self.leader.register(ours);
        self.intake.register(ours);
        Arc::new(registry)
    }
}
