//! SveltosCluster: a managed cluster. ClusterProfile and Profile: what users want on clusters.

use serde::Deserialize;

use crate::engine::json::null_is_default;
use crate::engine::object::Metadata;

/// A SveltosCluster.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SveltosCluster {
    /// How it is reached.
    #[serde(deserialize_with = "null_is_default")]
    pub spec: SveltosClusterSpec,
}

/// How a cluster is reached.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SveltosClusterSpec {
    /// Whether an agent on it fetches what is to be deployed.
    #[serde(deserialize_with = "null_is_default")]
    pub pull_mode: bool,
}

/// A ClusterProfile or Profile, of which a rule reads annotations alone.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Profile<'a> {
    /// Its metadata.
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
}
