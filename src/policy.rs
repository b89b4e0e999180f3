//! The checked policy: which rules are enforced, and how.

mod file;
mod select;
mod settings;

use std::path::Path;

pub use file::PolicyError;
pub use select::UserGlobs;
pub use settings::{Mode, OnUndecided, Recovery, RollbackWay, RuleSettings};

use crate::rules::RuleId;

/// What is in force.
#[derive(Debug, Clone)]
pub struct Policy {
    rules: [RuleSettings; RuleId::ALL.len()],
    /// The ways out of a stuck operation.
    pub recovery: Recovery,
    /// Users that drive releases for others and may change over one another's work: Flux, Sveltos, OLM, Fleet.
    pub managers: UserGlobs,
    /// Users that restore records from a backup.
    pub tools: UserGlobs,
}

impl Policy {
    /// Reads `cluster.yaml` of a policy directory.
    ///
    /// # Errors
    /// Names the file, and line and column where the file is readable but wrong.
    pub fn load(directory: &Path) -> Result<Self, PolicyError> {
        file::load(&directory.join("cluster.yaml"))
    }

    /// Checks the text of a cluster policy; `source` names it in errors.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn parse(text: &str, source: &Path) -> Result<Self, PolicyError> {
        file::parse(text, source)
    }

    /// The policy that is shipped as `policies/cluster.yaml`, for a start without policy files.
    ///
    /// # Errors
    /// Never in a build whose tests passed: one of them reads it.
    pub fn shipped() -> Result<Self, PolicyError> {
        file::parse(include_str!("../policies/cluster.yaml"), Path::new("policies/cluster.yaml"))
    }

    /// The settings of a rule.
    #[must_use]
    pub fn rule(&self, rule: RuleId) -> RuleSettings {
        self.rules[rule as usize]
    }
}
