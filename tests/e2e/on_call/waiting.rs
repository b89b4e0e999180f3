//! `interlock wait`, as pipelines use it before and after real deployments.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion, Identity};
use crate::harness::eventually::eventually;
use crate::harness::in_flight::{impatient, killed, policy};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, Running, run};
use crate::harness::records;

/// For a command that waits for nothing, and for helm.
const DEADLINE: Duration = Duration::from_secs(60);

/// The longest wait of a test; a wait that goes on until then fails by its own exit code.
const TIMEOUT: &str = "--timeout=150s";
const BEYOND_TIMEOUT: Duration = Duration::from_secs(180);

/// How soon after a change of a record a wait must end. Less than the minute after which it looks at the release without a change.
const PROMPTLY: Duration = Duration::from_secs(20);

/// Somebody who waits for the release `demo` of a namespace.
struct Pipeline<'n> {
    namespace: &'n Namespace<'n>,
    who: Identity,
}

impl<'n> Pipeline<'n> {
    fn new(namespace: &'n Namespace<'n>, person: &str) -> Self {
        Self { namespace, who: namespace.plane().person(person) }
    }

    /// `interlock wait NAMESPACE/demo ARGS`.
    fn command(&self, args: &[&str]) -> Command {
        let release = format!("{}/demo", self.namespace.name());
        self.namespace.plane().interlock(&self.who, &[&["wait", &release], args].concat())
    }

    /// The command to its end, which must be this exit code with this text on standard output, or on standard error for 2.
    #[track_caller]
    fn ends(&self, args: &[&str], code: i32, text: &str) -> Output {
        ended(run(self.command(args), BEYOND_TIMEOUT), code, text)
    }

    /// A wait in the background, with its report in JSON.
    #[track_caller]
    fn spawn(&self, until: &str) -> Running {
        Running::spawn(self.command(&["--until", until, TIMEOUT, "-o", "json"]))
    }
}

#[track_caller]
fn ended(output: Output, code: i32, text: &str) -> Output {
    assert_eq!(output.status.code(), Some(code), "{output}");
    let message = if code == 2 { &output.stderr } else { &output.stdout };
    assert!(message.contains(text), "expected {text:?}\n{output}");
    output
}

/// The end of waits that must have been reached by now: within a moment, and after having waited.
#[track_caller]
fn reached(mut waits: Vec<Running>) -> Vec<Value> {
    for wait in &mut waits {
        eventually(PROMPTLY, "the wait ends", || if wait.is_running() { Err("it goes on".to_owned()) } else { Ok(()) });
    }
    let reports = waits.into_iter().map(|wait| {
        let output = wait.wait(BEYOND_TIMEOUT);
        let report = output.json();
        assert_eq!((output.status.code(), &report["outcome"]), (Some(0), &json!("reached")), "{output}");
        assert!(report["waitedSeconds"].as_u64().unwrap() >= 1, "it should have waited\n{output}");
        // The policy of these planes is in a file of the webhook, so the shipped one is used, with a notice.
        assert!(output.stderr.lines().all(|line| line.contains("using the shipped policy")), "{output}");
        report
    });
    reports.collect()
}

#[test]
fn an_upgrade_that_runs_is_waited_for_by_either_helm_with_either_driver() {
    for (version, driver) in [(HelmVersion::V3, Driver::Secret), (HelmVersion::V4, Driver::ConfigMap)] {
        let namespace = Namespace::new(Plane::shared(), "wait-upgrade");
        let (helm, chart) = (namespace.helm(version, driver, "alice"), Chart::new("demo"));
        let bob = Pipeline::new(&namespace, "bob");
        helm.ok(&["install", "demo", chart.path(), "--wait", "--timeout=60s"]);
        bob.ends(&[], 0, "/demo is free: deployed, revision 1, demo-1.0.0\n");
        bob.ends(&["--until=1.0.0"], 0, "/demo is deployed at 1.0.0: ");
        bob.ends(
            &["--until=v1.1.0", "--timeout=0"],
            3,
            "/demo is not deployed at v1.1.0: deployed, revision 1, demo-1.0.0\n",
        );

        chart.set_version("1.1.0");
        namespace.hang_pods();
        let upgrade = helm.spawn(&["upgrade", "demo", chart.path(), "--set=image=two", "--wait", "--timeout=90s"]);
        namespace.await_status(driver, "demo", 2, "pending-upgrade");
        let waits = ["free", "deployed", "v1.1.0"].map(|until| bob.spawn(until));
        let out = bob.ends(&["--timeout=3s"], 3, "timed out after 3 s: ");
        let state = "/demo is not free: pending-upgrade, revision 2, demo-1.1.0, held by alice for ";
        assert!(out.stdout.contains(state) && out.stdout.contains("\nNext: wait until "), "{out}");
        namespace.ready_pods();
        upgrade.wait(DEADLINE).expect_success();
        for report in reached(waits.into()) {
            let release = &report["releases"][0];
            assert_eq!(
                json!([release["status"], release["revision"], release["chart"]]),
                json!(["deployed", 2, "demo-1.1.0"])
            );
        }
    }
}

