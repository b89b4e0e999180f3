//! The keys of policy files. Their doc comments are the texts of the JSON Schema, of `interlock explain` and of the policy
//! reference.

use jiff::SignedDuration;
use jiff::civil::Weekday;
use jsonptr::PointerBuf;
use serde_json::Value;

use super::label_keys::{LabelKey, LabelKeys, LabelMap};
use super::limits::Limit;
use super::mapping::{Mapping, SetField};
use super::pipelines::PipelineName;
use super::read::{FromNode, Key, KeySpec, entries, keys, missing_keys, object_schema, value, value_node};
use super::times::{Moment, ZoneName};
use super::tree::Node;
use super::values::{AtLeastOne, ByRule, Cap, GlobList, Pattern, PolicyKind, SingleGlob, Spelled, Version};
use crate::policy::{
    AllowRollback, FreezeEffect, LabelOperator, OnFirstInstall, OnUndecided, OnUnexplained, PipelineHolder, Policy,
    ScalableResource, Share, StartedBy, WhenSuspended,
};
use crate::policy_files::problem::{Problems, Span};
use crate::rule::{Mode, RuleId};
use crate::rules;

keys! {
    /// A policy file of the cluster or of a namespace.
    PolicyFile {
        /// The version of this format.
        api_version "apiVersion": Version, required;
        /// ClusterPolicy in cluster.yaml; NamespacePolicy in namespaces/NAMESPACE.yaml.
        kind "kind": PolicyKind, required;
        /// Further namespaces that the policy of a namespace is for; its file may have any name then. A namespace with a file of its own
        /// has that policy, and of several files the first by name counts. Globs, at least one.
        namespaces "namespaces": AtLeastOne<GlobList>;
        /// Labels of the Namespaces that the policy is for. With `namespaces`, both conditions must hold.
        namespace_selector "namespaceSelector": LabelSelectorFile;
        /// The highest mode that anything reaches: every rule, what is undecided, what an annotation protects, and the validation of
        /// overrides. With audit, Interlock refuses nothing.
        cap "cap": Cap;
        /// The settings of each rule. `interlock explain RULE` describes a rule.
        rules "rules": ByRule<RuleFile>;
        /// The rules that the policy of a namespace may loosen.
        delegate "delegate": Vec<RuleId>, layered;
        /// What ReleaseOverrides may do.
        overrides "overrides": OverridesFile;
        /// Releases that the rule protected-release keeps from being uninstalled. A namespace adds releases of its own.
        protected "protected": ProtectedFile;
        /// Users that deploy releases for others, such as GitOps controllers: globs over user names.
        managers "managers": GlobList, layered;
        /// Users that restore records from a backup: globs over user names.
        tools "tools": GlobList, layered;
        /// Users that write the objects of releases as part of their work, such as autoscalers: globs over user names.
        controllers "controllers": GlobList, layered;
        /// Users that run the cluster, such as the controllers of a cloud: globs over user names. Other users whose names start with
        /// `system:` are platforms without an entry. The rules over objects exempt them; the rules over records do not.
        platform "platform": GlobList, layered;
        /// Pipelines that deploy under many user names. The first one that a user matches counts.
        pipelines "pipelines": Vec<PipelineFile>, layered;
        /// When no operation may start. The policy of a namespace adds its own.
        freezes "freezes": Vec<FreezeFile>, layered;
        /// What the Freezes may do that a namespace's own people create in the cluster.
        team_freezes "teamFreezes": TeamFreezesFile;
        /// Fields that every user may change.
        ignore "ignore": Vec<IgnoredFile>, layered;
        /// Labels of a release's Namespace that its Events and reports copy, so that they reach the right people, for example team:
        /// keys, at most 8.
        report_labels "reportLabels": LabelKeys, layered;
    }
}

