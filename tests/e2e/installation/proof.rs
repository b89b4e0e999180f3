//! An entry fails closed only after a review has arrived through its configuration, and `interlock doctor` breaks nothing.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::assets::{assets, interlock, progress};
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, Helm, HelmVersion, client_environment};
use crate::harness::cluster::{CHART, Cluster, IMAGE, NAMESPACE};
use crate::harness::eventually::eventually;
use crate::harness::load::Load;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, Running, run};

/// The entries that fail closed.
const CLOSING: [&str; 4] = [
    "create-delete.records.interlock.dev",
    "commits.sveltos.interlock.dev",
    "overrides.interlock.dev",
    "statuses.interlock.dev",
];
/// How long controllers and watches may take on a busy machine.
const SOON: Duration = Duration::from_secs(60);
/// How long the way is blocked.
const BLOCKED: Duration = Duration::from_secs(60);
/// How soon entries close after the repair of the way.
const REPAIRED: Duration = Duration::from_secs(30);
/// Writes a second.
const RATE: u32 = 16;

#[test]
fn entries_fail_closed_only_after_the_api_server_has_reached_a_replica() {
    let cluster = Cluster::start("proof");
    let plane = cluster.plane();
    let kubectl = cluster.kubectl();
    let helm = Helm::new(HelmVersion::V4, Driver::Secret, &plane.admin(), NAMESPACE, plane.dir());
    let there = Namespace::new(plane, "there");
    // No replica yet, so that the Service points to the closed port before anybody could be called.
    helm.ok(&["install", "interlock", CHART, IMAGE, "--create-namespace", "--set=replicas=0"]);
    point_service_to(&cluster, &json!(9));
    kubectl.ok(&["scale", "deployment/interlock", "--replicas=2"]);
    cluster.await_ready(2);

    let work = Work::start(&there);
    let load = Load::start(&there, RATE);
    drop(load.phase());
    let until = Instant::now() + BLOCKED;
    let message = eventually(SOON, "doctor names the cause", || {
        let message = doctor(plane);
        let says = [
            "cannot call Interlock through validatingwebhookconfigurations/interlock",
            "these fail open",
            "targetPort",
        ];
        if says.iter().all(|text| message.contains(text)) { Ok(message) } else { Err(message) }
    });
    assert!(message.to_lowercase().contains("connection refused"), "{message}");
    eventually(SOON, "an Event names the cause", || {
        let events = kubectl.get(&["events.events.k8s.io"])["items"].to_string();
        let says = ["RegistrationNotProved", "onnection Refused", "targetPort"];
        if says.iter().all(|text| events.contains(text)) { Ok(()) } else { Err(events) }
    });
    eventually(BLOCKED + SOON, "the way was blocked for a minute", || {
        assert_eq!(cluster.open_entries(), CLOSING, "closed without a proof");
        if Instant::now() >= until { Ok(()) } else { Err("not yet".to_owned()) }
    });
    let phase = load.phase();
    assert!(phase.let_in_only() && phase.failed.is_empty(), "{phase}");
    progress(&format!("while the way is blocked: {phase}; {} operations of helm", work.count()));

    point_service_to(&cluster, &json!("https"));
    let repaired = Instant::now();
    cluster.await_closed();
    let took = repaired.elapsed();
    assert!(took < REPAIRED, "closed after {took:?}");
    let record = &there.records(Driver::Secret, "base").pop().expect("the release of the load").revision;
    let record = format!("sh.helm.release.v1.base.v{record}");
    there.kubectl("alice").fails(&["delete", "secret", &record], &["[record-deletion]"]);
    drop(load.phase());
    eventually(SOON, "writes are judged", || if load.right() > 50 { Ok(()) } else { Err(load.right().to_string()) });
    let phase = load.phase();
    assert_eq!(phase.faults(), 0, "{phase}");
    progress(&format!("closed {took:.1?} after the repair: {phase}"));

    upgrade_after_the_proof(&cluster, &helm);
    upgrade_before_the_proof(&cluster, &helm);
    upgrade_to_another_port(&cluster, &helm);
    let (count, failed) = work.stop();
    assert!(failed.is_empty(), "{} of {count} operations failed, such as\n{}", failed.len(), failed[0]);
    progress(&format!("{count} operations of helm, none failed"));
}