#[test]
fn a_failure_ends_the_wait_unless_it_is_rolled_back() {
    let namespace = Namespace::new(Plane::shared(), "wait-failure");
    let chart = Chart::new("demo");
    let bob = Pipeline::new(&namespace, "bob");
    namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "demo", chart.path(), "--wait"]);
    for (revision, version) in [(2, HelmVersion::V3), (4, HelmVersion::V4)] {
        let helm = namespace.helm(version, Driver::Secret, "alice");
        namespace.hang_pods();
        let image = format!("--set=image=v{revision}");
        let flags = [&image, "--timeout=15s", "--wait", version.rollback_on_failure()];
        let upgrade = helm.spawn(&[&["upgrade", "demo", chart.path()][..], &flags[..]].concat());
        namespace.await_status(Driver::Secret, "demo", revision, "pending-upgrade");
        let wait = bob.spawn("deployed");
        eventually(DEADLINE, "the upgrade fails", || {
            let message = namespace.records(Driver::Secret, "demo");
            let has_failed = message.iter().any(|record| record.revision == revision && record.body_status == "failed");
            if has_failed { Ok(()) } else { Err(records::summary(&message)) }
        });
        namespace.ready_pods();
        upgrade.wait(DEADLINE).expect_failure(&[]);
        let report = reached(vec![wait]).remove(0);
        assert_eq!(report["releases"][0]["revision"], revision + 1, "{report:#}");
    }
    let helm = namespace.helm(HelmVersion::V4, Driver::Secret, "alice");
    helm.fails(&["upgrade", "demo", chart.path(), "--set=breakApply=true"], &[]);
    let failed = bob.ends(&["--until=deployed"], 1, "no operation is in flight, and ");
    let next = format!("\nNext: helm rollback demo 5 -n {}\n", namespace.name());
    assert!(
        failed.stdout.contains("/demo is not deployed: failed, revision 6") && failed.stdout.ends_with(&next),
        "{failed}"
    );
    bob.ends(&[], 0, "/demo is free: failed, revision 6");
    helm.ok(&["upgrade", "demo", chart.path()]);
    bob.ends(&["--until=deployed"], 0, "/demo is deployed: deployed, revision 7");
}

#[test]
fn a_stuck_release_ends_the_wait_with_the_next_step_of_status() {
    let namespace = killed(impatient(), "wait-stuck", HelmVersion::V4, Driver::Secret, true);
    let bob = Pipeline::new(&namespace, "bob");
    let dir = tempfile::tempdir().unwrap();
    let patient = tempfile::tempdir().unwrap();
    for (dir, stale) in [(&dir, "3s"), (&patient, "20s")] {
        fs::write(dir.path().join("cluster.yaml"), policy(&format!("staleAfter: {stale}"))).unwrap();
    }
    let [impatiently, patiently] = [&dir, &patient].map(|dir| format!("--policies={}", dir.path().display()));
    let next = format!("\nNext: interlock unstick {}/demo\n", namespace.name());
    // No record changes any more: the operation is stuck once it is old enough.
    for policies in [&patiently, &impatiently] {
        let stuck =
            bob.ends(&["--until=deployed", TIMEOUT, policies], 1, "/demo is stuck: pending-upgrade, revision 2");
        assert!(stuck.stdout.ends_with(&next) && stuck.took < DEADLINE, "{stuck}");
    }
    let json = bob.ends(&["-o=json", &impatiently], 1, "");
    assert_eq!(
        (&json.json()["outcome"], &json.json()["releases"][0]["stuck"]),
        (&json!("stuck"), &json!("yes")),
        "{json}"
    );
    // By the shipped policy it may still run.
    bob.ends(&["--timeout=0"], 3, "Next: wait until ");
    let chart = Chart::new("demo");
    let unstick = ["unstick", &format!("{}/demo", namespace.name()), "--yes", &impatiently];
    run(namespace.plane().interlock(&bob.who, &unstick), DEADLINE).expect_success();
    bob.ends(&["--until=deployed", &impatiently], 0, "/demo is deployed: deployed, revision 1");
    namespace.helm(HelmVersion::V4, Driver::Secret, "bob").ok(&["upgrade", "demo", chart.path(), "--set=image=two"]);
    bob.ends(&[&impatiently], 0, "/demo is free: deployed, revision 2");
}

