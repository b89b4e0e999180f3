//! `interlock status` and `interlock unstick` over releases whose helm was killed, with and without the webhook.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::chart::{Chart, HookKind, When};
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::controllers::{failed, reached};
use crate::harness::eventually::eventually;
use crate::harness::extension::{CHUNK, COLLECTOR, Extension, hooked, large};
use crate::harness::in_flight::{impatient, killed_on_the_way_to, policy, unlock};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, Running, run};
use crate::harness::records::{self, V2};
use crate::harness::shell::shell;

const DEADLINE: Duration = Duration::from_secs(60);

/// A person on call, whose policy counts an operation as stuck after three seconds.
struct OnCall<'n> {
    namespace: &'n Namespace<'n>,
    person: &'static str,
    policies: tempfile::TempDir,
}

impl<'n> OnCall<'n> {
    fn new(namespace: &'n Namespace<'n>, person: &'static str) -> Self {
        let policies = tempfile::tempdir().unwrap();
        std::fs::write(policies.path().join("cluster.yaml"), policy("staleAfter: 3s")).unwrap();
        Self { namespace, person, policies }
    }

    /// `interlock ARGS` with the shipped policy.
    fn command(&self, args: &[&str]) -> Command {
        let plane = self.namespace.plane();
        plane.interlock(&plane.person(self.person), args)
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> Output {
        run(self.command(args), DEADLINE)
    }

    fn impatiently<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [args, &["--policies", self.policies.path().to_str().unwrap()]].concat()
    }

    /// The release in the output of `status`, and the exit code.
    #[track_caller]
    fn status(&self, release: &str) -> (Value, Option<i32>) {
        let output = self.run(&self.impatiently(&["status", "-n", self.namespace.name(), "-o", "json"]));
        let all = output.json()["releases"].clone();
        let row = all.as_array().unwrap().iter().find(|row| row["release"] == release).cloned();
        (row.unwrap_or_else(|| panic!("expected release {release}\n{output}")), output.status.code())
    }

    #[track_caller]
    fn await_stuck(&self, release: &str) -> Value {
        eventually(DEADLINE, "the release is stuck", || {
            let (row, code) = self.status(release);
            if row["stuck"] == "yes" && code == Some(1) { Ok(row) } else { Err(format!("{code:?} {row:#}")) }
        })
    }

    /// `interlock unstick NAMESPACE/RELEASE ARGS -o json`, which must exit with this code.
    #[track_caller]
    fn unstick(&self, release: &str, args: &[&str], code: i32) -> Value {
        let named = format!("{}/{release}", self.namespace.name());
        let output = self.run(&self.impatiently(&[&["unstick", &named, "-o", "json"], args].concat()));
        assert_eq!(output.status.code(), Some(code), "{output}");
        output.json()
    }

    /// Deletes the stuck record as soon as it is old enough. No other check may fail.
    #[track_caller]
    fn unstick_once_stale(&self, release: &str) -> Value {
        let named = format!("{}/{release}", self.namespace.name());
        eventually(DEADLINE, "the release is unstuck", || {
            let output = self.run(&self.impatiently(&["unstick", &named, "--yes", "-o", "json"]));
            let account = output.json();
            let failing = failing(&account);
            assert!(failing.iter().all(|check| check == "stale"), "only the age may be in the way\n{output}");
            if account["outcome"] == "unstuck" { Ok(account) } else { Err(output.to_string()) }
        })
    }

    fn copies(&self) -> usize {
        let list = self.namespace.kubectl("admin").get(&["secret", "-l", "interlock.dev/copy=record"]);
        list["items"].as_array().unwrap().len()
    }
}

/// The checks that fail.
fn failing(account: &Value) -> Vec<String> {
    let checks = account["checks"].as_array().unwrap().iter();
    let failing = checks.filter(|check| check["holds"] != "yes");
    failing.map(|check| check["check"].as_str().unwrap().to_owned()).collect()
}

/// The parts of a record that a restore brings back.
fn kept(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({"type": object["type"], "data": object["data"], "name": metadata["name"], "labels": metadata["labels"]})
}

