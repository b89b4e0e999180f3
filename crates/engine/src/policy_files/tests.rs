//! Policies from text.

use jiff::SignedDuration;

use super::file::{Mapping, RuleFile};
use super::*;
use crate::facts::Actor;
use crate::policy::{
    AllowRollback, DriftExceptions, DroppedBundlesSettings, OnFirstInstall, OnUndecided, OnUnexplained,
    OverrideSettings, RecoverySettings, Removal, Scope, ignored_fields,
};
use crate::review::Operation;
use crate::rule::{Mode, RuleId};

const HEADER: &str = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n";

fn scope(name: &str) -> Scope<'_> {
    let actor = Actor::named(name, &[]);
    Scope {
        actor,
        namespace: "shop",
        release: Some("web"),
        kind: "Deployment",
        owner: None,
        operation: Operation::Update,
        creates_record: false,
        removal: Removal::Nothing,
    }
}

fn mode(policy: &Policy, rule: RuleId, user: &str) -> Mode {
    policy.mode(rule, &scope(user))
}

fn read(rest: &str) -> Result<Policy, String> {
    Policy::parse(&format!("{HEADER}{rest}"), Path::new("p/cluster.yaml")).map_err(|error| error.to_string())
}

#[test]
fn people_meet_every_rule_in_the_mode_of_its_specification() {
    let policy = Policy::shipped().unwrap();
    for rule in crate::rules::all() {
        let wanted = rule.specification().mode;
        assert_eq!(mode(&policy, rule, "alice"), wanted, "{rule}");
        assert_eq!(mode(&read("").unwrap(), rule, "alice"), wanted, "{rule}");
    }
    let robot = "system:serviceaccount:ci:deployer";
    assert_eq!(mode(&policy, RuleId::known("manual-edit"), robot), Mode::Audit);
    assert_eq!(mode(&policy, RuleId::known("concurrent-operation"), robot), Mode::Enforce);
    assert_eq!(policy.recovery, RecoverySettings::default());
    assert_eq!(policy.dropped_bundles, DroppedBundlesSettings::default());
    assert_eq!(policy.drift_exceptions, DriftExceptions::default());
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
    assert_eq!(policy.recovery.rollback, AllowRollback::Never);
    assert!(policy.recovery.roll_forward_only);
    assert_eq!(mode(&policy, RuleId::known("pending-recovery"), "alice"), Mode::Warn);
    assert_eq!(mode(&policy, RuleId::known("revision-order"), "alice"), Mode::Off);
    assert_eq!(policy.on_undecided(RuleId::known("revision-order")), Some(OnUndecided::Allow));
    assert_eq!(mode(&policy, RuleId::known("record-deletion"), "alice"), Mode::Enforce);
    assert!(policy.tools.contains("system:serviceaccount:velero:velero"));
}

#[test]
fn settings_of_incomplete_rollouts_are_read() {
    let policy = read("rules:\n  dropped-bundles: {unexplained: warn, firstInstall: deny}\n").unwrap();
    assert_eq!(
        policy.dropped_bundles,
        DroppedBundlesSettings { unexplained: OnUnexplained::Warn, first_install: OnFirstInstall::Deny }
    );
    assert_eq!(read("").unwrap().dropped_bundles, DroppedBundlesSettings::default());
}

#[test]
fn the_first_case_that_holds_gives_the_mode() {
    let policy = read(
        "rules:\n  manual-edit:\n    mode: warn\n    cases:\n    - when: {users: ['ci-*'], namespaces: [prod]}\n      \
         mode: off\n    - {when: {users: ['ci-*'], releases: [web], kinds: [Deploy*]}, mode: audit}\n    \
         - {when: {groups: [ops]}, mode: enforce}\n",
    )
    .unwrap();
    assert_eq!(mode(&policy, RuleId::known("manual-edit"), "ci-bot"), Mode::Audit);
    assert_eq!(mode(&policy, RuleId::known("manual-edit"), "alice"), Mode::Warn);
    let prod = Scope { namespace: "prod", ..scope("ci-bot") };
    assert_eq!(policy.mode(RuleId::known("manual-edit"), &prod), Mode::Off);
    let groups = ["devs".into(), "ops".into()];
    let ops = Scope { actor: Actor::named("alice", &groups), ..scope("alice") };
    assert_eq!(policy.mode(RuleId::known("manual-edit"), &ops), Mode::Enforce);
}

