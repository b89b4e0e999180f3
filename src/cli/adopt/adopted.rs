//! What a log, the cluster and the metrics say.

use serde::Serialize;

use super::cluster::ClusterState;
use super::metrics::CountedRule;
use crate::offline::adopt::AdoptReport;

#[derive(Debug, Serialize)]
pub(super) struct Adopted {
    #[serde(flatten)]
    pub(super) report: AdoptReport,
    /// `None` if no cluster was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<ClusterState>,
    /// By the metrics of the replicas.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) counted: Vec<CountedRule>,
}

impl Adopted {
    /// What the cluster and the metrics say, in sentences.
    pub(super) fn of_cluster(&self) -> Vec<String> {
        let state = self.cluster.as_ref().map(ClusterState::sentences).unwrap_or_default();
        state.into_iter().chain(self.counted.iter().map(CountedRule::sentence)).collect()
    }
}
