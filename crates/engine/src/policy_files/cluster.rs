//! Converts the file of the cluster to its policy. Wrong values are already reported, and count as absent.

use std::sync::Arc;

use super::file::{
    AtLeastOne, CaseFile, GlobList, IgnoredFile, LabelSelectorFile, OverridesFile, PipelineFile, PolicyFile,
    ProtectedFile, RuleFile, ScalableResourceFile, SingleGlob, Spanned, TeamFreezesFile, WhenFile,
};
use super::{freezes, reasons};
use crate::policy::{
    Accounts, DriftExceptions, DroppedBundlesSettings, Globs, IgnoredFields, LabelOperator, LabelRequirement,
    LabelSelector, Modes, NamespaceCondition, OverrideSettings, Pipeline, Policy, Protected, ProtectedReleases,
    RecoverySettings, RuleSettings, ScalableResource, StartedBy, TeamFreezeSettings, When,
};
use crate::release::status::Transitions;
use crate::rule::{Mode, RuleId};
use crate::rules;

/// The value of a key, if it is present.
pub(super) fn value<T: Clone>(key: Option<&Spanned<T>>) -> Option<T> {
    key.map(|at| at.value.clone())
}

pub(super) fn policy(file: &PolicyFile) -> Policy {
    let rules = rules::all().map(|rule| {
        let shipped = RuleSettings::shipped(rule);
        let settings = rule_of(file, rule).map(|file| RuleSettings {
            modes: modes(file, shipped.modes.mode),
            on_undecided: value(file.on_undecided.as_ref()),
            tightened: None,
        });
        (rule, settings.unwrap_or(shipped))
    });
    let listed = rule_files(file).filter_map(|rule| rule.resources.as_ref());
    let listed = listed.flat_map(|listed| &listed.value).filter_map(scalable_resource);
    Policy {
        cap: file.cap.as_ref().map_or(Mode::Enforce, |at| at.value.mode()),
        rules: rules.collect(),
        started_by: setting(file, |rule| rule.started_by.as_ref()).unwrap_or(StartedBy::Anybody),
        recovery: recovery(file),
        dropped_bundles: dropped_bundles(file),
        overrides: file.overrides.as_ref().map(|file| overrides(&file.value)).unwrap_or_default(),
        bounds: Arc::default(),
        protected: Protected {
            by_cluster: file.protected.as_ref().map(|at| protected(&at.value)),
            ..Protected::default()
        },
        managers: globs(file.managers.as_ref()),
        tools: globs(file.tools.as_ref()),
        controllers: globs(file.controllers.as_ref()),
        accounts: Arc::new(accounts(file)),
        ignore: file.ignore.iter().flat_map(|ignore| &ignore.value).filter_map(ignored).collect(),
        scalable_resources: ScalableResource::built_in().into_iter().chain(listed).collect(),
        freezes: freezes::of_file(file, None).collect(),
        team_freezes: file.team_freezes.as_ref().map(|file| team_freezes(&file.value)).unwrap_or_default(),
        report_labels: file.report_labels.as_ref().map(|at| at.value.0.clone()).unwrap_or_default(),
        transitions: Transitions::default(),
        grace_after_failure: setting(file, |rule| rule.grace_after_failure.as_ref())
            .unwrap_or(Policy::GRACE_AFTER_FAILURE),
        drift_exceptions: drift_exceptions(file),
    }
}

/// The value of a setting that only one rule has.
fn setting<T: Clone>(file: &PolicyFile, of: impl Fn(&RuleFile) -> Option<&Spanned<T>>) -> Option<T> {
    rule_files(file).find_map(|rule| value(of(rule)))
}

fn rule_files(file: &PolicyFile) -> impl Iterator<Item = &RuleFile> {
    file.rules.iter().flat_map(|rules| &rules.value.0).map(|(_, at)| &at.value)
}

pub(super) fn rule_of(file: &PolicyFile, rule: RuleId) -> Option<&RuleFile> {
    file.rules.as_ref().and_then(|rules| rules.value.of(rule)).map(|at| &at.value)
}

/// The modes in a file, with a default.
pub(super) fn modes(file: &RuleFile, otherwise: Mode) -> Modes {
    let cases = file.cases.iter().flat_map(|cases| &cases.value).filter_map(case).collect();
    Modes { mode: value(file.mode.as_ref()).unwrap_or(otherwise), cases }
}

fn case(file: &CaseFile) -> Option<(When, Mode)> {
    Some((when(&file.when.as_ref()?.value), file.mode.as_ref()?.value))
}

fn globs(list: Option<&Spanned<GlobList>>) -> Globs {
    list.map(|at| at.value.compiled.clone()).unwrap_or_default()
}

pub(super) fn accounts(file: &PolicyFile) -> Accounts {
    let pipelines = file.pipelines.iter().flat_map(|pipelines| &pipelines.value).filter_map(pipeline);
    Accounts::new(globs(file.platform.as_ref()), pipelines.collect())
}

fn pipeline(file: &PipelineFile) -> Option<Pipeline> {
    Some(Pipeline {
        name: file.name.as_ref()?.value.0.clone(),
        users: condition(file.users.as_ref()),
        groups: condition(file.groups.as_ref()),
        holder: value(file.holder.as_ref()).unwrap_or_default(),
    })
}

fn protected(file: &ProtectedFile) -> ProtectedReleases {
    ProtectedReleases {
        releases: condition(file.releases.as_ref()),
        namespaces: places(file.namespaces.as_ref(), file.namespace_selector.as_ref()),
    }
}

