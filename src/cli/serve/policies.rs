//! The policies of the server, and the directory that the server follows.

use std::path::{Path, PathBuf};

use interlock_engine::policy::Policies;
use interlock_engine::policy_files::{ChangedMeaning, LoadedPolicies, PolicyFiles};
use jiff::Timestamp;

use super::shared::Shared;
use crate::judge::Judge;
use crate::serve::reload::{Reload, log_warnings};
use crate::world::policy_directory;

const DEFAULT_DIRECTORY: &str = "policies";

/// The policies at the start, and the source of later ones.
pub(super) struct PolicySource {
    pub(super) policies: Policies,
    pub(super) directory: PolicyDirectory,
}

/// A directory and the files that were read from it. `None` for the shipped policy, which cannot change.
pub(super) struct PolicyDirectory(Option<(PathBuf, PolicyFiles)>);

impl PolicySource {
    /// Reads the named directory, or `policies/` if it exists, or the shipped policy.
    pub(super) fn load(named: Option<&Path>) -> anyhow::Result<Self> {
        let directory = named.or_else(|| Some(Path::new(DEFAULT_DIRECTORY)).filter(|directory| directory.exists()));
        if directory.is_none() {
            tracing::info!("the shipped policy is in force, because there is no directory {DEFAULT_DIRECTORY}");
        }
        let files = directory.map_or_else(PolicyFiles::shipped, policy_directory::read);
        let loaded = LoadedPolicies::of(&files);
        log_warnings(&loaded.warnings);
        log_changed(&files.changed_meanings());
        let policies = loaded.into_policies()?;
        let directory = PolicyDirectory(directory.map(|directory| (directory.to_owned(), files)));
        Ok(Self { policies, directory })
    }
}

/// Logs settings whose meaning changed when the shipped policy became the base of every file.
fn log_changed(changed: &[ChangedMeaning]) {
    for ChangedMeaning { path, before, now } in changed {
        tracing::info!(%path, %before, %now, "since files state differences from the shipped policy, cluster.yaml means something else");
    }
}

impl PolicyDirectory {
    /// Follows the directory, so that the judge applies changed policies.
    pub(super) fn follow(self, judge: &Judge, shared: &Shared) {
        let Some((directory, files)) = self.0 else {
            shared.metrics.policies.set_loaded(Timestamp::now());
            return;
        };
        let reload = Reload::new(&directory, files, judge.policies(), shared.metrics.policies.clone());
        let state = reload.state();
        shared.readiness.note("policies", move || state.borrow().to_string());
        tokio::spawn(reload.follow());
    }
}
