//! The settings that a namespace may change.

mod selectors;

use jiff::SignedDuration;

use super::*;
use crate::facts::Actor;
use crate::policy::{
    AllowRollback, DriftExceptions, NamespaceLabels, OnUndecided, Removal, Scope, StartedBy, WhenSuspended,
};
use crate::policy_files::problem::SourceFile;
use crate::policy_files::{SettingOrigin, in_force};
use crate::review::Operation;
use crate::rule::{Mode, RuleId};

const CLUSTER: &str = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n";
const NAMESPACE: &str = "apiVersion: interlock.dev/v1alpha1\nkind: NamespacePolicy\n";

/// A directory with a policy of the cluster and one of the namespace `shop`.
fn files(cluster: &str, shop: &str) -> PolicyFiles {
    let source = |path: &str, text: String| SourceFile { path: path.into(), text };
    PolicyFiles {
        cluster: Some(source("p/cluster.yaml", format!("{CLUSTER}{cluster}"))),
        namespaces: vec![("shop".to_owned(), source("p/namespaces/shop.yaml", format!("{NAMESPACE}{shop}")))],
        ..PolicyFiles::default()
    }
}

fn read(cluster: &str, shop: &str) -> Result<Policies, String> {
    LoadedPolicies::of(&files(cluster, shop)).into_policies().map_err(|error| error.to_string())
}

fn mode(policies: &Policies, namespace: &str, rule: RuleId, user: &str) -> Mode {
    let actor = Actor::named(user, &[]);
    let scope = Scope {
        actor,
        namespace,
        release: None,
        kind: "Deployment",
        owner: None,
        operation: Operation::Update,
        creates_record: false,
        removal: Removal::Nothing,
    };
    policies.of(namespace).mode(rule, &scope)
}

#[test]
fn the_stricter_of_both_modes_counts_for_each_request() {
    let cluster = "rules:\n  manual-edit: {mode: warn, cases: [{when: {users: [bot]}, mode: audit}]}\n";
    let shop = "rules:\n  manual-edit: {mode: warn, cases: [{when: {users: [alice]}, mode: enforce}]}\n";
    let policies = read(cluster, shop).unwrap();
    let modes =
        |namespace| ["alice", "bob", "bot"].map(|user| mode(&policies, namespace, RuleId::known("manual-edit"), user));
    assert_eq!(modes("shop"), [Mode::Enforce, Mode::Warn, Mode::Warn]);
    assert_eq!(modes("bar"), [Mode::Warn, Mode::Warn, Mode::Audit]);
    assert_eq!(mode(&policies, "shop", RuleId::known("manual-scale"), "alice"), Mode::Enforce);
}

#[test]
fn cases_of_a_namespace_add_to_those_of_the_cluster() {
    let shop = "rules:\n  manual-edit: {cases: [{when: {users: [bot]}, mode: enforce}]}\n";
    let policies = read("rules:\n  manual-edit: {mode: audit}\n", shop).unwrap();
    assert_eq!(mode(&policies, "shop", RuleId::known("manual-edit"), "bot"), Mode::Enforce);
    assert_eq!(mode(&policies, "shop", RuleId::known("manual-edit"), "bob"), Mode::Audit);
}

#[test]
fn the_modes_of_a_namespace_replace_those_of_a_delegated_rule() {
    let cluster = "delegate: [manual-edit, pending-recovery]\nrules:\n  \
                   manual-edit: {cases: [{when: {users: [bot]}, mode: warn}], onUndecided: deny}\n";
    let shop = "rules:\n  manual-edit: {mode: 'off', onUndecided: allow}\n  \
                pending-recovery: {rollback: always}\n";
    let policies = read(cluster, shop).unwrap();
    assert_eq!(mode(&policies, "shop", RuleId::known("manual-edit"), "bot"), Mode::Off);
    assert_eq!(policies.of("shop").on_undecided(RuleId::known("manual-edit")), Some(OnUndecided::Allow));
    assert_eq!(policies.of("shop").recovery.rollback, AllowRollback::Always);
    assert_eq!(mode(&policies, "shop", RuleId::known("pending-recovery"), "bot"), Mode::Enforce);
    assert_eq!(mode(&policies, "bar", RuleId::known("manual-edit"), "bot"), Mode::Warn);
    // If the namespace sets no modes, those of the cluster apply.
    let policies = read(cluster, "rules:\n  manual-edit: {graceAfterFailure: 1s}\n").unwrap();
    assert_eq!(mode(&policies, "shop", RuleId::known("manual-edit"), "bot"), Mode::Warn);
    assert_eq!(policies.of("shop").grace_after_failure, SignedDuration::from_secs(1));
    // Rules that are not delegated use these modes.
    for loose in ["manual-edit: {graceAfterFailure: 1h}", "pending-recovery: {staleAfter: 5m}"] {
        let error = read(cluster, &format!("rules:\n  {loose}\n")).unwrap_err();
        assert!(error.ends_with("a namespace may only tighten it, because other rules use it too"), "{error}");
    }
}

