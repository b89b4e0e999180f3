//! The policy that is in force for the cluster or for a namespace.

use std::iter;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::accounts::Accounts;
use super::freeze::{Freeze, LimitedFreeze, TeamFreezeSettings};
use super::globs::Globs;
use super::ignore::IgnoredFields;
use super::namespaces::{ByNamespace, NamespaceLabels, know_all};
use super::protected::Protected;
use super::scalable_resource::ScalableResource;
use super::scope::Scope;
use super::settings::{
    DriftExceptions, DroppedBundlesSettings, OnUndecided, OverrideSettings, RecoverySettings, RuleSettings, Share,
    StartedBy,
};
use crate::facts::Facts;
use crate::release::status::Transitions;
use crate::rule::{Mode, RuleId};

/// A checked policy.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The maximum mode of all rules. Only the cluster policy sets it.
    pub cap: Mode,
    pub(crate) rules: Vec<(RuleId, RuleSettings)>,
    pub started_by: StartedBy,
    pub recovery: RecoverySettings,
    /// What happens to incomplete commits of Sveltos.
    pub dropped_bundles: DroppedBundlesSettings,
    /// How many children an object may lose without a confirmation.
    pub may_lose: Share,
    pub overrides: OverrideSettings,
    /// The settings of the namespaces that restrict overrides further.
    pub(crate) bounds: Arc<ByNamespace<OverrideSettings>>,
    /// The releases that nobody may remove.
    pub protected: Protected,
    /// Users that deploy releases for others and may take over each other's operations: Flux, Sveltos, OLM, Fleet.
    pub managers: Globs,
    /// Users that restore records from a backup.
    pub tools: Globs,
    /// Users that write the objects of releases as part of their work, apart from the controllers of Kubernetes itself.
    pub controllers: Globs,
    /// The users that are platforms and pipelines. Only the cluster policy lists them.
    pub accounts: Arc<Accounts>,
    /// Fields that every user may change.
    pub ignore: Vec<IgnoredFields>,
    pub(crate) scalable_resources: Vec<ScalableResource>,
    /// How long after a failure the user of the operation may still write the objects of its release.
    pub grace_after_failure: SignedDuration,
    /// The exceptions from the rules about objects that people declare in HelmReleases.
    pub drift_exceptions: DriftExceptions,
    /// When no operation may start. Every policy contains the freezes of all namespaces.
    pub freezes: Arc<[Freeze]>,
    /// The limits for Freezes that namespaces store in the cluster. Only the cluster policy sets them.
    pub team_freezes: TeamFreezeSettings,
    /// The labels of a release's Namespace that its Events and reports contain. Only the cluster policy lists them.
    pub report_labels: Vec<String>,
    /// No key of a policy file sets this field.
    pub transitions: Transitions,
}

/// The values of keys that are in no file.
impl Default for Policy {
    fn default() -> Self {
        Self {
            cap: Mode::Enforce,
            rules: Vec::new(),
            started_by: StartedBy::Anybody,
            recovery: RecoverySettings::default(),
            dropped_bundles: DroppedBundlesSettings::default(),
            may_lose: Share::default(),
            overrides: OverrideSettings::default(),
            bounds: Arc::default(),
            protected: Protected::default(),
            managers: Globs::default(),
            tools: Globs::default(),
            controllers: Globs::default(),
            accounts: Arc::default(),
            ignore: Vec::new(),
            scalable_resources: ScalableResource::built_in(),
            // A cancelled upgrade continues to apply objects, and its clean-up deletes objects after the record's status is
            // `failed`.
            grace_after_failure: SignedDuration::from_secs(60),
            drift_exceptions: DriftExceptions::default(),
            freezes: Arc::default(),
            team_freezes: TeamFreezeSettings::default(),
            report_labels: Vec::new(),
            transitions: Transitions::default(),
        }
    }
}