/// Prints the failure policy of an entry that fails closed, at each change of the configuration.
fn watched_policy(cluster: &Cluster) -> Running {
    let policy =
        "--output=jsonpath={.webhooks[?(@.name==\"create-delete.records.interlock.dev\")].failurePolicy}{\"\\n\"}";
    Running::spawn(cluster.kubectl().command(&["get", "validatingwebhookconfiguration/interlock", "--watch", policy]))
}

/// An upgrade that changes no Service, port or host network opens nothing.
fn upgrade_after_the_proof(cluster: &Cluster, helm: &Helm) {
    let watch = watched_policy(cluster);
    upgrade(helm, &["--set=podAnnotations.round=two"]);
    assert!(cluster.open_entries().is_empty());
    cluster.await_ready(2);
    let seen = watch.kill();
    let policies: Vec<_> = seen.stdout.lines().collect();
    assert!(!policies.is_empty() && policies.iter().all(|policy| *policy == "Fail"), "{seen}");
}

/// An upgrade of what waits for the proof leaves it open, whatever the state of the replicas.
fn upgrade_before_the_proof(cluster: &Cluster, helm: &Helm) {
    // The first revision has open entries and no replica, so nothing proves the way before it is blocked.
    helm.ok(&["rollback", "interlock", "1", "--force-conflicts"]);
    cluster.block_way(true);
    cluster.connections().cut();
    cluster.kubectl().ok(&["scale", "deployment/interlock", "--replicas=2"]);
    assert_eq!(cluster.open_entries(), CLOSING);
    upgrade(helm, &["--set=podAnnotations.round=three"]);
    cluster.await_ready(2);
    assert_eq!(cluster.open_entries(), CLOSING, "closed by an upgrade, without a proof");
    cluster.block_way(false);
    cluster.await_closed();
}

/// An upgrade to another port opens the entries until a review has arrived there.
fn upgrade_to_another_port(cluster: &Cluster, helm: &Helm) {
    let watch = watched_policy(cluster);
    upgrade(helm, &["--set=ports.webhook=9443"]);
    cluster.await_closed();
    let seen = watch.kill();
    let policies: Vec<_> = seen.stdout.lines().collect();
    assert!(policies.first() == Some(&"Fail") && policies.contains(&"Ignore"), "{seen}");
}

fn upgrade(helm: &Helm, more: &[&str]) {
    let all =
        ["upgrade", "interlock", CHART, IMAGE, "--set=replicas=2", "--force-conflicts", "--wait", "--timeout=100s"];
    helm.ok(&[&all[..], more].concat());
}

#[track_caller]
fn point_service_to(cluster: &Cluster, port: &serde_json::Value) {
    let patch = json!([{"op": "replace", "path": "/spec/ports/0/targetPort", "value": port}]).to_string();
    cluster.kubectl().ok(&["patch", "service/interlock", "--type=json", "-p", &patch]);
    cluster.connections().cut();
}

/// What `interlock doctor` prints, on one line.
fn doctor(plane: &Plane) -> String {
    let message = run(plane.interlock(&plane.admin(), &["doctor", "-o", "json"]), SOON);
    message.stdout
}

/// A user who installs and upgrades releases, again and again.
struct Work {
    stop: Arc<AtomicBool>,
    done: Arc<std::sync::Mutex<Vec<Output>>>,
    helm: JoinHandle<()>,
}