#[test]
fn a_killed_upgrade_is_seen_checked_unstuck_restored_and_rolled_forward() {
    let namespace = hanging(HelmVersion::V3, Driver::Secret);
    let (on_call, kubectl) = (OnCall::new(&namespace, "bob"), namespace.kubectl("bob"));
    let named = format!("{}/demo", namespace.name());
    let row = on_call.await_stuck("demo");
    // As long as the pods are not available, the record must stay.
    let back = format!("helm rollback demo 1 -n {}", namespace.name());
    let wanted = json!(["pending-upgrade", 2, "alice", "demo-1.0.0", {"kind": "helm"}, back]);
    assert_eq!(json!([row["status"], row["revision"], row["holder"], row["chart"], row["owner"], row["next"]]), wanted);
    // By the shipped policy the operation may still run.
    let calm = on_call.run(&["status", "-n", namespace.name()]);
    assert!(calm.success() && calm.stdout.contains("wait until"), "{calm}");
    let fresh = on_call.run(&["unstick", &named, "--yes"]);
    assert_eq!(fresh.status.code(), Some(1), "{fresh}");
    assert!(fresh.stdout.contains("FAIL  stale") && fresh.stdout.contains("counts as stuck after 15 min"), "{fresh}");

    let refused = on_call.unstick("demo", &["--yes"], 1);
    assert_eq!(
        (&refused["outcome"], failing(&refused)),
        (&json!("refused"), vec!["healthy".to_owned()]),
        "{refused:#}"
    );
    let why = refused["why"].as_str().unwrap();
    assert!(why.contains(&format!("Deployment {}/demo ", namespace.name())), "{why}");
    assert_eq!(refused["next"], json!(back), "{refused:#}");
    namespace.ready_pods();
    namespace.await_available("demo");
    assert_eq!(on_call.status("demo").0["next"], json!(format!("interlock unstick {named}")));

    let record = kubectl.get(&["secret", V2]);
    assert_eq!(on_call.unstick("demo", &["--dry-run"], 0)["outcome"], "would-unstick");
    let unasked = on_call.run(&on_call.impatiently(&["unstick", &named]));
    assert_eq!(unasked.status.code(), Some(2), "{unasked}");
    assert!(unasked.stderr.contains("Use --yes"), "{unasked}");
    assert_eq!((on_call.copies(), kubectl.get(&["secret", V2])), (0, record.clone()), "nothing was written");

    let unstuck = on_call.unstick("demo", &["--yes"], 0);
    let (next, place) = (unstuck["next"].as_str().unwrap(), namespace.name());
    let upgrade = format!(" | helm upgrade demo CHART --version 1.0.0 --reset-values -f - -n {place}");
    assert!(unstuck["outcome"] == "unstuck" && next.ends_with(&upgrade), "{unstuck:#}");
    assert_eq!((on_call.copies(), kubectl.find(&["secret", V2])), (1, None));
    assert_eq!(on_call.unstick("demo", &["--yes"], 0)["outcome"], "nothing-to-do", "again is no harm");
    assert_eq!(on_call.unstick("demo", &["--restore", "--yes"], 0)["outcome"], "restored");
    assert_eq!((on_call.copies(), kept(&kubectl.get(&["secret", V2]))), (0, kept(&record)));

    finish(&namespace, &on_call.unstick_once_stale("demo"));
    assert_eq!(records::summary(&namespace.records(Driver::Secret, "demo")), "1 superseded, 2 deployed");
    let overtaken = on_call.unstick("demo", &["--restore", "--yes"], 1);
    assert!(overtaken["why"].as_str().unwrap().contains("revision 2 is deployed now"), "{overtaken:#}");
    let (row, code) = on_call.status("demo");
    assert_eq!((&row["stuck"], &row["next"], code), (&json!("no"), &Value::Null, Some(0)));
}

/// Pastes the printed command that finishes the upgrade. Its values are those of the deleted record, not of the deployed one.
#[track_caller]
fn finish(namespace: &Namespace<'_>, unstuck: &Value) {
    let (plane, chart) = (namespace.plane(), Chart::new("demo"));
    let command = unstuck["next"].as_str().unwrap().replace("CHART", chart.path());
    shell(plane, &plane.person("bob"), &command, DEADLINE).expect_success();
    let deployment = namespace.kubectl("admin").get(&["deployment/demo"]);
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!((image, &deployment["spec"]["replicas"]), (&json!("two"), &json!(4)));
}

