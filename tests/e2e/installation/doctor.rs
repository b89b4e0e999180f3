//! `interlock doctor` with a real API server: its report on a good installation and on a broken one, and that its fixes
//! work. Also the same binary as a plugin of the real kubectl.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::assets::interlock;
use crate::harness::clients::Identity;
use crate::harness::eventually::eventually;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, run};

const DEADLINE: Duration = Duration::from_secs(60);

/// `interlock doctor ARGS` under an identity.
fn doctor(plane: &Plane, who: &Identity, args: &[&str]) -> Output {
    run(plane.interlock(who, &[&["doctor"], args].concat()), DEADLINE)
}

/// State, evidence and fix of each result of one check.
fn message(plane: &Plane, check: &str) -> Vec<(String, String, String)> {
    let report = doctor(plane, &plane.admin(), &["-o", "json"]).json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let checks = report["checks"].as_array().unwrap().iter().filter(|it| it["check"] == check);
    checks.map(|it| (text(&it["state"]), text(&it["evidence"]), text(&it["fix"]))).collect()
}

/// Waits for a finding with these words, and returns its fix.
#[track_caller]
fn found(plane: &Plane, check: &str, words: &str) -> String {
    eventually(DEADLINE, &format!("a finding of {check} with {words:?}"), || {
        let message = message(plane, check);
        let is_it = |(state, evidence, _): &&(String, String, String)| {
            ["high", "medium", "low"].contains(&state.as_str()) && evidence.contains(words)
        };
        message.iter().find(is_it).map(|(_, _, fix)| fix.clone()).ok_or(format!("{message:?}"))
    })
}

/// Waits until these checks find nothing.
#[track_caller]
fn fine(plane: &Plane, checks: &[&str]) {
    eventually(DEADLINE, &format!("{checks:?} find nothing"), || {
        let message: Vec<_> = checks.iter().flat_map(|check| message(plane, check)).collect();
        let is_fine = |(state, _, _): &(String, String, String)| ["ok", "note"].contains(&state.as_str());
        if !message.is_empty() && message.iter().all(is_fine) { Ok(()) } else { Err(format!("{message:?}")) }
    });
}

#[test]
fn an_installation_is_checked_as_far_as_the_user_may_read() {
    let plane = Plane::shared();
    fine(plane, &["api-server", "registration", "caBundle", "stamps", "judges", "leader", "rights"]);
    // There is no Deployment: the harness starts the binary.
    assert!(found(plane, "replicas", "no Deployment interlock in interlock-system").contains("kubectl apply -k"));
    let writers = message(plane, "writers");
    assert!(writers[0].1.contains("may disable Interlock") && writers[0].1.contains("Group devs"), "{writers:?}");
    let whole = doctor(plane, &plane.admin(), &[]);
    assert_eq!(whole.status.code(), Some(1), "{whole}");
    assert!(whole.stdout.contains("checks of the installation in interlock-system"), "{whole}");

    // Without rights, the report lists what could not be checked, and nothing is changed.
    let nobody = plane.account("default", "nobody").unwrap();
    let report = doctor(plane, &nobody, &["-o", "json"]);
    let states: BTreeSet<_> =
        report.json()["checks"].as_array().unwrap().iter().map(|it| it["state"].to_string()).collect();
    assert_eq!(states, BTreeSet::from(["\"ok\"".to_owned(), "\"skipped\"".to_owned()]), "{report}");
    assert_eq!(report.status.code(), Some(0), "{report}");
    assert!(report.stdout.contains("cannot list resource"), "{report}");
    let secrets = plane.kubectl(&plane.admin()).ok(&["get", "secrets", "-A", "-o", "name"]).stdout;
    assert!(!secrets.contains("interlock-doctor"), "{secrets}");
}

#[test]
fn a_fault_is_found_and_its_fix_works() {
    let plane = Plane::breakable();
    let admin = plane.kubectl(&plane.admin());
    // Of probes.
    plane.define("manifests/base/releaseoverrides.yaml");
    let mend = |fix: &str| {
        assert!(
            fix.contains("interlock doctor -n interlock-system --registration | kubectl apply --server-side"),
            "{fix}"
        );
        let whole = doctor(&plane, &plane.admin(), &["--registration"]).expect_success().json();
        admin.with_file("apply", &whole, &["--server-side", "--force-conflicts"]).expect_success();
    };
    let patch = |operations: Value| {
        let operations = operations.to_string();
        admin.ok(&["patch", "validatingwebhookconfiguration/interlock", "--type=json", "-p", &operations]);
    };
    fine(&plane, &["registration", "caBundle", "judges", "rights"]);

    patch(json!([{"op": "remove", "path": "/webhooks/0"}]));
    mend(&found(&plane, "registration", "create-delete.records.interlock.dev: is missing"));
    fine(&plane, &["registration", "caBundle", "judges"]);

    patch(json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]));
    mend(&found(&plane, "caBundle", "the caBundle is empty"));
    fine(&plane, &["registration", "caBundle", "judges"]);

    plane.webhook().stop();
    let fix = found(&plane, "judges", "connection refused");
    assert!(
        fix.contains("no replica is available") && fix.contains("kubectl delete validatingwebhookconfigurations"),
        "{fix}"
    );
    assert!(found(&plane, "way", "connection refused").contains("targetPort"));
    plane.webhook().restart();
    fine(&plane, &["judges", "stamps", "way"]);

    admin.ok(&["delete", "clusterrolebinding", "interlock-leader"]);
    let fix = found(&plane, "rights", "may not patch secrets");
    assert!(fix.contains("kubectl apply -f manifests/base/rbac.yaml"), "{fix}");
    admin.ok(&["apply", "-f", concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/base/rbac.yaml")]);
    fine(&plane, &["rights"]);
}

#[test]
fn kubectl_finds_the_plugin_and_completes_it() {
    let plane = Plane::without_webhook();
    let bin = tempfile::tempdir().unwrap();
    for name in ["kubectl-interlock", "kubectl_complete-interlock"] {
        symlink(interlock().unwrap(), bin.path().join(name)).unwrap();
    }
    let kubectl = |args: &[&str]| {
        let mut command = plane.kubectl(&plane.admin()).command(args);
        command.env("PATH", bin.path());
        run(command, DEADLINE)
    };
    let listed = kubectl(&["plugin", "list"]).expect_success();
    assert!(listed.stdout.contains("kubectl-interlock"), "{listed}");
    let explained = kubectl(&["interlock", "explain", "manual-edit"]).expect_success();
    assert!(explained.stdout.contains("manual-edit"), "{explained}");
    let help = kubectl(&["interlock", "doctor", "--help"]).expect_success();
    assert!(help.stdout.contains("Usage: kubectl interlock doctor"), "{help}");
    // In the cluster of KUBECONFIG, by its current context or another one.
    let report = kubectl(&["interlock", "doctor", "-n", "elsewhere", "-o", "json"]);
    assert!(report.status.code() == Some(1) && report.json()["namespace"] == "elsewhere", "{report}");
    let wrong = kubectl(&["interlock", "doctor", "--context", "nowhere"]);
    assert!(wrong.status.code() == Some(2) && wrong.stderr.contains("the context nowhere is not usable"), "{wrong}");
    let completed = kubectl(&["__complete", "interlock", "doc"]).expect_success();
    assert!(completed.stdout.lines().any(|line| line == "doctor"), "{completed}");
}
