//! The policy of a namespace: the cluster policy, tightened. A looser setting is an error, unless the cluster policy delegates the
//! rule.

use super::cluster::{condition, modes, rule_of};
use super::file::{CLUSTER_ONLY_KEYS, GivenKey, Mapping, OverridesFile, PolicyFile, RuleFile, Spanned, Spelled};
use super::problem::Problems;
use super::{freezes, reasons};
use crate::policy::{OnUndecided, OverrideSettings, Policy, RuleSettings};
use crate::rule::{Mode, RuleId};
use crate::rules;

/// The keys that list or select namespaces.
const NAMESPACE_KEYS: [&str; 2] = ["namespaces", "namespaceSelector"];

/// Reports the keys of a cluster policy that list or select namespaces.
pub(super) fn refuse_namespaces(file: &PolicyFile, problems: &mut Problems<'_>) {
    for GivenKey { name, key, .. } in file.given().iter().filter(|given| NAMESPACE_KEYS.contains(&given.name)) {
        let message = format!(
            "the policy of the cluster is for every namespace; move `{name}` into the conditions that it is meant for"
        );
        problems.at(*key, message);
    }
}

/// Reports keys that only the cluster policy may set.
pub(super) fn refuse_cluster_only_keys(file: &PolicyFile, problems: &mut Problems<'_>) {
    let mut refuse = |given: GivenKey<'_>| {
        if CLUSTER_ONLY_KEYS.contains(&given.name) {
            problems
                .at(given.key, format!("only the cluster policy may set `{}`; move it to cluster.yaml", given.name));
        }
    };
    file.given().into_iter().for_each(&mut refuse);
    let rules = file.rules.iter().flat_map(|rules| &rules.value.0);
    rules.flat_map(|(_, rule)| rule.value.given()).for_each(&mut refuse);
    file.overrides.iter().flat_map(|overrides| overrides.value.given()).for_each(&mut refuse);
    for freeze in file.freezes.iter().flat_map(|freezes| &freezes.value) {
        for given in freeze.given().iter().filter(|given| NAMESPACE_KEYS.contains(&given.name)) {
            let message = format!("the freeze of a namespace concerns this namespace alone; remove `{}`", given.name);
            problems.at(given.key, message);
        }
    }
    let protected = file.protected.iter().flat_map(|protected| protected.value.given());
    for GivenKey { name, key, .. } in protected.filter(|given| NAMESPACE_KEYS.contains(&given.name)) {
        let message =
            format!("only the cluster policy may set `{name}` of `protected`; a namespace protects its own releases");
        problems.at(key, message);
    }
}

/// The cluster policy with the settings of a namespace over it.
pub(super) fn policy(
    cluster: &Policy,
    delegated: &[RuleId],
    (namespace, file): (&str, &PolicyFile),
    problems: &mut Problems<'_>,
) -> Policy {
    let mut policy = cluster.clone();
    policy.freezes = if file.is_shared() {
        freezes::of_shared(file).collect()
    } else {
        freezes::of_file(file, Some(namespace)).collect()
    };
    for rule in rules::all() {
        if let Some(file) = rule_of(file, rule) {
            let reason = format!("a namespace may only tighten it, unless cluster.yaml delegates {rule}");
            let free = delegated.contains(&rule);
            Tightening { free, reason, problems }.rule(file, rule, &mut policy);
            let free = rules_over_edits().all(|rule| delegated.contains(&rule));
            let reason = "a namespace may only tighten it, unless cluster.yaml delegates manual-edit, manual-delete and manual-scale";
            Tightening { free, reason: reason.to_owned(), problems }.suspended(file, &mut policy);
            let reason = "a namespace may only tighten it, because other rules use it too".to_owned();
            Tightening { free: false, reason, problems }.shared(file, &mut policy);
        }
    }
    if let Some(file) = &file.overrides {
        let reason = "a namespace may only tighten it".to_owned();
        Tightening { free: false, reason, problems }.overrides(&file.value, &mut policy.overrides);
        policy.overrides.reason_patterns.extend(reasons::of_file(&file.value));
    }
    policy.protected.here = file.protected.as_ref().and_then(|protected| condition(protected.value.releases.as_ref()));
    policy
}

/// The rules that `whenSuspended` affects.
fn rules_over_edits() -> impl Iterator<Item = RuleId> {
    ["manual-edit", "manual-delete", "manual-scale"].into_iter().filter_map(rules::named)
}