/// The command with SIGINT as a terminal leaves it. A shell starts what runs in its background with SIGINT ignored, and every process
/// below inherits that.
fn interruptible(command: &Command) -> Command {
    let mut with_default = Command::new("env");
    with_default.arg("--default-signal=INT").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => with_default.env(name, value),
            None => with_default.env_remove(name),
        };
    }
    with_default
}

#[test]
fn a_release_that_does_not_exist_is_free_and_may_be_waited_for() {
    let namespace = Namespace::new(Plane::without_webhook(), "wait-absent");
    let bob = Pipeline::new(&namespace, "bob");
    bob.ends(&[], 0, "/demo is free: there is no record of it\n");
    bob.ends(&["--until=deployed", "--timeout=1s"], 3, "timed out after 1 s: ");
    // A namespace that does not exist has no record either: `helm install --create-namespace` makes it.
    let elsewhere = namespace.plane().interlock(&bob.who, &["wait", "wait-nowhere/demo"]);
    ended(run(elsewhere, DEADLINE), 0, "wait-nowhere/demo is free: there is no record of it\n");

    let mut waits = vec![bob.spawn("deployed"), bob.spawn("1.0.0")];
    let interrupted = Running::spawn(interruptible(&bob.command(&["--until=deployed", TIMEOUT, "-o", "json"])));
    // For so long, the others have waited.
    let silent =
        bob.ends(&["--until=1.0.0", "--timeout=3s"], 3, "/demo is not deployed at 1.0.0: there is no record of it\n");
    assert!(silent.stderr.lines().all(|line| line.contains("using the shipped policy")), "{silent}");
    interrupted.interrupt();
    let interrupted = interrupted.wait(PROMPTLY);
    assert_eq!((interrupted.status.signal(), interrupted.stdout.as_str()), (Some(2), ""), "{interrupted}");
    assert!(waits.iter_mut().all(Running::is_running));
    let chart = Chart::new("demo");
    namespace.helm(HelmVersion::V3, Driver::Secret, "alice").ok(&["install", "demo", chart.path()]);
    reached(waits);
}

#[test]
fn a_terminal_shows_what_is_waited_for() {
    let namespace = Namespace::new(Plane::without_webhook(), "wait-line");
    let mut command = Pipeline::new(&namespace, "bob").command(&["--until=deployed", "--timeout=3s"]);
    command.env("TERM", "xterm");
    let shown = ended(Running::on_terminal(command, "").wait(DEADLINE), 3, "timed out after 3 s: ");
    let times = shown.stdout.matches("/demo is not deployed").count();
    assert!(times > 1 && shown.stdout.contains(" 2s wait-line"), "the line is redrawn with the time\n{shown}");
}

#[test]
fn the_wait_goes_on_after_a_restart_of_the_api_server() {
    let plane = Plane::alone();
    let namespace = Namespace::new(&plane, "wait-restart");
    let bob = Pipeline::new(&namespace, "bob");
    let wait = bob.spawn("deployed");
    bob.ends(&["--until=deployed", "--timeout=2s"], 3, "there is no record of it");
    plane.kill_api_server();
    let chart = Chart::new("demo");
    namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "demo", chart.path()]);
    // The watch comes back after a pause.
    let output = wait.wait(BEYOND_TIMEOUT);
    assert_eq!((output.status.code(), &output.json()["outcome"]), (Some(0), &json!("reached")), "{output}");
}

#[test]
fn missing_rights_are_named_and_few_are_enough() {
    let plane = Plane::without_webhook();
    let namespace = Namespace::new(plane, "wait-rights");
    let admin = namespace.kubectl("admin");
    let pipeline = Pipeline { namespace: &namespace, who: plane.account(namespace.name(), "pipeline").unwrap() };
    pipeline.ends(&[], 2, "cannot list resource \"secrets\" in API group \"\" in the namespace");
    let role = |name: &str, verbs: &str, resources: &str| {
        admin.ok(&["create", "role", name, &format!("--verb={verbs}"), &format!("--resource={resources}")]);
        let account = format!("--serviceaccount={}:pipeline", namespace.name());
        admin.ok(&["create", "rolebinding", name, &format!("--role={name}"), &account]);
    };
    role("secrets", "get,list", "secrets");
    // The release may have its records there.
    pipeline.ends(&[], 2, "cannot list resource \"configmaps\"");
    let chart = Chart::new("demo");
    namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "demo", chart.path()]);
    let free = pipeline.ends(&["--until=1.0.0"], 0, "/demo is deployed at 1.0.0: ");
    assert!(free.stderr.contains("cannot get resource \"configmaps\""), "the policy cannot be read\n{free}");
    role("configmaps", "get,list,watch", "configmaps");
    pipeline.ends(&["--until=2.0.0", TIMEOUT], 2, "cannot watch resource \"secrets\"");
    role("watch", "watch", "secrets");
    pipeline.ends(&["--until=2.0.0", "--timeout=2s"], 3, "/demo is not deployed at 2.0.0");
    let wait = pipeline.spawn("2.0.0");
    pipeline.ends(&["--until=2.0.0", "--timeout=2s"], 3, "");
    chart.set_version("2.0.0");
    namespace.helm(HelmVersion::V3, Driver::Secret, "alice").ok(&["upgrade", "demo", chart.path()]);
    reached(vec![wait]);
    // Without the policy it is unknown what is frozen.
    pipeline.ends(
        &["--until=open"],
        2,
        "it is unknown what is frozen, because the policy in namespace interlock-system",
    );
}

