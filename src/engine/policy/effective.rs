//! One policy, checked and whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;

use super::globs::Globs;
use super::ignore::IgnoredFields;
use super::scalable_resource::ScalableResource;
use super::scope::Scope;
use super::settings::{
    DroppedBundlesSettings, OnUndecided, OverrideSettings, RecoverySettings, RuleSettings, StartedBy,
};
use crate::engine::facts::Facts;
use crate::engine::rule::{Mode, RuleId};

/// What is in force.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Of every rule.
    pub(in crate::engine) rules: Vec<(RuleId, RuleSettings)>,
    /// Who may start operations.
    pub started_by: StartedBy,
    /// The ways out of a stuck operation.
    pub recovery: RecoverySettings,
    /// What becomes of commits of Sveltos that are not whole.
    pub dropped_bundles: DroppedBundlesSettings,
    /// What ReleaseOverrides may do.
    pub overrides: OverrideSettings,
    /// The same of the namespaces that bound them further.
    pub(in crate::engine) bounds: Arc<BTreeMap<String, OverrideSettings>>,
    /// Users that drive releases for others and may change over one another's work: Flux, Sveltos, OLM, Fleet.
    pub managers: Globs,
    /// Users that restore records from a backup.
    pub tools: Globs,
    /// Users that complete the objects of releases for others, beside the controllers of Kubernetes itself.
    pub controllers: Globs,
    /// Fields that anybody may change.
    pub ignore: Vec<IgnoredFields>,
    /// Resources with a scale subresource.
    pub(in crate::engine) scalable_resources: Vec<ScalableResource>,
    /// How long the former holder of a failed operation may go on writing the objects of its release.
    pub grace_after_failure: SignedDuration,
}

impl Policy {
    /// A cancelled upgrade goes on applying what it has begun, and clean-up deletes after the record says `failed`.
    pub(in crate::engine) const GRACE_AFTER_FAILURE: SignedDuration = SignedDuration::from_secs(60);

    /// What this policy can tell a request apart by.
    #[must_use]
    pub fn scope<'s>(&'s self, facts: &'s Facts<'s>) -> Scope<'s> {
        Scope::of(facts, &self.scalable_resources)
    }

    /// What is known of a resource with a scale subresource.
    #[must_use]
    pub fn scalable_resource(&self, group: &str, resource: &str) -> Option<&ScalableResource> {
        self.scalable_resources.iter().find(|known| known.is(group, resource))
    }

    /// How a rule is applied to a request: by the first of its cases that holds.
    #[must_use]
    pub fn mode(&self, rule: RuleId, scope: &Scope<'_>) -> Mode {
        self.settings(rule).map_or(rule.specification().mode, |settings| settings.mode(scope))
    }

    /// What ReleaseOverrides of a namespace may do, which bounds them wherever the request is: objects of its releases lie
    /// elsewhere too, some of them in no namespace.
    #[must_use]
    pub fn overrides_in(&self, namespace: &str) -> OverrideSettings {
        self.bounds.get(namespace).map_or_else(|| self.overrides.clone(), |bounds| self.overrides.stricter(bounds))
    }

    /// What a rule does when it could not learn what it needs; `None` where the policy does not say.
    #[must_use]
    pub fn on_undecided(&self, rule: RuleId) -> Option<OnUndecided> {
        self.settings(rule).and_then(|settings| settings.on_undecided)
    }

    fn settings(&self, rule: RuleId) -> Option<&RuleSettings> {
        self.rules.iter().find(|(id, _)| *id == rule).map(|(_, settings)| settings)
    }

    /// The settings of a rule, for a namespace that says something of it.
    pub(in crate::engine) fn settings_mut(&mut self, rule: RuleId) -> &mut RuleSettings {
        let place = self.rules.iter().position(|(id, _)| *id == rule).unwrap_or_else(|| {
            self.rules.push((rule, RuleSettings::shipped(rule)));
            self.rules.len() - 1
        });
        &mut self.rules[place].1
    }
}