keys! {
    /// The settings of a rule: those that every rule has, and those of single rules.
    RuleFile {
        /// What happens to a request that breaks the rule: refuse it (enforce), admit it with a warning (warn), admit it and log it
        /// (audit), or do not check the rule (off).
        mode "mode": Mode;
        /// What happens if the rule cannot be checked, for example because the API server does not answer. Default: see the rule;
        /// usually the CREATE of a record is refused and other requests are admitted.
        on_undecided "onUndecided": OnUndecided;
        /// Modes for some requests. The first case whose `when` matches counts; if none matches, `mode` counts.
        cases "cases": Vec<CaseFile>, layered;
        /// Who may start operations, including uninstalls: everybody, or managers, restore tools and the
        /// accounts of HelmReleases.
        started_by "startedBy": StartedBy => AtLeast(started_by);
        /// An operation that is in flight for longer than this, by the clock of the API server, counts as stuck.
        stale_after "staleAfter": SignedDuration => AtLeast(recovery.stale_after);
        /// The longest that the timeouts of a HelmRelease may extend `staleAfter` for its release.
        max_patience "maxPatience": SignedDuration => AtLeast(recovery.max_patience);
        /// When a rollback may start over an operation in flight.
        rollback "rollback": AllowRollback => AtLeast(recovery.rollback);
        /// Refuse every rollback over an operation in flight, and rollbacks by people over a failed revision.
        roll_forward_only "rollForwardOnly": bool => AtLeast(recovery.roll_forward_only);
        /// How long after a failure the user of the operation may still write the objects of its release.
        grace_after_failure "graceAfterFailure": SignedDuration => AtMost(grace_after_failure);
        /// Whether fields may be edited, also by `kubectl scale`, that people have excepted from Flux's correction of drift: by
        /// `spec.driftDetection.ignore` of the HelmRelease that has installed the release, or as a whole object by the label or
        /// annotation `helm.toolkit.fluxcd.io/driftDetection: disabled` in its manifest.
        honour_drift_ignore "honourDriftIgnore": bool => AtMost(drift_exceptions.honour_drift_ignore);
        /// What happens to edits, deletions and scaling by hand while the HelmRelease that has installed the release is suspended:
        /// the rules apply as always (enforce), or admit them with a warning (warn). Also for `manual-delete` and `manual-scale`.
        when_suspended "whenSuspended": WhenSuspended => AtLeast(drift_exceptions.when_suspended);
        /// Whether an object stays that another guard's mark protects: the label `policy.kruise.io/delete-protection`, the annotation
        /// `confirmation.gardener.cloud/deletion` with another value than `true`, `helm.sh/resource-policy: keep`.
        honour_peer_marks "honourPeerMarks": bool => AtLeast(protected.honour_peer_marks);
        /// Custom resources with a scale subresource. Deployments, ReplicaSets, StatefulSets and ReplicationControllers are
        /// built in.
        resources "resources": Vec<ScalableResourceFile> = "[]".to_owned(), layered;
        /// What happens if a release is left out and no chart is reported as failed.
        unexplained "unexplained": OnUnexplained => AtLeast(dropped_bundles.unexplained);
        /// What happens if what is left out was never delivered, so that nothing is removed.
        first_install "firstInstall": OnFirstInstall => AtLeast(dropped_bundles.first_install);
        /// How many of its Applications an ApplicationSet may lose within a day without a confirmation: at least one of three or more,
        /// and never the last. Also for the objects of a Kustomization, and `dropped-inventory`.
        may_lose "mayLose": Share => AtMost(may_lose);
    }
}

/// The key of the limits of Freezes, the only mapping among [`CLUSTER_ONLY_KEYS`] of a file.
pub(in crate::policy_files) const TEAM_FREEZES: &str = "teamFreezes";

/// Keys that only the cluster policy may set, at any level.
pub(in crate::policy_files) const CLUSTER_ONLY_KEYS: [&str; 13] = [
    "cap",
    "delegate",
    "managers",
    "tools",
    "controllers",
    "platform",
    "pipelines",
    "ignore",
    TEAM_FREEZES,
    "reportLabels",
    "resources",
    "namespace",
    "retainExpired",
];

/// The rule that has a setting; `None` for settings that every rule has.
pub(in crate::policy_files) fn rule_of_setting(setting: &str) -> Option<RuleId> {
    rules::all().find(|rule| rule.specification().settings.contains(&setting))
}

