//! `interlock test` as people run it: example policies, output and exit codes.

use std::fs;

use tempfile::TempDir;

use crate::harness::binary::{interlock, repository, stderr, stdout};
use crate::harness::fixtures::{body, gzip, review, secret};

/// A directory with one suite under the shipped policy.
fn suite(cases: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "apiVersion: interlock.dev/v1alpha1\nkind: PolicySuite\ngiven:\n  records:\n  \
         - {{release: shop/web, revision: 1, status: deployed, age: 24h}}\ncases:\n{cases}"
    );
    fs::write(dir.path().join("a.test.yaml"), text).unwrap();
    dir
}

fn path(dir: &TempDir) -> &str {
    dir.path().to_str().unwrap()
}

const PASSES: &str = "- name: an upgrade passes\n  when: [{as: alice, do: create, record: {release: shop/web, revision: 2, \
                      status: pending-upgrade}}]\n  then: {verdict: allowed}\n";
const FAILS: &str = "- name: <a> & \"b\"\n  when: [{as: alice, do: delete, record: {release: shop/web, revision: 1}}]\n  \
                     then: {verdict: allowed}\n";

#[test]
fn every_example_of_a_policy_holds_what_its_suite_says() {
    let examples = repository("policies/examples");
    let count = fs::read_dir(examples).unwrap().count();
    let output = interlock(&["test", "policies/examples"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let printed = stdout(&output);
    assert_eq!(printed.matches("suite.test.yaml").count(), count, "{printed}");
    assert!(printed.contains(" 0 failed in ") && !printed.contains('\x1b'), "{printed}");
}

#[test]
fn the_suite_in_the_documentation_runs_as_printed() {
    let section = fs::read_to_string(repository("docs/testing-policies.md")).unwrap();
    let (_, suite) = section.split_once("```yaml\n").unwrap();
    let (suite, _) = suite.split_once("```").unwrap();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.test.yaml"), suite).unwrap();
    // The files that the suite names.
    fs::copy(repository("policies/cluster.yaml"), dir.path().join("cluster.yaml")).unwrap();
    fs::write(dir.path().join("before.jsonl.gz"), gzip(b"{\"mark\": \"before\"}\n")).unwrap();
    let output = interlock(&["test", path(&dir)]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn a_failing_run_shows_what_was_expected_and_what_came_and_exits_with_1() {
    let dir = suite(&format!("{PASSES}{FAILS}"));
    let output = interlock(&["test", path(&dir)]);
    assert_eq!(output.status.code(), Some(1));
    let printed = stdout(&output).replace(path(&dir), "DIR");
    let wanted = "DIR/a.test.yaml\n  ok    an upgrade passes\n  FAIL  <a> & \"b\" (line 10)\n        step 1\n        \
                  - expected allowed\n        + got      denied by record-deletion (mode enforce)\n";
    assert!(printed.starts_with(wanted), "{printed}");
    assert!(printed.ends_with("[record-deletion]\n1 passed, 1 failed in 1 file\n"), "{printed}");
    let chosen = interlock(&["test", path(&dir), "--run", "an up*"]);
    assert_eq!(chosen.status.code(), Some(0));
    assert!(stdout(&chosen).ends_with("1 passed, 0 failed in 1 file\n"));
    let none = interlock(&["test", path(&dir), "--run", "nothing"]);
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn results_are_one_json_document_and_junit() {
    let dir = suite(&format!("{PASSES}{FAILS}"));
    let junit = dir.path().join("junit.xml");
    let output = interlock(&["test", path(&dir), "-o", "json", "--junit", junit.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let printed: serde_json::Value = serde_json::from_str(stdout(&output)).unwrap();
    let cases = printed["cases"].as_array().unwrap();
    let ok: Vec<_> = cases.iter().map(|case| (&case["case"], &case["ok"])).collect();
    assert_eq!(ok, [(&"an upgrade passes".into(), &true.into()), (&"<a> & \"b\"".into(), &false.into())]);
    assert_eq!(cases[1]["failures"][0]["expected"], "allowed");
    let xml = fs::read_to_string(junit).unwrap();
    let xml = roxmltree::Document::parse(&xml).unwrap();
    let in_xml: Vec<_> = xml.descendants().filter(|node| node.has_tag_name("testcase")).collect();
    assert_eq!(in_xml[1].attribute("name"), Some("<a> & \"b\""));
    let failures: Vec<_> =
        in_xml.iter().map(|case| case.children().filter(|it| it.has_tag_name("failure")).count()).collect();
    assert_eq!(failures, [0, 1]);
}

#[test]
fn a_suite_that_cannot_be_run_says_where_and_why_and_exits_with_2() {
    for (cases, wanted) in [
        ("- name: a\n  whem: []\n", "line 8"),
        ("- name: a\n  when: []\n  then: {verdict: allowed}\n", "line 7: case \"a\" does nothing"),
        ("- name: a\n  when: [{as: alice}]\n", "expects nothing"),
        ("- name: a\n  when: [{as: alice}]\n  then: {verdict: allowed}\n", "step 1: state the action in `do`"),
        (
            "- name: a\n  when: [{as: alice, do: delete, record: {release: shop/web, revision: 9}}]\n  then: {verdict: allowed}\n",
            "there is no Secret shop/sh.helm.release.v1.web.v9",
        ),
        ("- name: a\n  when: [{as: a, do: patch, object: {}}]\n  then: {verdict: no}\n", "line 9"),
        ("- name: a\n  when: [{review: {}, groups: [b]}]\n  then: {verdict: denied}\n", "step 1: a complete review"),
        ("- name: a\n  when: [{review: {}, old: {}}]\n  then: {verdict: denied}\n", "already contains `old`"),
        ("- name: a\n  when: [{review: {}, replicas: 1}]\n  then: {verdict: denied}\n", "already contains `replicas`"),
        ("- name: a\n  when: [{review: {}, resource: a}]\n  then: {verdict: denied}\n", "already contains `resource`"),
        ("- name: a\n  when: [{review: {}, dryRun: true}]\n  then: {verdict: denied}\n", "already contains `dryRun`"),
        ("- name: a\n  when: [{as: a, do: create, after: 999999999h}]\n  then: {verdict: denied}\n", "step 1: after: "),
    ] {
        let dir = suite(cases);
        let output = interlock(&["test", path(&dir)]);
        assert_eq!(output.status.code(), Some(2), "{cases}{}", stdout(&output));
        let error = stderr(&output);
        assert!(error.contains("a.test.yaml") && error.contains(wanted), "{cases}{error}");
    }
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(interlock(&["test", path(&empty)]).status.code(), Some(2));
}

#[test]
fn a_step_may_be_a_review_and_a_suite_may_start_from_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    let example = repository("examples/overtaken-upgrade.json");
    fs::copy(example, dir.path().join("review.json")).unwrap();
    let packed = gzip(body("pending-install").as_bytes());
    let created = secret("pending-install", &packed);
    let review = review("CREATE", None, Some(&created));
    let user = review["request"]["userInfo"]["username"].as_str().unwrap();
    let recorded = serde_json::json!({"t": 1_795_255_260, "review": review});
    fs::write(dir.path().join("before.jsonl.gz"), gzip(recorded.to_string().as_bytes())).unwrap();
    let text = format!(
        "apiVersion: interlock.dev/v1alpha1\nkind: PolicySuite\ngiven:\n  recording: before.jsonl.gz\ncases:\n\
         - name: from a file\n  when: [{{review: review.json}}]\n  then: {{verdict: denied, rule: illegal-transition}}\n\
         - name: written out\n  when: [{{review: {}}}]\n  then: {{verdict: allowed}}\n\
         - name: the recording goes on\n  when: [{{as: mallory, do: create, after: 5s, record: {{release: shop/web, \
         revision: 2, status: pending-upgrade}}}}]\n  then: {{verdict: denied, rule: concurrent-operation, message: \
         {user}}}\n",
        serde_json::json!({
            "operation": "CREATE", "uid": "u", "name": "a", "namespace": "shop", "userInfo": {"username": "alice"},
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}},
        })
    );
    fs::write(dir.path().join("a.test.yaml"), text).unwrap();
    let output = interlock(&["test", path(&dir)]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).ends_with("3 passed, 0 failed in 1 file\n"), "{}", stdout(&output));
}

#[test]
fn a_wrong_starting_state_is_named() {
    for (given, wanted) in [
        ("objects: [{kind: A}]", "given.objects: "),
        ("records: [{release: shop/web, revision: 1, age: 999999999h}]", "given.records: age: "),
        ("records: [{release: web, revision: 1}]", "given.records: release: "),
    ] {
        let dir = suite(PASSES);
        let file = dir.path().join("a.test.yaml");
        let text = fs::read_to_string(&file).unwrap();
        let (head, _) = text.split_once("  records:").unwrap();
        fs::write(file, format!("{head}  {given}\ncases:\n{PASSES}")).unwrap();
        let output = interlock(&["test", path(&dir)]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(wanted), "{wanted}: {}", stderr(&output));
    }
}

#[test]
fn a_case_does_not_see_what_another_one_did() {
    let once = "- name: NAME\n  when: [{as: alice, do: create, record: {release: shop/web, revision: 2, status: \
                pending-upgrade}}]\n  then: {verdict: allowed}\n";
    let dir = suite(&format!("{}{}", once.replace("NAME", "one"), once.replace("NAME", "two")));
    let output = interlock(&["test", path(&dir)]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
}

#[test]
fn a_suite_that_cannot_test_what_it_says_is_an_error() {
    let step = "as: alice, do: create, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}";
    let case = |step: &str, then: &str| format!("- name: a\n  when: [{{{step}}}]\n  then: {{{then}}}\n");
    for (cases, wanted) in [
        (case(step, "verdict: allowed, rule: manual-edit"), "which means that no rule is broken"),
        (case(step, "verdict: allowed, message: web"), "remove `rule`, `mode` and `message`"),
        (case(step, "verdict: denied, message: '*'"), "expects a message that every message is"),
        (case(step, "verdict: denied, message: ''"), "expects a message that every message is"),
        (case(step, "verdict: denied, rule: m\u{430}nual-edit"), "Cyrillic letter U+0430, which looks like `a`"),
        (case(&step.replace("ConfigMap", "configmap"), "verdict: allowed"), "did you mean `ConfigMap`?"),
        (
            case(&step.replace("alice", "'system:serviceaccount:ci/deployer'"), "verdict: allowed"),
            "there is no user `system:serviceaccount:ci/deployer`: a service account is",
        ),
        (
            case(&format!("{step}, groups: ['system:serviceaccount:ci:a']"), "verdict: allowed"),
            "there is no group `system:serviceaccount:ci:a`",
        ),
    ] {
        let dir = suite(&cases);
        let output = interlock(&["test", path(&dir)]);
        assert_eq!(output.status.code(), Some(2), "{cases}{}", stdout(&output));
        assert!(stderr(&output).contains(wanted), "{cases}{}", stderr(&output));
    }
    let dir = suite(&case(step, "verdict: allowed"));
    assert_eq!(interlock(&["test", path(&dir)]).status.code(), Some(0));
    // Nothing is silently left out.
    let empty = tempfile::tempdir().unwrap();
    let both = interlock(&["test", path(&dir), path(&empty)]);
    assert!(both.status.code() == Some(2) && stderr(&both).contains("no files *.test.yaml in"), "{}", stderr(&both));
    fs::write(dir.path().join("b.test.yml"), "").unwrap();
    let other = interlock(&["test", path(&dir)]);
    assert!(other.status.code() == Some(2) && stderr(&other).contains("b.test.yml is not run"), "{}", stderr(&other));
}

#[test]
fn a_suite_that_is_no_text_says_what_it_is() {
    let dir = suite("");
    fs::write(dir.path().join("a.test.yaml"), b"kind: x\n# caf\xe9\n").unwrap();
    let output = interlock(&["test", path(&dir)]);
    assert!(stderr(&output).contains("it is not UTF-8: byte 13 of the file, in line 2"), "{}", stderr(&output));
    let recording = "given: {recording: cut.jsonl}\ncases:\n- name: a\n  when: [{as: a, do: create, object: {}}]\n  then: \
                     {verdict: allowed}\n";
    let header = "apiVersion: interlock.dev/v1alpha1\nkind: PolicySuite\n";
    fs::write(dir.path().join("a.test.yaml"), format!("{header}{recording}")).unwrap();
    fs::write(dir.path().join("cut.jsonl"), "{\"mark\": \"x\"}\n{\"mark\":").unwrap();
    let output = interlock(&["test", path(&dir)]);
    assert!(output.status.code() == Some(2) && stderr(&output).contains("ends in the middle"), "{}", stderr(&output));
}