#[test]
fn ignored_fields_include_the_fields_below_them() {
    let policy = read("ignore:\n- paths: [/spec/replicas, /data]\n  target: {kind: Dep*, namespace: shop}\n").unwrap();
    let covers = |kind: &str, namespace: &str, field: &str| {
        ignored_fields(&policy.ignore, kind, namespace, "web")(jsonptr::Pointer::parse(field).unwrap())
    };
    assert!(covers("Deployment", "shop", "/spec/replicas") && covers("Deployment", "shop", "/data/x"));
    assert!(!covers("Deployment", "shop", "/spec") && !covers("Deployment", "shop", "/spec/replicas2"));
    assert!(!covers("ConfigMap", "shop", "/data/x") && !covers("Deployment", "bar", "/data/x"));
}

#[test]
fn every_error_of_a_file_is_reported_with_its_location() {
    for (rest, wanted) in [
        ("rulez: {}\n", "3:1: unknown key `rulez`; did you mean `rules`?"),
        ("rules:\n  manual-edits: {mode: warn}\n", "4:3: there is no rule `manual-edits`; did you mean `manual-edit`?"),
        ("rules:\n  revision-order: {mode: enforced}\n", "4:26: unknown value `enforced`; did you mean `enforce`?"),
        (
            "rules:\n  revision-order: {mode: strict}\n",
            "4:26: unknown value `strict`; use one of enforce, warn, audit, off",
        ),
        // A person reads it on a terminal.
        (
            "rules:\n  revision-order: {mode: \"a\\n\\e[31mb\"}\n",
            "4:26: unknown value `a \u{fffd}[31mb`; use one of enforce, warn, audit, off",
        ),
        ("rules:\n  revision-order: {mode: }\n", "4:24: expected one value, got nothing"),
        (
            "rules:\n  revision-order: {staleAfter: 5m}\n",
            "4:20: `staleAfter` is a setting of pending-recovery, not of revision-order",
        ),
        ("rules:\n  pending-recovery: {staleAfter: soon}\n", "4:34: `soon` is not a duration like 90s, 15m or 1h30m"),
        ("rules:\n  pending-recovery: {staleAfter: -5m}\n", "4:34: `-5m` is not a duration"),
        ("rules:\n  pending-recovery: {rollForwardOnly: yes}\n", "4:39: expected true or false, got `yes`"),
        ("rules:\n  manual-edit: {cases: [{when: {users: ['[']}, mode: off}]}\n", "4:41: `[` is not a glob: "),
        (
            "rules:\n  manual-edit: {cases: [{when: {user: [a]}, mode: off}]}\n",
            "4:33: unknown key `user`; did you mean `users`?",
        ),
        ("rules:\n  manual-edit: {cases: [{mode: off}]}\n", "4:25: the key `when` is missing"),
        ("rules: [manual-edit]\n", "3:8: expected a mapping, got a list"),
        ("delegate: [manual-edti]\n", "3:12: there is no rule `manual-edti`; did you mean `manual-edit`?"),
        (
            "ignore: [{paths: [spec]}]\n",
            "3:19: `spec` is not a JSON pointer like /spec/replicas; write / in a name as ~1, and ~ as ~0",
        ),
        ("tools: flux\n", "3:8: expected a list, got `flux`"),
        ("kind: Again\n", "3:1: the key `kind` appears twice; remove one"),
        (
            "rules:\n  manual-edit: {mode: warn}\n  manual-edit: {mode: audit}\n",
            "5:3: the key `manual-edit` appears twice; remove one",
        ),
        ("? [a]\n: b\n", "3:3: expected a key, got a list"),
        ("---\nkind: ClusterPolicy\n", "3:1: a policy file holds one document"),
        ("tools: *nobody\n", "3:8: "),
        ("tools: [\n", "3:8: unclosed bracket"),
        ("a: &a [*a]\n", "3:8: the alias refers to a value that contains it"),
    ] {
        let error = read(rest).unwrap_err();
        assert!(error.contains(&format!("p/cluster.yaml:{}", wanted.trim_start_matches(':'))), "{rest}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let error = read("rulez: {}\ntools: ['[']\nrules:\n  manual-edits: {mode: warm}\n").unwrap_err();
    let places: Vec<_> = error.lines().map(|line| line.split(": ").next().unwrap()).collect();
    let wanted = ["3:1", "4:9", "6:3", "6:24"].map(|place| format!("p/cluster.yaml:{place}"));
    assert_eq!(places, wanted, "{error}");
}

#[test]
fn errors_that_aliases_repeat_are_reported_once() {
    let text = "rules:\n  manual-edit: &e\n    cases: [{when: {users: [bot]}, mode: audit}]\n  manual-delete: *e\n";
    let policy = read(text).unwrap();
    assert_eq!(mode(&policy, RuleId::known("manual-delete"), "bot"), Mode::Audit);
    assert_eq!(mode(&policy, RuleId::known("manual-scale"), "bot"), Mode::Enforce);
    assert_eq!(read(&text.replace("audit", "audti")).unwrap_err().lines().count(), 1);
}

#[test]
fn files_that_grow_without_bound_are_refused() {
    let deep = format!("tools: {}{}\n", "[".repeat(100), "]".repeat(100));
    assert!(read(&deep).unwrap_err().contains("nested deeper than 32 levels"), "{deep}");
    let mut aliases = String::from("a: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let all = vec![format!("*a{}", level - 1); 10].join(", ");
        aliases.push_str(&format!("b{level}: &a{level} [{all}]\n"));
    }
    assert!(read(&aliases).unwrap_err().contains("more than 100000 values"));
    let long = format!("a: &a \"{}\"\ntools: [{}]\n", "x".repeat(800 << 10), "*a, ".repeat(50_000));
    assert!(read(&long).unwrap_err().contains("more than 100000 values"));
}

#[test]
fn the_number_of_problems_of_a_file_is_limited() {
    let keys: String = (0..2_000).map(|key| format!("k{key}: {{}}, ")).collect();
    let text = format!("{HEADER}rules: {{{keys}}}\n");
    let problems = Policy::parse(&text, Path::new("x")).unwrap_err().problems;
    assert_eq!(problems.len(), 1000);
    let places: Vec<_> = problems.iter().filter_map(|problem| problem.location.as_ref()).collect();
    assert!(places.iter().all(|place| place.text.len() <= 600 && place.text.get(place.range.clone()).is_some()));
    assert_eq!(&places[1].text[places[1].range.clone()], "k1");
    let last = places.last().unwrap();
    assert_eq!((last.column, last.text.as_str()), (text.lines().nth(2).unwrap().find("k999:").unwrap() + 1, ""));
}

#[test]
fn another_kind_of_policy_is_an_error() {
    let error = Policy::parse("apiVersion: v1\nkind: Pod\n", Path::new("x")).unwrap_err().to_string();
    assert!(error.contains("x:1:13: unknown value `v1`") && error.contains("x:2:7: unknown value `Pod`"), "{error}");
    let error = Policy::parse("kind: NamespacePolicy\n", Path::new("x")).unwrap_err().to_string();
    assert!(error.contains("x:1:7: expected ClusterPolicy in this file, got NamespacePolicy"), "{error}");
    assert!(error.contains("x:1:1: the key `apiVersion` is missing"), "{error}");
    assert!(Policy::parse("", Path::new("x")).is_err());
}

#[test]
fn documented_defaults_are_the_real_ones() {
    let mut text = String::from("overrides:\n");
    for (key, default) in file::OverridesFile::KEYS.iter().filter_map(|key| Some((key, key.default?))) {
        text.push_str(&format!("  {}: {}\n", key.name, default()));
    }
    text.push_str("rules:\n");
    for rule in crate::rules::all() {
        text.push_str(&format!("  {rule}:\n"));
        let settings = settings_of(rule).into_iter().filter_map(|setting| Some((setting.name, setting.default?)));
        for (name, default) in settings {
            match name {
                // A mode in the file drops stricter cases.
                "mode" => assert_eq!(mode(&read("").unwrap(), rule, "alice").as_str(), default, "{rule}"),
                _ => text.push_str(&format!("    {name}: {default}\n")),
            }
        }
    }
    assert!(RuleFile::KEYS.iter().all(|key| key.description().len() > 10));
    // A policy has no equality: its globs are compiled.
    let (written, built_in) = (read(&text).unwrap(), read("").unwrap());
    assert_eq!(format!("{:?}", written), format!("{:?}", built_in));
}

#[test]
fn the_shipped_policy_has_the_built_in_settings() {
    let shipped = Policy::shipped().unwrap();
    assert_eq!(shipped.overrides, OverrideSettings::default());
    assert_eq!(shipped.grace_after_failure, Policy::default().grace_after_failure);
    assert_eq!(shipped.overrides.max_duration, SignedDuration::from_hours(4));
}

#[test]
fn a_namespace_protects_only_its_own_releases() {
    for (protected, wanted) in [
        ("{}", "this names no release"),
        ("{releases: []}", "the list is empty"),
        ("{releases: [shop/web]}", "so nothing is protected"),
        ("{namespaces: [Prod]}", "so nothing is protected"),
        ("{release: [web]}", "unknown key `release`"),
        ("[web]", "expected"),
    ] {
        let error = read(&format!("protected: {protected}")).unwrap_err();
        assert!(error.contains(wanted), "{protected}: {error}");
    }
    let of_namespace = |protected: &str| {
        let mut files = PolicyFiles::default();
        files.set_cluster("c".into(), HEADER.to_owned());
        let header = "apiVersion: interlock.dev/v1alpha1\nkind: NamespacePolicy\n";
        files.add_namespace("shop".into(), "n".into(), format!("{header}protected: {protected}"));
        let problems = LoadedPolicies::of(&files).problems;
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().concat()
    };
    assert_eq!(of_namespace("{releases: [web]}"), "");
    let error = of_namespace("{releases: [web], namespaces: [bar]}");
    assert!(error.contains("only the cluster policy may set `namespaces` of `protected`"), "{error}");
}

#[test]
fn settings_that_a_file_omits_are_as_shipped() {
    let robot = "system:serviceaccount:ci:deployer";
    let edit = RuleId::known("manual-edit");
    let policy = read("protected: {releases: [db]}\n").unwrap();
    assert_eq!((mode(&policy, edit, robot), mode(&policy, edit, "alice")), (Mode::Audit, Mode::Enforce));
    assert!(policy.controllers.contains("system:serviceaccount:keda:keda-operator"));
    assert_eq!((policy.ignore.len(), policy.accounts.pipelines.len()), (2, 2));
    assert_eq!(format!("{:?}", read("").unwrap()), format!("{:?}", Policy::shipped().unwrap()));
    assert_eq!(format!("{:?}", read(files::SHIPPED_POLICY).unwrap()), format!("{:?}", Policy::shipped().unwrap()));
}

#[test]
fn a_list_adds_and_the_key_only_replaces() {
    let helm = "system:serviceaccount:flux-system:helm-controller";
    let managers = |list: &str| {
        let policy = read(&format!("managers: {list}\n")).unwrap();
        ["own", helm].map(|user| policy.managers.contains(user))
    };
    assert_eq!(managers("[own]"), [true, true]);
    assert_eq!(managers("{only: [own]}"), [true, false]);
    assert_eq!(managers("{only: []}"), [false, false]);
    assert_eq!(managers(""), [false, true]);
    let error = |rest: &str| read(rest).unwrap_err();
    assert!(error("managers: []\n").contains("3:11: an empty list adds nothing"));
    assert!(error("managers: {only: [a], also: [b]}\n").contains("3:23: unknown key `also`"));
    assert!(error("managers: {also: [b]}\n").contains("3:11: expected a list, or {only: [...]}"));
    assert!(error("managers: {only: a}\n").contains("3:18: expected a list, got `a`"));
    assert!(error("ignore: [{paths: {only: [/a]}}]\n").contains("expected a list, got a mapping"));
    // A pipeline with the name of a shipped one replaces it.
    let policy = read("pipelines: [{name: gitlab, users: ['ours:*']}]\n").unwrap();
    let names: Vec<_> = policy.accounts.pipelines.iter().map(|pipeline| pipeline.name.as_str()).collect();
    assert_eq!(names, ["gitlab", "rancher"]);
    assert!(policy.accounts.pipelines[0].users.as_ref().is_some_and(|users| users.contains("ours:7")));
}

#[test]
fn cases_of_a_file_come_first_and_a_mode_drops_stricter_ones() {
    let (edit, resume) = (RuleId::known("manual-edit"), RuleId::known("resume-interrupted"));
    let robot = "system:serviceaccount:ci:deployer";
    let of = |settings: &str| mode(&read(&format!("rules:\n  manual-edit: {settings}\n")).unwrap(), edit, robot);
    assert_eq!(of("{cases: [{when: {serviceAccounts: ['ci:*']}, mode: enforce}]}"), Mode::Enforce);
    assert_eq!(of("{cases: [{when: {serviceAccounts: ['cd:*']}, mode: enforce}]}"), Mode::Audit);
    assert_eq!(of("{cases: {only: []}}"), Mode::Enforce);
    assert_eq!((of("{mode: enforce}"), of("{mode: warn}"), of("{mode: off}")), (Mode::Audit, Mode::Audit, Mode::Off));
    assert!(read("rules:\n  manual-edit: {cases: []}\n").unwrap_err().contains("4:24: an empty list adds nothing"));
    let of_extension = |settings: &str| {
        let policy = read(&format!("rules:\n  resume-interrupted: {settings}\n")).unwrap();
        policy.mode(resume, &Scope { owner: Some("operator-controller"), ..scope("alice") })
    };
    assert_eq!((of_extension("{}"), of_extension("{mode: warn}")), (Mode::Enforce, Mode::Warn));
    assert_eq!((of_extension("{mode: audit}"), of_extension("{mode: enforce}")), (Mode::Audit, Mode::Enforce));
}

#[test]
fn a_namespace_replaces_no_list() {
    let mut files = PolicyFiles::default();
    files.set_cluster("c".into(), HEADER.to_owned());
    let header = HEADER.replace("Cluster", "Namespace");
    files.add_namespace(
        "shop".into(),
        "n".into(),
        format!("{header}rules: {{manual-edit: {{cases: {{only: []}}}}}}\n"),
    );
    let problems = LoadedPolicies::of(&files).problems;
    let errors: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert!(errors.len() == 1 && errors[0].starts_with("n:3:31: only cluster.yaml replaces lists"), "{errors:?}");
}

#[test]
fn a_completed_policy_has_the_origin_of_each_setting() {
    let text = "managers: [own]\ntools: {only: []}\nrules:\n  manual-edit: {mode: warn}\n";
    let mut files = PolicyFiles::default();
    files.set_cluster("c".into(), format!("{HEADER}{text}"));
    let completed = files.complete().unwrap().remove(0);
    let find = |path: &str, value: &str| {
        let found = completed.settings.iter().find(|it| it.path.join(".") == path && it.value == value);
        &found.unwrap_or_else(|| panic!("{path} {value}: {:?}", completed.settings)).origin
    };
    let line = |line| SettingOrigin::File { file: "c".into(), line };
    assert_eq!(*find("managers", "own"), line(3));
    assert_eq!(*find("managers", "system:serviceaccount:flux-system:helm-controller"), SettingOrigin::Shipped);
    assert_eq!(*find("tools.only", "[]"), line(4));
    assert_eq!(*find("rules.manual-edit.mode", "warn"), line(6));
    assert_eq!(*find("rules.manual-edit.cases", "{when: {pipelines: ['*']}, mode: audit}"), SettingOrigin::Shipped);
    assert!(completed.settings.iter().all(|it| it.path[0] != "tools" || it.path.len() == 2));
}

#[test]
fn lists_with_another_meaning_than_before_are_found() {
    let changes = |rest: &str| {
        let mut files = PolicyFiles::default();
        files.set_cluster("c".into(), format!("{HEADER}{rest}"));
        let all = files.changed_meanings();
        all.into_iter().map(|it| format!("{}: {} -> {}", it.path, it.before, it.now)).collect::<Vec<_>>()
    };
    assert_eq!(changes(files::SHIPPED_POLICY), [""; 0]);
    let all = changes(
        "managers: [a]\nrules: {manual-edit: {mode: warn}, manual-scale: {mode: audit}, manual-delete: {mode: off}}\n",
    );
    let change = |path: &str| all.iter().find(|it| it.starts_with(path)).map(String::as_str);
    let flux = "system:serviceaccount:flux-system";
    let managers = format!("managers: a -> a, {flux}:helm-controller, {flux}:kustomize-controller and 10 more");
    assert_eq!(change("managers"), Some(managers.as_str()));
    let edit = "rules.manual-edit.cases: warn -> warn when {serviceAccounts: ['*argocd-server']}, otherwise audit when {serviceAccounts: ['*']}, otherwise audit when {pipelines: ['*']}, otherwise warn";
    assert_eq!(change("rules.manual-edit"), Some(edit));
    assert_eq!((change("rules.manual-scale"), change("rules.manual-delete"), change("freezes")), (None, None, None));
    assert!(
        change("tools: none -> ").is_some() && change("rules.resume-interrupted.cases: warn -> enforce when").is_some(),
        "{all:?}"
    );
}
