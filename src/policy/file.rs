//! `policies/cluster.yaml`: read strictly, so that a typing error is an error and not a rule that is silently off.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::SignedDuration;
use jsonptr::PointerBuf;
use serde::Deserialize;

use super::{
    Consent, Globs, Ignored, Mode, OnUndecided, Policy, Recovery, RollbackWay, Rollouts, RuleSettings, Scalable,
    Unexplained, When,
};
use crate::rules::RuleId;

const API_VERSION: &str = "interlock.dev/v1alpha1";
const KIND: &str = "ClusterPolicy";

/// A cancelled upgrade goes on applying what it has begun, and clean-up deletes after the record says `failed`.
const GRACE_AFTER_FAILURE: SignedDuration = SignedDuration::from_secs(60);

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("failed to read the policy {}; name the directory that holds cluster.yaml with --policies", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not what the schema allows.
    #[error("the policy {} is not valid: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column where they are known.
        message: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    #[serde(default)]
    rules: BTreeMap<RuleId, RuleFile>,
    #[serde(default)]
    managers: Vec<String>,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    controllers: Vec<String>,
    #[serde(default)]
    ignore: Vec<IgnoredFile>,
}

/// The settings of any rule. Those of one rule alone stand beside those that every rule has.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RuleFile {
    mode: Option<Mode>,
    on_undecided: Option<OnUndecided>,
    cases: Vec<CaseFile>,
    stale_after: Option<String>,
    rollback: Option<RollbackWay>,
    roll_forward_only: Option<bool>,
    grace_after_failure: Option<String>,
    resources: Option<Vec<ScalableFile>>,
    unexplained: Option<Unexplained>,
    first_install: Option<Consent>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CaseFile {
    when: WhenFile,
    mode: Mode,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct WhenFile {
    users: Option<Vec<String>>,
    groups: Option<Vec<String>>,
    service_accounts: Option<Vec<String>>,
    namespaces: Option<Vec<String>>,
    releases: Option<Vec<String>>,
    kinds: Option<Vec<String>>,
    owners: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct IgnoredFile {
    paths: Vec<String>,
    #[serde(default)]
    target: TargetFile,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct TargetFile {
    kind: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScalableFile {
    #[serde(default)]
    group: String,
    resource: String,
    kind: String,
    #[serde(default)]
    replicas: Option<String>,
}

pub(super) fn load(path: &Path) -> Result<Policy, PolicyError> {
    let text = fs::read_to_string(path).map_err(|source| PolicyError::Read { path: path.to_path_buf(), source })?;
    parse(&text, path)
}

pub(super) fn parse(text: &str, path: &Path) -> Result<Policy, PolicyError> {
    let invalid = |message: String| PolicyError::Invalid { path: path.to_path_buf(), message };
    let file: File = serde_saphyr::from_str(text).map_err(|error| invalid(error.to_string()))?;
    if (file.api_version.as_str(), file.kind.as_str()) != (API_VERSION, KIND) {
        let (kind, version) = (&file.kind, &file.api_version);
        return Err(invalid(format!("expected kind {KIND} of {API_VERSION}, got {kind} of {version}")));
    }
    file.checked().map_err(invalid)
}

impl File {
    fn checked(self) -> Result<Policy, String> {
        let mut rules = RuleId::ALL.map(RuleSettings::of);
        for (rule, settings) in &self.rules {
            settings.belongs_to(*rule)?;
            rules[*rule as usize] = settings.checked(*rule).map_err(|error| format!("rules.{rule}.{error}"))?;
        }
        let of = |rule: RuleId| self.rules.get(&rule);
        let recovery = of(RuleId::PendingRecovery).map_or_else(|| Ok(Recovery::default()), recovery)?;
        let grace = of(RuleId::ManualEdit).and_then(|settings| settings.grace_after_failure.as_deref());
        let grace = grace.map(|text| duration(text, "rules.manual-edit.graceAfterFailure")).transpose()?;
        let listed = of(RuleId::ManualScale).and_then(|settings| settings.resources.as_deref());
        let listed = listed.unwrap_or_default().iter().map(ScalableFile::checked);
        Ok(Policy {
            rules,
            recovery,
            rollouts: of(RuleId::DroppedBundles).map(rollouts).unwrap_or_default(),
            managers: globs(&self.managers, "managers")?,
            tools: globs(&self.tools, "tools")?,
            controllers: globs(&self.controllers, "controllers")?,
            ignore: self.ignore.iter().map(IgnoredFile::checked).collect::<Result<_, _>>()?,
            scalable: Scalable::built_in().into_iter().map(Ok).chain(listed).collect::<Result<_, _>>()?,
            grace_after_failure: grace.unwrap_or(GRACE_AFTER_FAILURE),
        })
    }
}

impl RuleFile {
    /// Refuses settings of another rule.
    fn belongs_to(&self, rule: RuleId) -> Result<(), String> {
        let settings = [
            ("staleAfter", self.stale_after.is_some(), RuleId::PendingRecovery),
            ("rollback", self.rollback.is_some(), RuleId::PendingRecovery),
            ("rollForwardOnly", self.roll_forward_only.is_some(), RuleId::PendingRecovery),
            ("graceAfterFailure", self.grace_after_failure.is_some(), RuleId::ManualEdit),
            ("resources", self.resources.is_some(), RuleId::ManualScale),
            ("unexplained", self.unexplained.is_some(), RuleId::DroppedBundles),
            ("firstInstall", self.first_install.is_some(), RuleId::DroppedBundles),
        ];
        match settings.into_iter().find(|(_, given, owner)| *given && *owner != rule) {
            Some((name, _, owner)) => Err(format!("rules.{rule}: {name} is a setting of rules.{owner}")),
            None => Ok(()),
        }
    }

    fn checked(&self, rule: RuleId) -> Result<RuleSettings, String> {
        let cases = self.cases.iter().enumerate().map(|(index, case)| {
            let when = case.when.checked().map_err(|error| format!("cases[{index}].when.{error}"))?;
            Ok((when, case.mode))
        });
        let cases = cases.collect::<Result<_, String>>()?;
        let mode = self.mode.unwrap_or(RuleSettings::of(rule).mode);
        Ok(RuleSettings { mode, cases, on_undecided: self.on_undecided })
    }
}

impl WhenFile {
    fn checked(&self) -> Result<When, String> {
        let list = |list: &Option<Vec<String>>, key: &str| list.as_deref().map(|list| globs(list, key)).transpose();
        Ok(When {
            users: list(&self.users, "users")?,
            groups: list(&self.groups, "groups")?,
            service_accounts: list(&self.service_accounts, "serviceAccounts")?,
            namespaces: list(&self.namespaces, "namespaces")?,
            releases: list(&self.releases, "releases")?,
            kinds: list(&self.kinds, "kinds")?,
            owners: list(&self.owners, "owners")?,
        })
    }
}

impl IgnoredFile {
    fn checked(&self) -> Result<Ignored, String> {
        let one = |glob: &Option<String>, key: &str| {
            glob.as_ref().map(|glob| globs(std::slice::from_ref(glob), &format!("ignore: target.{key}"))).transpose()
        };
        Ok(Ignored {
            paths: self.paths.iter().map(|path| pointer(path, "ignore: paths")).collect::<Result<_, _>>()?,
            kinds: one(&self.target.kind, "kind")?,
            names: one(&self.target.name, "name")?,
            namespaces: one(&self.target.namespace, "namespace")?,
        })
    }
}

impl ScalableFile {
    fn checked(&self) -> Result<Scalable, String> {
        let replicas = self.replicas.as_deref().unwrap_or("/spec/replicas");
        Ok(Scalable {
            group: self.group.clone(),
            resource: self.resource.clone(),
            kind: self.kind.clone(),
            replicas: pointer(replicas, "rules.manual-scale.resources: replicas")?,
        })
    }
}

fn recovery(settings: &RuleFile) -> Result<Recovery, String> {
    let shipped = Recovery::default();
    let stale_after = settings.stale_after.as_deref();
    let stale_after = stale_after.map(|text| duration(text, "rules.pending-recovery.staleAfter")).transpose()?;
    Ok(Recovery {
        stale_after: stale_after.unwrap_or(shipped.stale_after),
        rollback: settings.rollback.unwrap_or(shipped.rollback),
        roll_forward_only: settings.roll_forward_only.unwrap_or(shipped.roll_forward_only),
    })
}

fn rollouts(settings: &RuleFile) -> Rollouts {
    let shipped = Rollouts::default();
    Rollouts {
        unexplained: settings.unexplained.unwrap_or(shipped.unexplained),
        first_install: settings.first_install.unwrap_or(shipped.first_install),
    }
}

fn duration(text: &str, key: &str) -> Result<SignedDuration, String> {
    let duration = text.parse::<SignedDuration>().ok().filter(SignedDuration::is_positive);
    duration.ok_or_else(|| format!("{key}: {text:?} is not a duration like 15m or 1h30m"))
}

fn globs(list: &[String], key: &str) -> Result<Globs, String> {
    Globs::new(list.iter().map(String::as_str)).map_err(|error| format!("{key}: {error}"))
}

fn pointer(text: &str, key: &str) -> Result<PointerBuf, String> {
    let pointer = PointerBuf::parse(text.to_owned());
    pointer.map_err(|_| format!("{key}: {text:?} is not a JSON pointer like /spec/replicas"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Actor, ActorKind};
    use crate::policy::Scope;

    const HEAD: &str = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n";

    fn scope(name: &str) -> Scope<'_> {
        let actor = Actor { name, kind: ActorKind::Person, groups: &[] };
        Scope { actor, namespace: "shop", release: Some("web"), kind: "Deployment", owner: None, creates_record: false }
    }

    fn mode(policy: &Policy, rule: RuleId, user: &str) -> Mode {
        policy.mode(rule, &scope(user))
    }

    fn read(rest: &str) -> Result<Policy, String> {
        parse(&format!("{HEAD}{rest}"), Path::new("p/cluster.yaml")).map_err(|error| error.to_string())
    }

    #[test]
    fn every_rule_is_enforced_but_those_that_advise_in_the_shipped_policy_and_in_an_empty_one() {
        const ADVICE: [RuleId; 4] =
            [RuleId::ResumeInterrupted, RuleId::RemoveWhileLive, RuleId::RetryStrategy, RuleId::ExtensionSafety];
        let policy = Policy::shipped().unwrap();
        for rule in RuleId::ALL {
            let wanted = if ADVICE.contains(&rule) { Mode::Warn } else { Mode::Enforce };
            assert_eq!(mode(&policy, rule, "alice"), wanted, "{rule}");
            assert_eq!(mode(&read("").unwrap(), rule, "alice"), wanted, "{rule}");
        }
        let robot = "system:serviceaccount:ci:deployer";
        assert_eq!(mode(&policy, RuleId::ManualEdit, robot), Mode::Audit);
        assert_eq!(mode(&policy, RuleId::ConcurrentOperation, robot), Mode::Enforce);
        assert_eq!(policy.recovery, Recovery::default());
        assert_eq!(policy.rollouts, Rollouts::default());
        assert!(policy.managers.contains("system:serviceaccount:flux-system:helm-controller"));
        assert!(!policy.managers.contains("alice"));
    }

    #[test]
    fn settings_are_read() {
        let policy = read(
            "rules:\n  pending-recovery: {staleAfter: 1h30m, rollback: never, rollForwardOnly: true, mode: warn}\n  \
             revision-order: {mode: off, onUndecided: allow}\ntools: ['system:serviceaccount:velero:*']\n",
        )
        .unwrap();
        assert_eq!(policy.recovery.stale_after, SignedDuration::from_mins(90));
        assert_eq!(policy.recovery.rollback, RollbackWay::Never);
        assert!(policy.recovery.roll_forward_only);
        assert_eq!(mode(&policy, RuleId::PendingRecovery, "alice"), Mode::Warn);
        assert_eq!(mode(&policy, RuleId::RevisionOrder, "alice"), Mode::Off);
        assert_eq!(policy.on_undecided(RuleId::RevisionOrder), Some(OnUndecided::Allow));
        assert_eq!(mode(&policy, RuleId::RecordDeletion, "alice"), Mode::Enforce);
        assert!(policy.tools.contains("system:serviceaccount:velero:velero"));
    }

    #[test]
    fn what_becomes_of_rollouts_that_are_not_whole_is_read() {
        let policy = read("rules:\n  dropped-bundles: {unexplained: warn, firstInstall: deny}\n").unwrap();
        assert_eq!(policy.rollouts, Rollouts { unexplained: Unexplained::Warn, first_install: Consent::Deny });
        assert_eq!(read("").unwrap().rollouts, Rollouts::default());
    }

    #[test]
    fn the_first_case_that_holds_gives_the_mode() {
        let policy = read(
            "rules:\n  manual-edit:\n    mode: warn\n    cases:\n    - when: {users: ['ci-*'], namespaces: [prod]}\n      \
             mode: off\n    - {when: {users: ['ci-*'], releases: [web], kinds: [Deploy*]}, mode: audit}\n    \
             - {when: {groups: [ops]}, mode: enforce}\n",
        )
        .unwrap();
        assert_eq!(mode(&policy, RuleId::ManualEdit, "ci-bot"), Mode::Audit);
        assert_eq!(mode(&policy, RuleId::ManualEdit, "alice"), Mode::Warn);
        let prod = Scope { namespace: "prod", ..scope("ci-bot") };
        assert_eq!(policy.mode(RuleId::ManualEdit, &prod), Mode::Off);
        let groups = ["devs".into(), "ops".into()];
        let ops = Scope { actor: Actor { groups: &groups, ..scope("alice").actor }, ..scope("alice") };
        assert_eq!(policy.mode(RuleId::ManualEdit, &ops), Mode::Enforce);
    }

    #[test]
    fn ignored_fields_cover_what_lies_below_them() {
        let policy =
            read("ignore:\n- paths: [/spec/replicas, /data]\n  target: {kind: Dep*, namespace: shop}\n").unwrap();
        let covers = |kind: &str, namespace: &str, field: &str| {
            policy.ignore[0].covers(kind, namespace, "web", jsonptr::Pointer::parse(field).unwrap())
        };
        assert!(covers("Deployment", "shop", "/spec/replicas") && covers("Deployment", "shop", "/data/x"));
        assert!(!covers("Deployment", "shop", "/spec") && !covers("Deployment", "shop", "/spec/replicas2"));
        assert!(!covers("ConfigMap", "shop", "/data/x") && !covers("Deployment", "bar", "/data/x"));
    }

    #[test]
    fn errors_name_the_file_and_the_place() {
        for (rest, wanted) in [
            ("rulez: {}\n", "rulez"),
            ("rules:\n  manual-edits: {mode: warn}\n", "manual-edits"),
            ("rules:\n  revision-order: {mode: strict}\n", "strict"),
            ("rules:\n  revision-order: {staleAfter: 5m}\n", "rules.revision-order"),
            ("rules:\n  pending-recovery: {staleAfter: soon}\n", "staleAfter"),
            ("rules:\n  pending-recovery: {staleAfter: -5m}\n", "staleAfter"),
            ("rules:\n  manual-edit: {resources: []}\n", "rules.manual-scale"),
            ("rules:\n  manual-edit: {cases: [{when: {users: ['[']}, mode: off}]}\n", "cases[0].when.users"),
            ("rules:\n  manual-edit: {cases: [{when: {user: [a]}, mode: off}]}\n", "user"),
            ("rules:\n  manual-edit: {graceAfterFailure: never}\n", "graceAfterFailure"),
            ("rules:\n  dropped-bundles: {unexplained: allow}\n", "unexplained"),
            ("rules:\n  dangling-bundle: {firstInstall: deny}\n", "rules.dropped-bundles"),
            ("ignore: [{paths: [spec]}]\n", "\"spec\" is not a JSON pointer"),
            ("tools: ['[']\n", "tools"),
            ("kind: Again\n", "kind"),
        ] {
            let error = read(rest).unwrap_err();
            assert!(error.contains("p/cluster.yaml") && error.contains(wanted), "{rest}: {error}");
        }
        let error = read("rules:\n  revision-order: {mode: strict}\n").unwrap_err();
        assert!(error.contains("line 4"), "{error}");
    }

    #[test]
    fn another_kind_is_refused() {
        let error = parse("apiVersion: v1\nkind: Pod\n", Path::new("x")).unwrap_err().to_string();
        assert!(error.contains("got Pod of v1"), "{error}");
    }
}
