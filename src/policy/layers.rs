//! The layers of policy: that of the cluster, and over it those of namespaces.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{Policy, PolicyError};

/// What is in force where.
#[derive(Debug, Clone)]
pub struct Policies {
    cluster: Arc<Policy>,
    namespaces: BTreeMap<String, Arc<Policy>>,
}

impl Policies {
    /// Reads a directory of policies.
    ///
    /// # Errors
    /// Names the file, and line and column where the file is readable but wrong.
    pub fn load(directory: &Path) -> Result<Self, PolicyError> {
        Policy::load(directory).map(Self::from)
    }

    /// Those of a directory where one is named, otherwise the shipped policy.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_or_shipped(directory: Option<&Path>) -> Result<Self, PolicyError> {
        directory.map_or_else(|| Policy::shipped().map(Self::from), Self::load)
    }

    /// The policy for requests about objects of a namespace; empty for cluster-scoped ones.
    #[must_use]
    pub fn of(&self, namespace: &str) -> &Arc<Policy> {
        self.namespaces.get(namespace).unwrap_or(&self.cluster)
    }
}

impl From<Policy> for Policies {
    fn from(policy: Policy) -> Self {
        Self { cluster: Arc::new(policy), namespaces: BTreeMap::new() }
    }
}