keys! {
    /// A pipeline: one actor under many user names. Give `users`, `groups` or both; a user must match each list that is given. No user
    /// whose name starts with `system:` is a session of a pipeline, except service accounts.
    PipelineFile {
        /// A name for `when` and for messages: lower-case letters, digits, `-` and `.`.
        name "name": PipelineName, required;
        /// User names. Globs, at least one.
        users "users": AtLeastOne<GlobList>;
        /// Groups of the user. Globs, at least one.
        groups "groups": AtLeastOne<GlobList>;
        /// Who holds an operation that a session starts, and may go on with it: the same user name (session), every session of the
        /// pipeline (pipeline), or every session in the same group (group:GLOB, for example group:gitlab:project:*). A session in several
        /// of these groups, or in none, holds its operations alone. Choose pipeline or group only if no two such jobs work on one
        /// release at a time: each may end the operation of the other.
        holder "holder": PipelineHolder = PipelineHolder::Session;
    }
}

keys! {
    /// A mode for some requests.
    CaseFile {
        /// The requests that the case applies to. Every list must match the request; a list matches if one of its entries does.
        when "when": WhenFile, required;
        /// The mode for these requests.
        mode "mode": Mode, required;
    }
}

keys! {
    /// A condition on requests. Each list holds globs, at least one.
    WhenFile {
        /// User names.
        users "users": AtLeastOne<GlobList>;
        /// Groups of the user.
        groups "groups": AtLeastOne<GlobList>;
        /// Service accounts as NAMESPACE:NAME, without the prefix of their user names.
        service_accounts "serviceAccounts": AtLeastOne<GlobList>;
        /// Names of pipelines, from the list `pipelines` of the cluster policy.
        pipelines "pipelines": AtLeastOne<GlobList>;
        /// Namespaces of objects.
        namespaces "namespaces": AtLeastOne<GlobList>;
        /// Labels of the Namespaces of objects. An object without a namespace has none.
        namespace_selector "namespaceSelector": LabelSelectorFile;
        /// Names of releases, without their namespaces.
        releases "releases": AtLeastOne<GlobList>;
        /// Kinds of objects, for example Deployment.
        kinds "kinds": AtLeastOne<GlobList>;
        /// Operations: CREATE, UPDATE or DELETE. A new number of replicas is an UPDATE.
        operations "operations": AtLeastOne<GlobList>;
        /// The label `owner` of the record: helm or operator-controller.
        owners "owners": AtLeastOne<GlobList>;
    }
}

keys! {
    /// A label selector as in Kubernetes. A Namespace must meet every requirement.
    LabelSelectorFile {
        /// Labels with their values.
        match_labels "matchLabels": LabelMap;
        /// Requirements on labels.
        match_expressions "matchExpressions": Vec<LabelRequirementFile>;
    }
}

keys! {
    /// A requirement on a label.
    LabelRequirementFile {
        /// The key of the label.
        key "key": LabelKey, required;
        /// In and NotIn need `values`, Exists and DoesNotExist take none. NotIn holds without the label too.
        operator "operator": LabelOperator, required;
        /// The values.
        values "values": Vec<String>;
    }
}

keys! {
    /// Fields that the rules over objects ignore.
    IgnoredFile {
        /// JSON pointers. Fields below a pointer are ignored too.
        paths "paths": AtLeastOne<Vec<PointerBuf>>, required;
        /// The objects. Default: every object.
        target "target": TargetFile;
    }
}

keys! {
    /// Objects that an entry applies to.
    TargetFile {
        /// A glob over kinds.
        kind "kind": SingleGlob;
        /// A glob over names.
        name "name": SingleGlob;
        /// A glob over namespaces.
        namespace "namespace": SingleGlob;
    }
}

