//! The checked policy: which rules are enforced, and how.

mod checked;
mod directory;
mod file;
mod globs;
mod ignore;
mod in_force;
mod layers;
mod namespace;
mod problem;
mod scalable;
mod scope;
mod settings;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::SignedDuration;

pub(crate) use directory::is_label;
pub use directory::{Files, NAMESPACES};
pub use file::{nearest_to, schema};
pub use globs::Globs;
pub use ignore::Ignored;
pub use in_force::{InForce, Origin, RuleInForce, SettingDoc, SettingInForce, in_force, settings_of};
pub use layers::{Policies, Reading};
pub use problem::{Place, PolicyError, Problem};
pub use scalable::Scalable;
pub use scope::{Scope, When};
pub use settings::{
    Consent, DEFAULT_NAMESPACE, Mode, Modes, OnUndecided, Overrides, Recovery, RollbackWay, Rollouts, RuleSettings,
    Starters, Unexplained,
};

use super::rules::RuleId;
use file::Kind;
use problem::{Problems, Source};

/// What is in force.
#[derive(Debug, Clone)]
pub struct Policy {
    rules: [RuleSettings; RuleId::ALL.len()],
    /// Who may start operations.
    pub started_by: Starters,
    /// The ways out of a stuck operation.
    pub recovery: Recovery,
    /// What becomes of commits of Sveltos that are not whole.
    pub rollouts: Rollouts,
    /// What ReleaseOverrides may do.
    pub overrides: Overrides,
    /// The same of the namespaces that bound them further.
    bounds: Arc<BTreeMap<String, Overrides>>,
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
    /// A cancelled upgrade goes on applying what it has begun, and clean-up deletes after the record says `failed`.
    const GRACE_AFTER_FAILURE: SignedDuration = SignedDuration::from_secs(60);

    /// Checks the text of a cluster policy; `source` names it in errors.
    ///
    /// # Errors
    /// Everything that is wrong, with the places.
    pub fn parse(text: &str, source: &Path) -> Result<Self, PolicyError> {
        let source = Source { path: source.to_owned(), text: text.to_owned() };
        let mut problems = Problems::of(&source);
        let file = file::read(&source, Kind::Cluster, &mut problems);
        if problems.is_empty() {
            Ok(checked::cluster(&file))
        } else {
            Err(PolicyError { problems: problems.into_list() })
        }
    }

    /// The policy that is shipped as `policies/cluster.yaml`, for a start without policy files.
    ///
    /// # Errors
    /// Never in a build whose tests passed: one of them reads it.
    pub fn shipped() -> Result<Self, PolicyError> {
        Self::parse(include_str!("../../policies/cluster.yaml"), Path::new("policies/cluster.yaml"))
    }

    /// What is known of a resource with a scale subresource.
    #[must_use]
    pub fn scalable(&self, group: &str, resource: &str) -> Option<&Scalable> {
        self.scalable.iter().find(|known| known.group == group && known.resource == resource)
    }

    /// How a rule is applied to a request: by the first of its cases that holds.
    #[must_use]
    pub fn mode(&self, rule: RuleId, scope: &Scope<'_>) -> Mode {
        self.rules[rule as usize].mode(scope)
    }

    /// What ReleaseOverrides of a namespace may do, which bounds them wherever the request is: objects of its releases lie
    /// elsewhere too, some of them in no namespace.
    #[must_use]
    pub fn overrides_in(&self, namespace: &str) -> Overrides {
        self.bounds.get(namespace).map_or_else(|| self.overrides.clone(), |bounds| self.overrides.stricter(bounds))
    }

    /// What a rule does when it could not learn what it needs; `None` where the policy does not say.
    #[must_use]
    pub fn on_undecided(&self, rule: RuleId) -> Option<OnUndecided> {
        self.rules[rule as usize].on_undecided
    }
}

#[cfg(test)]
mod tests;
