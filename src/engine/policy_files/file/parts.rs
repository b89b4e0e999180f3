//! The parts of policy files.

use jiff::SignedDuration;
use jsonptr::PointerBuf;
use serde_json::Value;

use super::read::{
    FromNode, GivenKey, KeySpec, Mapping, Spanned, entries, keys, missing_keys, object_schema, unknown_key, value,
};
use super::tree::Node;
use super::values::{ByRule, EMPTY_LIST, PolicyKind, SingleGlob, Spelled, Version};
use crate::engine::policy::{
    AllowRollback, DEFAULT_NAMESPACE, DroppedBundlesSettings, Globs, OnFirstInstall, OnUndecided, OnUnexplained,
    OverrideSettings, Policy, RecoverySettings, ScalableResource, StartedBy,
};
use crate::engine::policy_files::problem::Problems;
use crate::engine::rule::{Mode, RuleId};
use crate::engine::rules;

keys! {
    /// A policy file, of the cluster or of a namespace.
    PolicyFile {
        /// The version of this format.
        api_version "apiVersion": Version, required;
        /// ClusterPolicy in cluster.yaml; NamespacePolicy in namespaces/NAMESPACE.yaml.
        kind "kind": PolicyKind, required;
        /// What becomes of requests that break a rule, by the name of the rule; `interlock explain RULE` tells about each.
        rules "rules": ByRule<RuleFile>;
        /// The rules of which a namespace's policy may also say less than this one.
        delegate "delegate": Vec<RuleId>;
        /// The ways to open a rule for a while by a ReleaseOverride.
        overrides "overrides": OverridesFile;
        /// Who drives releases for others: globs over user names.
        managers "managers": Globs;
        /// Who restores records from a backup: globs over user names.
        tools "tools": Globs;
        /// Who completes the objects of releases for others: globs over user names.
        controllers "controllers": Globs;
        /// Fields that anybody may change.
        ignore "ignore": Vec<IgnoredFile>;
    }
}

keys! {
    /// What a policy says of a rule. Settings of one rule alone stand beside those of every rule.
    RuleFile {
        /// Refuse (enforce), admit with a warning (warn), admit silently and log (audit), or do not ask (off).
        mode "mode": Mode;
        /// When the rule could not learn what it needs. Left out: refuse the CREATE of a record, admit everything else.
        on_undecided "onUndecided": OnUndecided;
        /// Modes for some requests: the first case whose `when` holds counts, otherwise `mode`.
        cases "cases": Vec<CaseFile>;
        /// Who may start operations, uninstalls included; everybody, or managers and the accounts of HelmReleases alone.
        started_by "startedBy": StartedBy = StartedBy::Anybody;
        /// An operation in flight for longer than this, by the API server's clock, counts as stuck.
        stale_after "staleAfter": SignedDuration = RecoverySettings::default().stale_after;
        /// Whether a rollback may be started over an operation in flight.
        rollback "rollback": AllowRollback = RecoverySettings::default().rollback;
        /// No rollback over an operation in flight, and for people none over a failed one.
        roll_forward_only "rollForwardOnly": bool = RecoverySettings::default().roll_forward_only;
        /// How long the former holder of a failed operation may go on writing the objects of its release.
        grace_after_failure "graceAfterFailure": SignedDuration = Policy::GRACE_AFTER_FAILURE;
        /// Custom resources with a scale subresource, beside Kubernetes' own kinds.
        resources "resources": Vec<ScalableResourceFile> = EMPTY_LIST;
        /// A release is left out and no chart is said to have failed.
        unexplained "unexplained": OnUnexplained = DroppedBundlesSettings::default().unexplained;
        /// What is left out was never delivered, so that nothing is removed.
        first_install "firstInstall": OnFirstInstall = DroppedBundlesSettings::default().first_install;
    }
}

/// Keys that only the cluster policy has, wherever they stand.
pub(in crate::engine::policy_files) const CLUSTER_ONLY_KEYS: [&str; 7] =
    ["delegate", "managers", "tools", "controllers", "ignore", "resources", "namespace"];

/// The rule that a setting belongs to; `None` for those of every rule.
pub(in crate::engine::policy_files) fn rule_of_setting(setting: &str) -> Option<RuleId> {
    rules::all().find(|rule| rule.specification().settings.contains(&setting))
}

keys! {
    /// A mode for some requests.
    CaseFile {
        /// Which requests: every list that is given must name the request, and one entry of a list is enough.
        when "when": WhenFile, required;
        /// What becomes of them.
        mode "mode": Mode, required;
    }
}

keys! {
    /// A condition on requests; each list is of globs.
    WhenFile {
        /// User names.
        users "users": Globs;
        /// Groups, of which the user has one.
        groups "groups": Globs;
        /// Service accounts as NAMESPACE:NAME.
        service_accounts "serviceAccounts": Globs;
        /// Namespaces of objects.
        namespaces "namespaces": Globs;
        /// Names of releases.
        releases "releases": Globs;
        /// Kinds of objects.
        kinds "kinds": Globs;
        /// Who keeps the record: helm, operator-controller.
        owners "owners": Globs;
    }
}

keys! {
    /// Fields of some objects that no object rule looks at.
    IgnoredFile {
        /// JSON pointers; what lies below one is ignored too.
        paths "paths": Vec<PointerBuf>, required;
        /// The objects; left out: every one.
        target "target": TargetFile;
    }
}

keys! {
    /// Objects, by globs.
    TargetFile {
        /// Their kind.
        kind "kind": SingleGlob;
        /// Their name.
        name "name": SingleGlob;
        /// Their namespace.
        namespace "namespace": SingleGlob;
    }
}

keys! {
    /// A resource with a scale subresource.
    ScalableResourceFile {
        /// The API group; left out: the core group.
        group "group": String;
        /// The resource, for example widgets.
        resource "resource": String, required;
        /// The kind, for example Widget.
        kind "kind": String, required;
        /// JSON pointer to the field that the subresource sets.
        replicas "replicas": PointerBuf = ScalableResource::usual_replicas().as_str();
    }
}

keys! {
    /// What ReleaseOverrides may do.
    OverridesFile {
        /// Whether there may be any.
        allowed "allowed": bool = OverrideSettings::default().allowed;
        /// How long one may hold.
        max_duration "maxDuration": SignedDuration = OverrideSettings::default().max_duration;
        /// Whether who makes one may not use it.
        second_person "secondPerson": bool = OverrideSettings::default().second_person;
        /// The namespace of those for what is in no namespace.
        namespace "namespace": String = DEFAULT_NAMESPACE;
    }
}