/// From the start of the plane to the end of the freeze: the release is installed, and an upgrade is refused.
const UNTIL_IT_ENDS: SignedDuration = SignedDuration::from_secs(90);

/// The shipped policy with a freeze of the release `demo` that ends during the test, and one of `rest` that does not.
fn frozen() -> String {
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    let freeze = |name: &str, release: &str, length: SignedDuration| {
        let [from, to] =
            [now - SignedDuration::from_hours(1), now + length].map(|moment| moment.to_zoned(TimeZone::UTC).datetime());
        format!(
            "{{name: {name}, reason: the {name}, timeZone: UTC, from: {from}, to: {to}, releases: [{release}], exempt: {{users: [bob]}}}}"
        )
    };
    let freezes = [freeze("sale", "demo", UNTIL_IT_ENDS), freeze("year-end", "rest", SignedDuration::from_hours(5))];
    format!("{}freezes: [{}]\n", include_str!("../../../policies/cluster.yaml"), freezes.join(", "))
}

#[test]
fn a_freeze_is_waited_out_and_the_next_upgrade_passes() {
    let policy = frozen();
    let plane = Plane::start(&policy);
    let namespace = Namespace::new(&plane, "wait-freeze");
    let chart = Chart::new("demo");
    let helm = |person: &str| namespace.helm(HelmVersion::V4, Driver::Secret, person);
    helm("bob").ok(&["install", "demo", chart.path()]);
    // As an installation has it.
    let admin = plane.kubectl(&plane.admin());
    let file = plane.dir().join("policies/cluster.yaml");
    let policies = format!("--from-file={}", file.display());
    admin.ok(&["create", "configmap", "interlock-policies", "-n", "interlock-system", &policies]);

    let alice = Pipeline::new(&namespace, "alice");
    helm("alice").fails(&["upgrade", "demo", chart.path()], &["the freeze sale is in force until"]);
    let wait = alice.spawn("open");
    let refused =
        alice.ends(&["--until=open", "--timeout=0"], 4, "/demo is not open: the freeze sale is in force until ");
    assert!(refused.stdout.contains(" UTC (the sale)\nNext: wait until "), "{refused}");
    // Nothing starts, so nothing is in the way of these.
    alice.ends(&["--until=deployed"], 0, "/demo is deployed: ");
    Pipeline::new(&namespace, "bob").ends(&["--until=open"], 0, "/demo is open: deployed, revision 1");
    let output = wait.wait(BEYOND_TIMEOUT);
    assert_eq!((output.status.code(), &output.json()["freeze"]), (Some(0), &Value::Null), "{output}");
    assert!(output.json()["waitedSeconds"].as_u64().unwrap() >= 1, "{output}");
    helm("alice").ok(&["upgrade", "demo", chart.path()]);
    open_by_an_override(&plane, &namespace, &chart);
}

/// A freeze that lasts longer than the test: nobody waits for its end, and an override opens it.
#[track_caller]
fn open_by_an_override(plane: &Plane, namespace: &Namespace<'_>, chart: &Chart) {
    plane.define("manifests/base/releaseoverrides.yaml");
    let release = format!("{}/rest", namespace.name());
    let alice = |args: &[&str]| run(plane.interlock(&plane.person("alice"), args), BEYOND_TIMEOUT);
    let wait = || alice(&["wait", &release, "--until=open", TIMEOUT, "-o", "json"]);
    let frozen = ended(wait(), 4, "the freeze year-end is in force until ");
    assert!(frozen.took < PROMPTLY && frozen.json()["freeze"]["name"] == "year-end", "{frozen}");
    let opened = ["override", &release, "--rule=freeze", "--for=10m", "--reason=a security fix", "--user=alice"];
    alice(&opened).expect_success();
    ended(wait(), 0, "/rest is open: there is no record of it");
    let helm = namespace.helm(HelmVersion::V4, Driver::Secret, "alice");
    eventually(DEADLINE, "the webhook knows the override", || {
        helm.run(&["install", "rest", chart.path()]).into_result()
    });
}
