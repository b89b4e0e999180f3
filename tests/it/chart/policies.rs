//! Policies in the values: the chart renders what the program accepts, or ends with what is wrong.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{expect_refused, object, rendered};
use crate::harness::binary::{interlock, stderr};

/// Values and texts as files, for `--values` and `--set-file`.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.0.path().join(name);
        fs::write(&file, text).unwrap();
        file
    }

    fn values(&self, text: &str) -> String {
        format!("--values={}", self.write("values.yaml", text).display())
    }

    fn text(&self, text: &str) -> String {
        format!("--set-file=policies.cluster={}", self.write("cluster.yaml", text).display())
    }
}

/// The policies of rendered ConfigMaps, after the program has accepted them.
#[track_caller]
fn accepted(arguments: &[&str]) -> (Value, Vec<(String, Value)>) {
    let objects = rendered(arguments).unwrap_or_else(|error| panic!("{error}"));
    let directory = tempfile::tempdir().unwrap();
    let cluster =
        object(&objects, "ConfigMap", "interlock-policies")["data"]["cluster.yaml"].as_str().unwrap().to_owned();
    fs::write(directory.path().join("cluster.yaml"), &cluster).unwrap();
    fs::create_dir(directory.path().join("namespaces")).unwrap();
    let mut namespaces = Vec::new();
    for (key, text) in
        object(&objects, "ConfigMap", "interlock-namespace-policies")["data"].as_object().into_iter().flatten()
    {
        let text = text.as_str().unwrap();
        fs::write(directory.path().join("namespaces").join(key), text).unwrap();
        namespaces.push((key.clone(), serde_saphyr::from_str(text).unwrap()));
    }
    check(directory.path());
    (serde_saphyr::from_str(&cluster).unwrap(), namespaces)
}