/// Applies settings of a namespace that may only be stricter than those of the cluster.
struct Tightening<'p, 's> {
    /// Whether the namespace may also loosen the settings.
    free: bool,
    reason: String,
    problems: &'p mut Problems<'s>,
}

impl Tightening<'_, '_> {
    fn rule(&mut self, file: &RuleFile, rule: RuleId, policy: &mut Policy) {
        let settings = &mut policy.settings_mut(rule);
        self.modes(file, settings);
        self.undecided(file, settings);
        self.tighten(file.started_by.as_ref(), &mut policy.started_by, PartialOrd::lt);
        self.tighten(file.rollback.as_ref(), &mut policy.recovery.rollback, PartialOrd::lt);
        self.tighten(file.roll_forward_only.as_ref(), &mut policy.recovery.roll_forward_only, PartialOrd::lt);
        self.tighten(file.unexplained.as_ref(), &mut policy.dropped_bundles.unexplained, PartialOrd::lt);
        self.tighten(file.first_install.as_ref(), &mut policy.dropped_bundles.first_install, PartialOrd::lt);
        let exceptions = &mut policy.drift_exceptions;
        self.tighten(file.honour_drift_ignore.as_ref(), &mut exceptions.honour_drift_ignore, PartialOrd::gt);
    }

    /// The setting of all rules over manual edits.
    fn suspended(&mut self, file: &RuleFile, policy: &mut Policy) {
        self.tighten(file.when_suspended.as_ref(), &mut policy.drift_exceptions.when_suspended, PartialOrd::lt);
    }

    /// Settings that also affect other rules, so that they are never delegated with their rule.
    fn shared(&mut self, file: &RuleFile, policy: &mut Policy) {
        self.tighten(file.stale_after.as_ref(), &mut policy.recovery.stale_after, PartialOrd::lt);
        self.tighten(file.max_patience.as_ref(), &mut policy.recovery.max_patience, PartialOrd::lt);
        self.tighten(file.grace_after_failure.as_ref(), &mut policy.grace_after_failure, PartialOrd::gt);
    }

    fn overrides(&mut self, file: &OverridesFile, overrides: &mut OverrideSettings) {
        self.tighten(file.allowed.as_ref(), &mut overrides.allowed, PartialOrd::gt);
        self.tighten(file.max_duration.as_ref(), &mut overrides.max_duration, PartialOrd::gt);
        self.tighten(file.second_person.as_ref(), &mut overrides.second_person, PartialOrd::lt);
    }

    /// Every mode of the namespace must be at least as strict as the mode of the cluster outside its cases.
    fn modes(&mut self, file: &RuleFile, settings: &mut RuleSettings) {
        if file.mode.is_none() && file.cases.is_none() {
            return;
        }
        if self.free {
            settings.modes = modes(file, settings.modes.mode);
            return;
        }
        let cases = file.cases.iter().flat_map(|cases| &cases.value);
        for mode in file.mode.iter().chain(cases.filter_map(|case| case.mode.as_ref())) {
            let mut least = settings.modes.mode;
            self.tighten(Some(mode), &mut least, PartialOrd::lt);
        }
        settings.tightened = Some(modes(file, Mode::Off));
    }

    /// Without a value in the cluster policy, `allow` loosens and `deny` does not.
    fn undecided(&mut self, file: &RuleFile, settings: &mut RuleSettings) {
        let Some(at) = &file.on_undecided else { return };
        if settings.on_undecided.is_none() && at.value == OnUndecided::Allow && !self.free {
            self.loosens(at, "nothing, so that the CREATE of a record is refused");
        }
        let mut current = settings.on_undecided.unwrap_or(at.value);
        self.tighten(Some(at), &mut current, PartialOrd::lt);
        settings.on_undecided = Some(current);
    }

    /// Replaces a value of the cluster, unless the new value is looser.
    fn tighten<T: Clone + Spelled>(
        &mut self,
        given: Option<&Spanned<T>>,
        current: &mut T,
        is_looser: fn(&T, &T) -> bool,
    ) {
        let Some(at) = given else { return };
        if !self.free && is_looser(&at.value, current) {
            self.loosens(at, &current.spelled());
        } else {
            *current = at.value.clone();
        }
    }

    fn loosens<T>(&mut self, at: &Spanned<T>, cluster: &str) {
        let text = format!("`{}` loosens the cluster policy, which says {cluster}; {}", at.text, self.reason);
        self.problems.at(at.span, text);
    }
}