impl Work {
    fn start(there: &Namespace<'_>) -> Self {
        let (stop, done) = (Arc::<AtomicBool>::default(), Arc::<std::sync::Mutex<Vec<Output>>>::default());
        let helm = there.helm(HelmVersion::V4, Driver::Secret, "alice");
        let (stopped, finished) = (Arc::clone(&stop), Arc::clone(&done));
        let worker = std::thread::spawn(move || {
            let chart = Chart::new("demo");
            for number in 0.. {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let note = format!("--set=note=n{number}");
                let upgraded = helm.run(&["upgrade", "--install", "demo", chart.path(), &note, "--history-max=3"]);
                finished.lock().expect("no panic").push(upgraded);
            }
        });
        let work = Self { stop, done, helm: worker };
        eventually(
            SOON,
            "the first release is installed",
            || if work.count() > 0 { Ok(()) } else { Err(String::new()) },
        );
        work
    }

    fn count(&self) -> usize {
        self.done.lock().expect("no panic").len()
    }

    /// How many operations there were, and those that failed.
    fn stop(self) -> (usize, Vec<Output>) {
        self.stop.store(true, Ordering::Relaxed);
        self.helm.join().expect("a client's failure is a value");
        let outputs = std::mem::take(&mut *self.done.lock().expect("no panic"));
        (outputs.len(), outputs.into_iter().filter(|output| !output.success()).collect())
    }
}

#[test]
fn every_command_that_doctor_prints_breaks_nothing_on_an_empty_cluster() {
    let plane = Plane::alone();
    let there = Namespace::new(&plane, "there");
    let (helm, chart) = (there.helm(HelmVersion::V3, Driver::Secret, "alice"), Chart::new("demo"));
    let bin = tempfile::tempdir().unwrap();
    symlink(interlock().unwrap(), bin.path().join("interlock")).unwrap();
    symlink(&assets().kubectl, bin.path().join("kubectl")).unwrap();
    symlink(&assets().helm4, bin.path().join("helm")).unwrap();
    let shell = |line: &str| {
        let mut sh = Command::new("sh");
        sh.args(["-c", line]).current_dir(env!("CARGO_MANIFEST_DIR"));
        client_environment(&mut sh, &plane.admin(), plane.dir());
        let path = std::env::var("PATH").unwrap_or_default();
        sh.env("PATH", format!("{}:{path}", bin.path().display()));
        run(sh, SOON)
    };
    helm.ok(&["install", "demo", chart.path()]);
    let first = shell("interlock doctor");
    assert!(first.status.code() == Some(1) && first.stdout.contains("Interlock is not installed"), "{first}");
    assert!(!first.stdout.contains("--registration"), "{first}");
    let pre = shell("interlock doctor --pre");
    assert!(pre.success() && pre.stdout.contains("checks before an installation in interlock-system"), "{pre}");
    assert!(pre.stdout.contains("you may create all"), "{pre}");

    let mut round = 0;
    let mut try_all = |message: &Output| {
        let lines = message
            .stdout
            .lines()
            .map(str::trim)
            .filter(|line| ["kubectl ", "helm ", "interlock "].iter().any(|program| line.starts_with(program)));
        let lines: Vec<_> = lines.map(str::to_owned).collect();
        assert!(!lines.is_empty(), "{message}");
        for line in lines {
            // It may fail where there is nothing; it may break nothing.
            let ran = shell(&line);
            progress(&format!("{line}: {}", ran.status));
            round += 1;
            let release = format!("demo-{round}");
            let installed = helm.run(&["install", &release, Chart::new(&release).path()]);
            assert!(installed.success(), "after {line}\n{ran}\n{installed}");
            let upgraded = helm.run(&["upgrade", "demo", chart.path(), &format!("--set=note=n{round}")]);
            assert!(upgraded.success(), "after {line}\n{ran}\n{upgraded}");
        }
    };
    // Nothing answers: the registration alone must not refuse anything.
    let registered = shell("interlock doctor --registration | kubectl apply --server-side --force-conflicts -f -");
    assert!(registered.success(), "{registered}");
    helm.ok(&["upgrade", "demo", chart.path(), "--set=note=registered"]);
    try_all(&shell("interlock doctor"));
    shell("kubectl delete validatingwebhookconfigurations,mutatingwebhookconfigurations interlock --ignore-not-found");
    try_all(&first);
    // The chart is installed now, and no kubelet runs its pods.
    try_all(&shell("interlock doctor"));
}