#[test]
fn flux_exceptions_loosen_only_if_their_rules_are_delegated() {
    let exceptions = |cluster: &str, shop: &str| {
        let read = read(cluster, &format!("rules:\n  manual-edit: {{{shop}}}\n"));
        read.map(|policies| policies.of("shop").drift_exceptions)
    };
    let (honour, enforce) = (true, WhenSuspended::Enforce);
    let of = |honour_drift_ignore, when_suspended| Ok(DriftExceptions { honour_drift_ignore, when_suspended });
    assert_eq!(exceptions("", "onUndecided: deny"), of(honour, enforce));
    assert_eq!(exceptions("", "honourDriftIgnore: false"), of(false, enforce));
    let loose = "rules:\n  manual-edit: {honourDriftIgnore: false, whenSuspended: warn}\n";
    assert_eq!(exceptions(loose, "whenSuspended: enforce"), of(false, enforce));
    let error = exceptions(loose, "honourDriftIgnore: true").unwrap_err();
    assert!(error.contains("unless cluster.yaml delegates manual-edit"), "{error}");
    assert_eq!(
        exceptions(&format!("delegate: [manual-edit]\n{loose}"), "honourDriftIgnore: true"),
        of(true, WhenSuspended::Warn)
    );
    // While a HelmRelease is suspended, three rules are relaxed.
    for delegated in ["", "delegate: [manual-edit]\n", "delegate: [manual-edit, manual-delete]\n"] {
        let error = exceptions(delegated, "whenSuspended: warn").unwrap_err();
        assert!(error.contains("unless cluster.yaml delegates manual-edit, manual-delete and manual-scale"), "{error}");
    }
    let delegated = "delegate: [manual-edit, manual-delete, manual-scale]\n";
    assert_eq!(exceptions(delegated, "whenSuspended: warn"), of(honour, WhenSuspended::Warn));
}

#[test]
fn every_policy_has_the_override_bounds_of_namespaces() {
    let policies =
        read("overrides: {maxDuration: 2h}\n", "overrides: {secondPerson: true, maxDuration: 1h}\n").unwrap();
    for namespace in ["", "bar", "shop"] {
        let bounds = policies.of(namespace).overrides_in("shop");
        assert!(bounds.second_person && bounds.allowed && bounds.max_duration == SignedDuration::from_hours(1));
    }
    assert_eq!(policies.of("").overrides_in("bar"), policies.of("").overrides);
}

#[test]
fn an_unread_file_keeps_the_policies_in_force() {
    let problem = Problem { file: "p/namespaces/bar.yaml".into(), location: None, message: "gone".to_owned() };
    let unread = PolicyFiles { unread: vec![problem.clone()], ..files("", "") };
    assert!(LoadedPolicies::of(&unread).policies.is_none());
    let wrong = PolicyFiles { wrong: vec![problem], ..files("", "") };
    let reading = LoadedPolicies::of(&wrong);
    assert!(reading.policies.is_some() && reading.problems.len() == 1);
}

#[test]
fn a_wrong_file_of_another_namespace_hides_nothing() {
    let files = files("managers: [flux]\n", "rulez: {}\n");
    let bar = in_force(&files, "bar", &NamespaceLabels::new()).unwrap();
    let list = |name: &str| bar.lists.iter().find(|list| list.name == name).unwrap();
    let origin = SettingOrigin::File { file: "p/cluster.yaml".into(), line: 3 };
    assert_eq!((list("managers").value.as_str(), &list("managers").origin), ("flux", &origin));
    assert_eq!((list("delegate").value.as_str(), &list("delegate").origin), ("[]", &SettingOrigin::Shipped));
    assert!(in_force(&files, "shop", &NamespaceLabels::new()).is_err());
}

