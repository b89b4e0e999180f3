//! All metrics of the server, in one registry.

use std::borrow::Cow;
use std::sync::Arc;

use prometheus_client::registry::Registry;

use crate::cluster_name::ClusterName;
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
    /// The registry that `/metrics` shows. Each metric has the label `cluster` if the cluster has a name.
    pub(super) fn registry(&self, readiness: &Readiness, cluster: Option<&ClusterName>) -> Arc<Registry> {
        let label = cluster.map(|name| (Cow::Borrowed("cluster"), Cow::Owned(name.to_string())));
        let mut registry = Registry::with_labels(label.into_iter());
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