keys! {
    /// A resource with a scale subresource.
    ScalableResourceFile {
        /// The API group. Default: the core group.
        group "group": String;
        /// The resource, for example widgets.
        resource "resource": String, required;
        /// The kind, for example Widget.
        kind "kind": String, required;
        /// A JSON pointer to the field that the scale subresource sets.
        replicas "replicas": PointerBuf = ScalableResource::usual_replicas().to_string();
    }
}

keys! {
    /// What ReleaseOverrides may do.
    OverridesFile {
        /// Whether ReleaseOverrides are allowed.
        allowed "allowed": bool => AtMost(overrides.allowed);
        /// The longest time for which an override may be open.
        max_duration "maxDuration": SignedDuration => AtMost(overrides.max_duration);
        /// Whether the creator of an override may not use it, so that a second person is needed.
        second_person "secondPerson": bool => AtLeast(overrides.second_person);
        /// The namespace of overrides for cluster-scoped releases.
        namespace "namespace": String => Any(overrides.namespace);
        /// A regular expression that `spec.reason` of a new override must match, for example a ticket number. It may match anywhere:
        /// for the whole reason, write `^` and `$`. The pattern of a namespace applies in addition.
        reason_pattern "reasonPattern": Pattern;
        /// A reason that matches `reasonPattern`. A refusal shows it.
        reason_example "reasonExample": String;
        /// How long after `spec.expiresAt` an override is kept. The leader deletes older ones.
        retain_expired "retainExpired": SignedDuration => Any(overrides.retain_expired);
    }
}

keys! {
    /// A time in which no operation starts, or outside of which none does. What has started before goes on.
    FreezeFile {
        /// A name for messages.
        name "name": String, required;
        /// Why. The refusal says it.
        reason "reason": String, required;
        /// The time zone of the times, for example Europe/Berlin or UTC.
        time_zone "timeZone": ZoneName, required;
        /// Whether operations are refused in the window (deny), or outside of it (allowOnly).
        effect "effect": FreezeEffect = FreezeEffect::Deny;
        /// The days on which the window begins, every week. Without it the window is once, from a date to another.
        weekdays "weekdays": AtLeastOne<Vec<Weekday>>;
        /// When the window begins: a time of the day such as 17:00 beside `weekdays` (by default 00:00), otherwise a date with or
        /// without a time.
        from "from": Moment;
        /// When the window ends, excluded: a time of the day beside `weekdays` (by default 24:00; of the next day if it is not after
        /// `from`), otherwise a date with or without a time.
        to "to": Moment;
        /// Names of releases. Default: every release.
        releases "releases": AtLeastOne<GlobList>;
        /// Namespaces of releases: those of their records, and of a ClusterExtension `spec.namespace`. Default: every namespace.
        namespaces "namespaces": AtLeastOne<GlobList>;
        /// Labels of these Namespaces. With `namespaces`, both conditions must hold.
        namespace_selector "namespaceSelector": LabelSelectorFile;
        /// Who may start operations all the same.
        exempt "exempt": ExemptFile;
    }
}

keys! {
    /// What Freezes may do, the custom resources with which the people of a namespace stop its releases.
    TeamFreezesFile {
        /// Whether Freezes are allowed. If not, those that are stored stop nothing.
        allowed "allowed": bool => Any(team_freezes.allowed);
        /// How long after its creation a Freeze ends at the latest. A Freeze with a later end cannot be created.
        max_duration "maxDuration": SignedDuration => Any(team_freezes.max_duration);
    }
}

keys! {
    /// Users that a freeze does not concern.
    ExemptFile {
        /// User names.
        users "users": GlobList;
        /// Groups of users.
        groups "groups": GlobList;
    }
}

keys! {
    /// Releases that are kept from being uninstalled. Each list holds globs, at least one.
    ProtectedFile {
        /// Names of releases, without their namespaces. Default: every release.
        releases "releases": AtLeastOne<GlobList>;
        /// Namespaces of the records of releases. Only in the cluster policy. Default: every namespace.
        namespaces "namespaces": AtLeastOne<GlobList>;
        /// Labels of these Namespaces. Only in the cluster policy. With `namespaces`, both conditions must hold.
        namespace_selector "namespaceSelector": LabelSelectorFile;
    }
}
