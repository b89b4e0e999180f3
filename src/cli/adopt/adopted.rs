//! What a log and the cluster say.

use serde::Serialize;

use super::cluster::ClusterState;
use crate::offline::adopt::AdoptReport;

#[derive(Debug, Serialize)]
pub(super) struct Adopted {
    #[serde(flatten)]
    pub(super) report: AdoptReport,
    /// `None` if no cluster was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<ClusterState>,
}