/// A release whose upgrade to revision 2 was killed while its pods hang.
fn hanging(version: HelmVersion, driver: Driver) -> Namespace<'static> {
    killed_on_the_way_to("1.0.0", impatient(), "on-call", version, driver, false)
}

#[test]
fn a_record_in_a_config_map_is_unstuck_and_restored() {
    let driver = Driver::ConfigMap;
    let namespace = hanging(HelmVersion::V4, driver);
    let (on_call, kubectl) = (OnCall::new(&namespace, "bob"), namespace.kubectl("bob"));
    namespace.ready_pods();
    namespace.await_available("demo");
    let record = kubectl.get(&["configmap", V2]);
    let next = on_call.unstick_once_stale("demo")["next"].clone();
    assert!(next.as_str().unwrap().contains(" | HELM_DRIVER=configmap helm upgrade demo"), "{next}");
    assert_eq!((on_call.copies(), kubectl.find(&["configmap", V2])), (1, None));
    on_call.unstick("demo", &["--restore", "--yes"], 0);
    assert_eq!((on_call.copies(), kept(&kubectl.get(&["configmap", V2]))), (0, kept(&record)));
    assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 deployed, 2 pending-upgrade");
    finish(&namespace, &on_call.unstick_once_stale("demo"));
    assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 deployed");
}

#[test]
fn without_the_webhook_a_hook_that_runs_is_waited_for_and_changes_are_watched() {
    let namespace = Namespace::new(Plane::without_webhook(), "on-call");
    let (on_call, driver) = (OnCall::new(&namespace, "bob"), Driver::Secret);
    let helm = namespace.helm(HelmVersion::V4, driver, "alice");
    let chart = Chart::new("demo").hook(When::PreUpgrade, HookKind::Job);
    helm.ok(&["install", "demo", chart.path()]);
    namespace.await_available("demo");
    let watch = Watch::start(&on_call);
    watch.await_last(("deployed", 1, "no"));
    namespace.hang_pods();
    let upgrade = helm.spawn(&["upgrade", "demo", chart.path(), "--set=image=two"]);
    eventually(DEADLINE, "the hook runs", || {
        let jobs = namespace.kubectl("admin").get(&["job"]);
        let runs = jobs["items"].as_array().unwrap().iter().any(|job| job["status"]["active"] == 1);
        if runs { Ok(()) } else { Err(jobs["items"].to_string()) }
    });
    upgrade.kill();
    watch.await_last(("pending-upgrade", 2, "yes"));
    let row = on_call.await_stuck("demo");
    assert_eq!((&row["holder"], &row["manager"], &row["chart"]), (&Value::Null, &json!("Helm"), &json!("demo-1.0.0")));
    let refused = on_call.unstick("demo", &["--yes"], 1);
    assert_eq!(failing(&refused), ["no-hook-runs"], "{refused:#}");
    namespace.ready_pods();
    eventually(DEADLINE, "the hook has ended, and the record goes", || {
        let account = on_call.run(&on_call.impatiently(&["unstick", &format!("{}/demo", namespace.name()), "--yes"]));
        account.into_result()
    });
    watch.await_last(("deployed", 1, "no"));
    helm.ok(&["upgrade", "demo", chart.path(), "--set=image=two"]);
    watch.await_last(("deployed", 2, "no"));
    let closer = on_call.run(&["status", "-n", namespace.name(), "demo"]);
    assert!(closer.success() && closer.stdout.contains("History\n     2  deployed"), "{closer}");
}

/// `interlock status --watch`, which ends when this is dropped.
struct Watch {
    _running: Running,
    lines: tempfile::NamedTempFile,
}

