//! All metrics of the server, in one registry.

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

/// The metrics of each module.
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
        let own = registry.sub_registry_with_prefix(openmetrics::PREFIX);
        readiness.register(own);
        self.https.register(own);
        self.reports.register(own);
        self.certificates.register(own);
        self.policies.register(own);
        self.leader.register(own);
        self.intake.register(own);
        Arc::new(registry)
    }
}
