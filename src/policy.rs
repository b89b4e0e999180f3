//! The checked policy: which rules are enforced, and how.

mod file;
mod globs;
mod ignore;
mod layers;
mod scalable;
mod scope;
mod settings;

use std::path::Path;

use jiff::SignedDuration;

pub use file::PolicyError;
pub use globs::Globs;
pub use ignore::Ignored;
pub use layers::Policies;
pub use scalable::Scalable;
pub use scope::{Scope, When};
pub use settings::{Consent, Mode, OnUndecided, Recovery, RollbackWay, Rollouts, RuleSettings, Unexplained};

use crate::rules::RuleId;

/// What is in force.
#[derive(Debug, Clone)]
pub struct Policy {
    rules: [RuleSettings; RuleId::ALL.len()],
    /// The ways out of a stuck operation.
    pub recovery: Recovery,
    /// What becomes of commits of Sveltos that are not whole.
    pub rollouts: Rollouts,
    /// Users that drive releases for others and may change over one another's work: Flux, Sveltos, OLM, Fleet.
    pub managers: Globs,
    /// Users that restore records from a backup.
    pub tools: Globs,
    /// Users that complete the objects of releases for others, beside the controllers of Kubernetes itself.
    pub controllers: Globs,
    /// Fields that anybody may change.
    pub ignore: Vec<Ignored>,
    /// Resources with a scale subresource.
    scalable: Vec<Scalable>,
    /// How long the former holder of a failed operation may go on writing the objects of its release.
    pub grace_after_failure: SignedDuration,
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

    /// What is known of a resource with a scale subresource.
    #[must_use]
    pub fn scalable(&self, group: &str, resource: &str) -> Option<&Scalable> {
        self.scalable.iter().find(|known| known.group == group && known.resource == resource)
    }

    /// How a rule is applied to a request: by the first of its cases that holds.
    #[must_use]
    pub fn mode(&self, rule: RuleId, scope: &Scope<'_>) -> Mode {
        let settings = &self.rules[rule as usize];
        let case = settings.cases.iter().find(|(when, _)| when.holds(scope));
        case.map_or(settings.mode, |(_, mode)| *mode)
    }

    /// What a rule does when it could not learn what it needs; `None` where the policy does not say.
    #[must_use]
    pub fn on_undecided(&self, rule: RuleId) -> Option<OnUndecided> {
        self.rules[rule as usize].on_undecided
    }
}