impl Policy {
    /// The scope of a request under this policy.
    #[must_use]
    pub fn scope<'s>(&'s self, facts: &'s Facts<'s>) -> Scope<'s> {
        Scope::of(facts, &self.scalable_resources)
    }

    /// Looks up a resource with a scale subresource.
    #[must_use]
    pub fn scalable_resource(&self, group: &str, resource: &str) -> Option<&ScalableResource> {
        self.scalable_resources.iter().find(|known| known.is(group, resource))
    }

    /// Whether a user deploys releases for others, or restores their records.
    #[must_use]
    pub fn is_manager_or_tool(&self, user: &str) -> bool {
        self.managers.contains(user) || self.tools.contains(user)
    }

    /// The mode of a rule for a request.
    #[must_use]
    pub fn mode(&self, rule: RuleId, scope: &Scope<'_>) -> Mode {
        let mode = self.settings(rule).map_or(rule.specification().mode, |settings| settings.mode(scope));
        mode.min(self.cap)
    }

    /// Whether the cap is so low that nothing is refused.
    #[must_use]
    pub fn is_capped(&self) -> bool {
        self.cap < Mode::Enforce
    }

    /// The limits for ReleaseOverrides in a namespace. They apply to all requests, because the objects of a release may be in
    /// other namespaces or cluster-scoped.
    #[must_use]
    pub fn overrides_in(&self, namespace: &str) -> OverrideSettings {
        self.bounds.get(namespace).map_or_else(|| self.overrides.clone(), |bounds| self.overrides.stricter(bounds))
    }

    /// Every freeze: those of the policies, and those stored in the cluster, within the limits of the policy.
    pub fn all_freezes<'f>(&'f self, stored: &'f [Freeze]) -> impl Iterator<Item = LimitedFreeze<'f>> {
        let of_policies = self.freezes.iter().map(LimitedFreeze::of_policy);
        of_policies.chain(stored.iter().filter_map(|freeze| self.team_freezes.limit(freeze)))
    }

    /// Whether a stored Freeze ended so long ago that it should be deleted.
    #[must_use]
    pub fn is_past_freeze(&self, freeze: &Freeze, now: Timestamp) -> bool {
        let end = self.team_freezes.end_of(freeze);
        // A time that cannot be computed is in the future.
        end.and_then(|end| end.checked_add(self.overrides.retain_expired).ok()).is_some_and(|end| end <= now)
    }

    /// What happens if a rule cannot be evaluated; `None` if the policy does not set it.
    #[must_use]
    pub fn on_undecided(&self, rule: RuleId) -> Option<OnUndecided> {
        self.settings(rule).and_then(|settings| settings.on_undecided)
    }

    fn settings(&self, rule: RuleId) -> Option<&RuleSettings> {
        self.rules.iter().find(|(id, _)| *id == rule).map(|(_, settings)| settings)
    }

    /// Computes which namespaces match the label selectors, except in the conditions that all policies share. Returns whether
    /// there is a selector.
    pub(super) fn know(&mut self, labels: &NamespaceLabels) -> bool {
        let settings = self.rules.iter_mut().map(|(_, settings)| settings);
        let modes = settings.flat_map(|settings| iter::once(&mut settings.modes).chain(&mut settings.tightened));
        let cases = modes.flat_map(|modes| &mut modes.cases).map(|(when, _)| &mut when.namespaces);
        let protected = self.protected.by_cluster.as_mut().map(|named| &mut named.namespaces);
        know_all(cases.chain(protected), labels)
    }

    /// The settings of a rule, for a namespace that changes them.
    pub(crate) fn settings_mut(&mut self, rule: RuleId) -> &mut RuleSettings {
        let place = self.rules.iter().position(|(id, _)| *id == rule).unwrap_or_else(|| {
            self.rules.push((rule, RuleSettings::shipped(rule)));
            self.rules.len() - 1
        });
        &mut self.rules[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_without_settings_has_the_shipped_ones() {
        let mut policy = Policy::shipped().unwrap();
        let (one, other) = (RuleId::known("manual-edit"), RuleId::known("manual-scale"));
        policy.rules.retain(|(rule, _)| *rule != one && *rule != other);
        policy.settings_mut(one).on_undecided = Some(OnUndecided::Deny);
        policy.settings_mut(other).on_undecided = Some(OnUndecided::Allow);
        assert_eq!(policy.on_undecided(one), Some(OnUndecided::Deny));
        assert_eq!(policy.on_undecided(other), Some(OnUndecided::Allow));
        policy.settings_mut(one).on_undecided = None;
        assert_eq!(policy.rules.iter().filter(|(rule, _)| *rule == one).count(), 1);
    }

    #[test]
    fn a_scalable_resource_is_found_by_its_group_and_its_name() {
        let policy = Policy::shipped().unwrap();
        let kind = |group, resource| policy.scalable_resource(group, resource).map(|known| known.kind.as_str());
        assert_eq!(kind("apps", "statefulsets"), Some("StatefulSet"));
        assert_eq!(kind("", "replicationcontrollers"), Some("ReplicationController"));
        assert_eq!(
            (kind("", "statefulsets"), kind("apps", "replicationcontrollers"), kind("apps", "x")),
            (None, None, None)
        );
    }

    #[test]
    fn a_rollback_is_closed_by_either_setting() {
        let closes = |rollback, roll_forward_only| {
            RecoverySettings { rollback, roll_forward_only, ..RecoverySettings::default() }.closes_rollback()
        };
        use crate::policy::AllowRollback::{Always, Never, WhenStale};
        assert!(!closes(Always, false) && !closes(WhenStale, false));
        assert!(closes(Never, false) && closes(Always, true) && closes(WhenStale, true) && closes(Never, true));
    }
}