#[track_caller]
fn check(directory: &Path) {
    let output = interlock(&["policy", "check", directory.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_policy_as_a_map_gets_the_version_and_the_kind_and_keeps_the_mode_off() {
    let files = Files::new();
    let values = files.values(
        "policies:\n  cluster:\n    rules:\n      manual-edit: {mode: off, cases: [{when: {users: [root]}, mode: off}]}\n  \
         namespaces:\n    shop:\n      rules:\n        manual-delete: {mode: enforce}\n",
    );
    let (cluster, namespaces) = accepted(&[&values]);
    let off = json!({"mode": "off", "cases": [{"when": {"users": ["root"]}, "mode": "off"}]});
    assert_eq!(
        cluster,
        json!({"apiVersion": "interlock.dev/v1alpha1", "kind": "ClusterPolicy", "rules": {"manual-edit": off}})
    );
    let shop = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "NamespacePolicy", "rules": {"manual-delete": {"mode": "enforce"}},
    });
    assert_eq!(namespaces, [("shop.yaml".to_owned(), shop)]);
}

#[test]
fn a_policy_as_a_map_that_the_program_refuses_ends_the_rendering() {
    for (wrong, sentence) in [
        (
            "cluster.rules.manual-edits.mode=off",
            "'/policies/cluster/rules': additional properties 'manual-edits' not allowed",
        ),
        ("cluster.rules.manual-edit.mode=enforced", "'/policies/cluster/rules/manual-edit/mode': value must be one of"),
        ("cluster.manager={a}", "'/policies/cluster': additional properties 'manager' not allowed"),
        ("cluster.kind=NamespacePolicy", "'/policies/cluster/kind': value must be 'ClusterPolicy'"),
        ("namespaces.shop.managers={a}", "'/policies/namespaces/shop': additional properties 'managers' not allowed"),
        ("accounts.ours.manager={a}", "'/policies/accounts/ours': additional properties 'manager' not allowed"),
    ] {
        expect_refused(&[&format!("--set=policies.{wrong}")], sentence);
    }
    accepted(&["--set=policies.cluster.rules.manual-edit.mode=warn"]);
}

#[test]
fn a_policy_as_text_that_the_program_refuses_ends_the_rendering_with_every_reason() {
    let files = Files::new();
    let head = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n";
    let wrong = format!(
        "{head}rules:\n  manual-edit: {{mode: enforced, cases: [{{when: {{user: [x]}}, mode: off}}]}}\n  manual-edits: {{mode: off}}\n  \
         pending-recovery: {{staleAfter: soon}}\nmanagers: someone\nignore: [{{paths: []}}]\nreportLabels: ['a b']\n"
    );
    let error = rendered(&[&files.text(&wrong)]).unwrap_err();
    for sentence in [
        "the program would refuse this policy:",
        "policies.cluster.rules.manual-edit.mode: \"enforced\" is none of enforce, warn, audit, off",
        "policies.cluster.rules.manual-edit.cases[0].when.user: there is no such key; known are groups, kinds",
        "policies.cluster.rules.manual-edits: there is no such key; known are concurrent-operation",
        "policies.cluster.rules.pending-recovery.staleAfter: \"soon\" does not match",
        "policies.cluster.managers: expected array or object, got \"someone\"",
        "policies.cluster.ignore[0].paths: the list is empty",
        "policies.cluster.reportLabels[0]: \"a b\" does not match",
    ] {
        assert!(error.contains(sentence), "expected {sentence:?}\n{error}");
    }
    assert_eq!(error.matches("\n  policies.").count(), 7, "{error}");
    for (text, sentence) in [
        ("rules: {}\n", "policies.cluster: the key apiVersion is missing"),
        ("a: [\n", "policies.cluster: the text is not a YAML mapping: error converting YAML to JSON: yaml: line 1"),
        ("- a\n", "policies.cluster: the text is not a YAML mapping"),
        (&format!("{head}rules: all\n"), "policies.cluster.rules: expected object, got \"all\""),
    ] {
        expect_refused(&[&files.text(text)], sentence);
    }
    expect_refused(
        &["--set=policies.namespaces.shop=kind: NamespacePolicy"],
        "policies.namespaces.shop: the key apiVersion is missing",
    );
    // What the program takes: numbers as text, empty values, every spelling of a duration, comments.
    let right = format!(
        "# ours\n{head}rules:\n  manual-edit: {{mode: off, graceAfterFailure: PT90s}}\n  pending-recovery: {{staleAfter: 1h 30min}}\n\
         managers:\noverrides: {{retainExpired: 12w, namespace: 7}}\n\
         freezes: [{{name: 1, reason: 2, timeZone: UTC, weekdays: [friday], from: 16:00}}]\n"
    );
    accepted(&[&files.text(&right)]);
    let objects = rendered(&[&files.text(&right)]).unwrap();
    assert_eq!(object(&objects, "ConfigMap", "interlock-policies")["data"]["cluster.yaml"], right.as_str());
}

/// The schema cannot say more than the reader of files, so that no policy in the repository is refused by mistake.
#[test]
fn every_policy_of_the_repository_is_rendered() {
    for policy in ["policies", "tests/policies/good", "policies/examples/production", "policies/examples/gitops-only"] {
        accepted(&[&format!("--set-file=policies.cluster={policy}/cluster.yaml")]);
    }
    accepted(&[
        "--set-file=policies.cluster=tests/policies/good/cluster.yaml",
        "--set-file=policies.namespaces.shop=tests/policies/good/namespaces/shop.yaml",
    ]);
}

#[test]
fn accounts_are_added_to_any_policy_under_names_that_come_together() {
    let files = Files::new();
    let ours = "policies:\n  accounts:\n    ours: {managers: ['system:serviceaccount:deploy:runner']}\n    none:\n";
    let preset = super::preset("eks");
    let (shipped, _) = accepted(&[]);
    let (policy, _) = accepted(&[&preset, &files.values(ours)]);
    let list = |policy: &Value, list: &str| policy[list].as_array().unwrap().clone();
    assert_eq!(list(&policy, "managers"), ["system:serviceaccount:deploy:runner"]);
    assert!(list(&policy, "platform").contains(&"eks:*".into()));
    assert_eq!((policy.get("rules"), policy.get("pipelines")), (None, None));
    // To a list that replaces the shipped one.
    let (policy, _) = accepted(&[&files.values(ours), "--set=policies.cluster.managers.only={first}"]);
    assert_eq!(policy["managers"], json!({"only": ["first", "system:serviceaccount:deploy:runner"]}));
    // To a policy of one's own, as text and as a map, and without a list before.
    let text =
        files.text("apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nrules: {manual-edit: {mode: off}}\n");
    let (policy, _) = accepted(&[&preset, &text]);
    assert!(list(&policy, "platform").contains(&"eks:*".into()));
    assert_eq!(policy["rules"]["manual-edit"]["mode"], "off");
    let (policy, _) = accepted(&[&preset, "--set=policies.cluster.platform={first}"]);
    assert_eq!(list(&policy, "platform")[0], "first");
    assert!(list(&policy, "platform").len() > 1);
    // Without those of the preset.
    let (policy, _) = accepted(&[&preset, "--set=policies.accounts.eks=null"]);
    assert_eq!(policy, shipped);
}
