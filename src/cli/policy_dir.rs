//! The argument that names a directory of policies.

use std::path::PathBuf;

use interlock_engine::policy::Policies;

use crate::world::policy_directory;

/// The policies to apply.
#[derive(Debug, clap::Args)]
pub(super) struct PolicyDir {
    /// Directory with cluster.yaml [default: the policy shipped with this binary]
    #[arg(long, value_name = "DIR", env = "INTERLOCK_POLICIES")]
    pub(super) policies: Option<PathBuf>,
}

impl PolicyDir {
    pub(super) fn load(&self) -> anyhow::Result<Policies> {
        Ok(policy_directory::load_or_shipped(self.policies.as_deref())?)
    }
}