impl Watch {
    #[track_caller]
    fn start(on_call: &OnCall<'_>) -> Self {
        let lines = tempfile::NamedTempFile::new().unwrap();
        let args = on_call.impatiently(&["status", "--watch", "-o", "json", "-n", on_call.namespace.name()]);
        let watch = on_call.command(&args);
        // The output goes to a file, which the test reads while the command runs.
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$@\" >\"$LINES_TO\"", "sh"]).arg(watch.get_program()).args(watch.get_args());
        shell.envs(watch.get_envs().filter_map(|(key, value)| Some((key, value?)))).env("LINES_TO", lines.path());
        Self { _running: Running::spawn(shell), lines }
    }

    /// Waits until the last line says this of the release: status, revision, whether it is stuck.
    #[track_caller]
    fn await_last(&self, wanted: (&str, u32, &str)) {
        eventually(DEADLINE, &format!("the watch reports {wanted:?}"), || {
            let message = std::fs::read_to_string(self.lines.path()).unwrap();
            let last =
                message.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok()).unwrap_or_default();
            let (status, revision, stuck) = wanted;
            let is = last["status"] == status && last["revision"] == revision && last["stuck"] == stuck;
            if is { Ok(()) } else { Err(message) }
        });
    }
}

#[test]
fn the_webhook_can_refuse_to_unstick_and_no_copy_is_left() {
    let driver = Driver::Secret;
    let namespace = killed_on_the_way_to("1.0.0", Plane::shared(), "on-call", HelmVersion::V4, driver, true);
    let on_call = OnCall::new(&namespace, "bob");
    on_call.await_stuck("demo");
    let refused = on_call.unstick("demo", &["--yes"], 1);
    let why = refused["why"].as_str().unwrap();
    assert!(why.contains("denied the request") && why.contains("[pending-recovery]"), "{why}");
    assert_eq!((failing(&refused), on_call.copies()), (Vec::new(), 0), "{refused:#}");
    assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 deployed, 2 pending-upgrade");
    // The holder may unlock it.
    unlock(&namespace, driver, "alice").expect_success();
    let (row, code) = on_call.status("demo");
    assert_eq!((&row["status"], code), (&json!("failed"), Some(0)), "{row:#}");
}

#[test]
fn a_record_of_olm_in_five_secrets_is_unstuck_and_restored_whole() {
    let extension = Extension::new(impatient(), "on-call-olm");
    let olm = extension.olm.clone().chunk_size(CHUNK);
    let chart = hooked();
    reached(olm.reconcile(&chart, &large("one")), "install 1 deployed");
    let extension = Extension { olm, ..extension };
    extension.kill_in_hook(&chart, &large("two"), 2);
    let (on_call, name) = (OnCall::new(&extension.system, "bob"), extension.name.as_str());
    let row = on_call.await_stuck(name);
    assert_eq!(row["owner"], json!({"kind": "olm", "name": name}));
    extension.objects.ready_pods();
    eventually(DEADLINE, "the hook has ended", || {
        let account = on_call.run(&on_call.impatiently(&[
            "unstick",
            &format!("{}/{name}", extension.system.name()),
            "--dry-run",
        ]));
        account.into_result()
    });
    let body = extension.records().pop().unwrap().body;
    let unstuck = on_call.unstick(name, &["--yes"], 0);
    assert_eq!(unstuck["copies"].as_array().unwrap().len(), 5, "{unstuck:#}");
    extension.expect_records("1 deployed");
    // The record can be restored only after its old parts are collected and the leader has noted what was interrupted.
    eventually(COLLECTOR, "the record is back", || {
        let output = on_call.run(&["unstick", &format!("{}/{name}", extension.system.name()), "--restore", "--yes"]);
        if !output.success() {
            let reasons = ["still being collected", "only its controller starts"];
            assert!(reasons.iter().any(|reason| output.stdout.contains(reason)), "{output}");
        }
        output.into_result()
    });
    extension.expect_records("1 deployed, 2 pending-upgrade");
    assert_eq!((extension.records().pop().unwrap().body, on_call.copies()), (body, 0));
    failed(extension.olm.reconcile(&chart, &large("two")), "upgrade 2 pending-upgrade", &["another operation"]);
    on_call.unstick_once_stale(name);
    reached(extension.olm.reconcile(&chart, &large("two")), "upgrade 2 deployed");
}