#[test]
fn settings_are_tightened() {
    let shop = "rules:\n  pending-recovery: {staleAfter: 1h, rollback: never, rollForwardOnly: true, onUndecided: deny}\n  \
                manual-edit: {graceAfterFailure: 1s}\n  unusual-create: {startedBy: managers}\n  dropped-bundles: {firstInstall: deny}\n\
                overrides: {allowed: false, maxDuration: 1h, secondPerson: true}\n";
    let policies = read("", shop).unwrap();
    let (shop, bar) = (policies.of("shop"), policies.of("bar"));
    assert_eq!(shop.recovery.stale_after, SignedDuration::from_hours(1));
    assert!(shop.recovery.roll_forward_only && shop.recovery.rollback == AllowRollback::Never);
    assert_eq!(shop.on_undecided(RuleId::known("pending-recovery")), Some(OnUndecided::Deny));
    assert_eq!(shop.grace_after_failure, SignedDuration::from_secs(1));
    assert_eq!(shop.dropped_bundles.first_install, crate::policy::OnFirstInstall::Deny);
    assert_eq!((shop.started_by, bar.started_by), (StartedBy::Managers, StartedBy::Anybody));
    let overrides = &shop.overrides;
    assert_eq!((overrides.allowed, overrides.second_person), (false, true));
    assert_eq!(overrides.max_duration, SignedDuration::from_hours(1));
    assert!(bar.overrides.allowed && !bar.recovery.roll_forward_only);
}