pub(super) fn condition(list: Option<&Spanned<AtLeastOne<GlobList>>>) -> Option<Globs> {
    list.map(|at| at.value.0.compiled.clone())
}

/// A condition on namespaces.
pub(super) fn places(
    names: Option<&Spanned<AtLeastOne<GlobList>>>,
    by: Option<&Spanned<LabelSelectorFile>>,
) -> NamespaceCondition {
    NamespaceCondition::new(condition(names), by.map(|at| selector(&at.value)))
}

pub(super) fn selector(file: &LabelSelectorFile) -> LabelSelector {
    let labels = file.match_labels.iter().flat_map(|labels| &labels.value.0);
    let equal = labels.map(|(key, value)| LabelRequirement {
        key: key.clone(),
        operator: LabelOperator::In,
        values: vec![value.clone()],
    });
    let expressions = file.match_expressions.iter().flat_map(|all| &all.value).filter_map(|one| {
        Some(LabelRequirement {
            key: one.key.as_ref()?.value.0.clone(),
            operator: one.operator.as_ref()?.value,
            values: value(one.values.as_ref()).unwrap_or_default(),
        })
    });
    LabelSelector(equal.chain(expressions).collect())
}

fn when(file: &WhenFile) -> When {
    When {
        users: condition(file.users.as_ref()),
        groups: condition(file.groups.as_ref()),
        service_accounts: condition(file.service_accounts.as_ref()),
        pipelines: condition(file.pipelines.as_ref()),
        namespaces: places(file.namespaces.as_ref(), file.namespace_selector.as_ref()),
        releases: condition(file.releases.as_ref()),
        kinds: condition(file.kinds.as_ref()),
        owners: condition(file.owners.as_ref()),
        operations: condition(file.operations.as_ref()),
    }
}

fn recovery(file: &PolicyFile) -> RecoverySettings {
    let shipped = RecoverySettings::default();
    RecoverySettings {
        stale_after: setting(file, |rule| rule.stale_after.as_ref()).unwrap_or(shipped.stale_after),
        max_patience: setting(file, |rule| rule.max_patience.as_ref()).unwrap_or(shipped.max_patience),
        rollback: setting(file, |rule| rule.rollback.as_ref()).unwrap_or(shipped.rollback),
        roll_forward_only: setting(file, |rule| rule.roll_forward_only.as_ref()).unwrap_or(shipped.roll_forward_only),
    }
}

fn dropped_bundles(file: &PolicyFile) -> DroppedBundlesSettings {
    let shipped = DroppedBundlesSettings::default();
    DroppedBundlesSettings {
        unexplained: setting(file, |rule| rule.unexplained.as_ref()).unwrap_or(shipped.unexplained),
        first_install: setting(file, |rule| rule.first_install.as_ref()).unwrap_or(shipped.first_install),
    }
}

fn drift_exceptions(file: &PolicyFile) -> DriftExceptions {
    let shipped = DriftExceptions::default();
    DriftExceptions {
        honour_drift_ignore: setting(file, |rule| rule.honour_drift_ignore.as_ref())
            .unwrap_or(shipped.honour_drift_ignore),
        when_suspended: setting(file, |rule| rule.when_suspended.as_ref()).unwrap_or(shipped.when_suspended),
    }
}

fn overrides(file: &OverridesFile) -> OverrideSettings {
    let shipped = OverrideSettings::default();
    OverrideSettings {
        allowed: value(file.allowed.as_ref()).unwrap_or(shipped.allowed),
        max_duration: value(file.max_duration.as_ref()).unwrap_or(shipped.max_duration),
        second_person: value(file.second_person.as_ref()).unwrap_or(shipped.second_person),
        namespace: value(file.namespace.as_ref()).unwrap_or(shipped.namespace),
        reason_patterns: reasons::of_file(file).into_iter().collect(),
        retain_expired: value(file.retain_expired.as_ref()).unwrap_or(shipped.retain_expired),
    }
}

fn team_freezes(file: &TeamFreezesFile) -> TeamFreezeSettings {
    let shipped = TeamFreezeSettings::default();
    TeamFreezeSettings {
        allowed: value(file.allowed.as_ref()).unwrap_or(shipped.allowed),
        max_duration: value(file.max_duration.as_ref()).unwrap_or(shipped.max_duration),
    }
}

fn ignored(file: &IgnoredFile) -> Option<IgnoredFields> {
    let target = file.target.as_ref().map(|at| &at.value);
    Some(IgnoredFields {
        paths: file.paths.as_ref()?.value.0.clone(),
        kinds: single_glob(target.and_then(|target| target.kind.as_ref())),
        names: single_glob(target.and_then(|target| target.name.as_ref())),
        namespaces: single_glob(target.and_then(|target| target.namespace.as_ref())),
    })
}

fn single_glob(key: Option<&Spanned<SingleGlob>>) -> Option<Globs> {
    key.map(|at| at.value.0.compiled.clone())
}

fn scalable_resource(file: &ScalableResourceFile) -> Option<ScalableResource> {
    Some(ScalableResource {
        group: value(file.group.as_ref()).unwrap_or_default(),
        resource: value(file.resource.as_ref())?,
        kind: value(file.kind.as_ref())?,
        replicas: value(file.replicas.as_ref()).unwrap_or_else(ScalableResource::usual_replicas),
    })
}
