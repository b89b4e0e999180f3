//! SveltosCluster: a managed cluster. ClusterProfile and Profile: what users want on clusters.

use serde::Deserialize;

use crate::json::null_is_default;
use crate::object::Metadata;

/// A SveltosCluster.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SveltosCluster {
    #[serde(deserialize_with = "null_is_default")]
    pub spec: SveltosClusterSpec,
}

/// `spec` of a SveltosCluster.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SveltosClusterSpec {
    /// Whether an agent on the cluster pulls the configuration.
    #[serde(deserialize_with = "null_is_default")]
    pub pull_mode: bool,
}

/// A ClusterProfile or Profile. Rules read only its annotations.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Profile<'a> {
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
}