#[test]
fn a_looser_setting_is_an_error_at_its_value() {
    for (cluster, shop, place, says) in [
        ("", "  revision-order: {mode: warn}\n", "4:26", "`warn` loosens the cluster policy, which says enforce"),
        ("", "  manual-edit: {cases: [{when: {}, mode: off}]}\n", "4:42", "`off` loosens"),
        ("", "  manual-edit: {onUndecided: allow}\n", "4:30", "which says nothing, so that"),
        ("  manual-edit: {onUndecided: deny}\n", "  manual-edit: {onUndecided: allow}\n", "4:30", "says deny"),
        (
            "",
            "  pending-recovery: {staleAfter: 5m}\n",
            "4:34",
            "which says 15m; a namespace may only tighten it, because other rules use it too",
        ),
        ("", "  pending-recovery: {rollback: always}\n", "4:32", "unless cluster.yaml delegates pending-recovery"),
        (
            "  pending-recovery: {rollForwardOnly: true}\n",
            "  pending-recovery: {rollForwardOnly: false}\n",
            "4:39",
            "true",
        ),
        ("", "  manual-edit: {graceAfterFailure: 90s}\n", "4:36", "which says 1m"),
        ("", "  dropped-bundles: {unexplained: warn}\n", "4:34", "which says deny"),
        ("  dropped-bundles: {firstInstall: deny}\n", "  dropped-bundles: {firstInstall: allow}\n", "4:35", "deny"),
        (
            "  unusual-create: {startedBy: managers}\n",
            "  unusual-create: {startedBy: anybody}\n",
            "4:31",
            "which says managers",
        ),
        ("", "  manual-scale: {resources: []}\n", "4:18", "only the cluster policy may set `resources`"),
        ("", "overrides: {maxDuration: 5h}\n", "4:26", "which says 4h; a namespace may only tighten it"),
        ("overrides: {secondPerson: true}\n", "overrides: {secondPerson: false}\n", "4:27", "which says true"),
        ("overrides: {allowed: false}\n", "overrides: {allowed: true}\n", "4:22", "which says false"),
        ("", "overrides: {namespace: x}\n", "4:13", "only the cluster policy may set `namespace`"),
        ("", "managers: ['*']\n", "4:1", "only the cluster policy may set `managers`; move it to cluster.yaml"),
        ("", "delegate: []\n", "4:1", "only the cluster policy may set `delegate`"),
    ] {
        let (cluster, text) = (format!("rules:\n{cluster}"), format!("rules:\n{shop}"));
        let error = read(&cluster, &text).map(drop).unwrap_err();
        assert!(
            error.starts_with(&format!("p/namespaces/shop.yaml:{place}: ")) && error.contains(says),
            "{shop}: {error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_namespace_with_a_wrong_file_gets_the_cluster_policy() {
    let mut files = files("rules:\n  manual-edit: {mode: audit}\n", "rules:\n  manual-edit: {mode: enforced}\n");
    let (_, wrong) = files.namespaces[0].clone();
    let bar = SourceFile { text: wrong.text.replace("enforced", "enforce"), ..wrong };
    files.namespaces.push(("bar".to_owned(), bar));
    let reading = LoadedPolicies::of(&files);
    let policies = reading.policies.unwrap();
    assert_eq!(mode(&policies, "shop", RuleId::known("manual-edit"), "bob"), Mode::Audit);
    assert_eq!(mode(&policies, "bar", RuleId::known("manual-edit"), "bob"), Mode::Enforce);
    assert_eq!(policies.namespaces().collect::<Vec<_>>(), ["bar"]);
    assert_eq!(reading.problems.len(), 1);
}

#[test]
fn with_a_wrong_cluster_policy_all_files_are_checked() {
    let reading = LoadedPolicies::of(&files("rulez: {}\n", "rules:\n  manual-edit: {mode: off}\n  manual-edti: {}\n"));
    assert!(reading.policies.is_none());
    let files: Vec<_> = reading.problems.iter().map(|problem| problem.file.to_str().unwrap()).collect();
    assert_eq!(files, ["p/cluster.yaml", "p/namespaces/shop.yaml"]);
}

#[test]
fn settings_in_force_have_a_file_and_a_line() {
    let cluster = "delegate: [manual-scale]\nrules:\n  manual-edit:\n    mode: warn\n    cases:\n    \
                   - when: {users: [bot]}\n      mode: audit\n  manual-scale: {mode: audit}\n";
    let shop = "rules:\n  manual-edit: {mode: enforce}\n  manual-scale: {mode: 'off'}\noverrides: {maxDuration: 1h}\n";
    let in_force_of = |namespace: &str| {
        let in_force = in_force(&files(cluster, shop), namespace, &NamespaceLabels::new()).unwrap();
        let shown = |setting: &crate::policy_files::SettingInForce| match &setting.origin {
            SettingOrigin::Shipped => format!("{} {} shipped", setting.name, setting.value),
            SettingOrigin::File { file, line } => {
                format!("{} {} {}:{line}", setting.name, setting.value, file.display())
            }
        };
        let rule = |rule: RuleId| {
            in_force.rules.iter().find(|it| it.rule == rule).unwrap().settings.iter().map(shown).collect::<Vec<_>>()
        };
        let overrides = in_force.overrides.iter().map(shown).collect::<Vec<_>>();
        (rule(RuleId::known("manual-edit")), rule(RuleId::known("manual-scale")), overrides)
    };
    let case = "case audit when {users: [bot]} p/cluster.yaml:9";
    let (edit, scale, overrides) = in_force_of("shop");
    let clicks = "case warn when {serviceAccounts: ['*argocd-server']} shipped";
    let people = ["case audit when {serviceAccounts: ['*']} shipped", "case audit when {pipelines: ['*']} shipped"];
    let own = ["graceAfterFailure 60s shipped", "honourDriftIgnore true shipped", "whenSuspended enforce shipped"];
    assert_eq!(edit[..2], ["mode enforce p/namespaces/shop.yaml:4", case]);
    assert_eq!(edit[2], clicks);
    assert_eq!(edit[3..5], people);
    assert_eq!(edit[5..], own);
    assert_eq!(scale, ["mode 'off' p/namespaces/shop.yaml:5", "resources [] shipped"]);
    assert_eq!(overrides[1], "maxDuration 1h p/namespaces/shop.yaml:6");
    let (edit, scale, overrides) = in_force_of("bar");
    assert_eq!(edit[..2], ["mode warn p/cluster.yaml:6", case]);
    assert_eq!(edit[2], clicks);
    assert_eq!(edit[3..5], people);
    assert_eq!(edit[5..], own);
    assert_eq!(scale, ["mode audit p/cluster.yaml:10", people[0], people[1], "resources [] shipped"]);
    assert_eq!(overrides[1], "maxDuration 4h shipped");
}
