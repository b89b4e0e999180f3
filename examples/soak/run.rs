//! One run: a warm-up, a rest, disturbances, a rest, and what must hold in the end.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::applications::{ARGOCD, CONTROLLER};
use crate::harness::assets::progress;
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, Helm, HelmVersion, Kubectl};
use crate::harness::clock::WrongClock;
use crate::harness::cluster::{CHART, Cluster, IMAGE, NAMESPACE};
use crate::harness::controllers::{account, helm_controller};
use crate::harness::eventually::within;
use crate::harness::in_flight::policy;
use crate::harness::load::Load;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::webhook::manifest;

use super::chance::Chance;
use super::disturbances::{Disturber, REPLICAS};
use super::ledger::{Ledger, Price};
use super::lives::{STALE, live};
use super::load_account::LoadAccount;
use super::passed::AuditLog;
use super::resources::{self, Usage, usage};
use super::site::{Controllers, Site, steady};
use super::table::table;

/// Leaves expire within the run, though not within the two minutes by which a clock may be off, and CAs are used soon after
/// they are published.
const TIMES: [&str; 4] = [
    "--set=extraEnv[0].name=INTERLOCK_LEAF_LIFETIME",
    "--set-string=extraEnv[0].value=600",
    "--set=extraEnv[1].name=INTERLOCK_CA_SETTLE",
    "--set-string=extraEnv[1].value=5",
];
/// Releases that live at a time.
const WORKERS: usize = 3;
/// Single writes a second, beside helm.
const RATE: u32 = 16;
/// How long anything may take on a busy machine.
const SOON: Duration = Duration::from_secs(180);

/// The account of a run, and what is wrong.
pub(crate) struct Run {
    pub(crate) table: String,
    pub(crate) reasons: Vec<String>,
}

pub(crate) fn run(minutes: f64, seed: u64, audit_log: Option<&Path>) -> Result<Run, String> {
    let whole = Duration::from_secs_f64(minutes * 60.0);
    let dir = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    let clock = WrongClock::build(dir.path())?;
    let audit = AuditLog::in_dir(dir.path(), audit_log)?;
    let cluster = Cluster::start_with("soak", &audit.flags());
    let ledger = Ledger::new(entries_that_fail_closed()?);
    let policy = policy(&format!("staleAfter: {}s", STALE.as_secs()));
    install(&cluster, &policy, dir.path());
    let site = Site::new(&cluster, &ledger, controllers(cluster.plane()));
    let account = LoadAccount::default();

    let warm = (whole / 10).clamp(Duration::from_secs(10), Duration::from_secs(120));
    progress(&format!("soak: {warm:.0?} without disturbances"));
    let mut chance = Chance::new(seed);
    act(&site, warm, &mut chance, "warm", None);
    let before = rest(&site)?;

    progress(&format!("soak: {:.0?} with disturbances", whole - warm.min(whole)));
    let namespace = Namespace::new(cluster.plane(), "load");
    let load = Load::start(&namespace, RATE);
    let his = chance.another();
    let disturber = Disturber { site: &site, load: &load, account: &account, chance: his, policy, clock, edits: 0 };
    let ended = act(&site, whole - warm.min(whole), &mut chance, "soak", Some(disturber));
    account.add("no disturbance", &load.phase(), Price::Nothing);
    drop(load);
    report_is_written(&site);
    somebody_leads(&site);
    let after = rest(&site)?;

    let unjudged = audit.unjudged();
    let mut reasons = ended;
    reasons.extend(ledger.reasons());
    reasons.extend(account.reasons());
    reasons.extend(site.duties().into_iter().flat_map(|(what, _, lost)| {
        lost.into_iter().map(move |why| format!("a duty of the leader was lost, {what}: {why}"))
    }));
    reasons.extend(resources::reasons(&before, &after));
    reasons.extend(panics(&site));
    let open = ledger.open() + account.open();
    if open > unjudged {
        reasons
            .push(format!("{open} forbidden writes were admitted, but by the audit log only {unjudged} were unjudged"));
    }
    if ledger.tallies().is_empty() || (seconds(whole) > 120 && ledger.disturbances().is_empty()) {
        reasons.push("nothing happened".to_owned());
    }
    Ok(Run { table: table(&site, &account, &before, &after, unjudged), reasons })
}

fn seconds(time: Duration) -> u64 {
    time.as_secs()
}

fn install(cluster: &Cluster, policy: &str, dir: &Path) {
    let plane = cluster.plane();
    for kind in ["reports", "helmreleases", "applications"] {
        plane.define(&format!("tests/e2e/harness/crds/{kind}.yaml"));
    }
    let file = dir.join("cluster.yaml");
    fs::write(&file, policy).expect("a temporary directory is writable");
    let policy = format!("--set-file=policies.cluster={}", file.display());
    let helm = Helm::new(HelmVersion::V4, Driver::Secret, &plane.admin(), NAMESPACE, plane.dir());
    let install = ["install", "interlock", CHART, IMAGE, "--create-namespace", "--wait", "--timeout=100s", &policy];
    helm.ok(&[&install[..], &TIMES].concat());
    cluster.await_ready(REPLICAS);
    cluster.await_closed();
}

fn controllers(plane: &Plane) -> Controllers {
    Controllers { flux: helm_controller(plane), argo: account(plane, ARGOCD, CONTROLLER) }
}

/// Lives and disturbances for a while. Returns what ended before the time.
fn act(
    site: &Site<'_>,
    how_long: Duration,
    chance: &mut Chance,
    round: &str,
    disturber: Option<Disturber<'_>>,
) -> Vec<String> {
    site.set_stopped(false);
    let until = Instant::now() + how_long;
    std::thread::scope(|scope| {
        let mut threads: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let chance = chance.another();
                scope.spawn(move || catch_unwind(AssertUnwindSafe(|| live(site, worker, chance, round))))
            })
            .collect();
        threads.extend(disturber.map(|it| scope.spawn(move || catch_unwind(AssertUnwindSafe(|| it.run())))));
        while Instant::now() < until && threads.iter().all(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(200));
        }
        site.set_stopped(true);
        let ended = threads.into_iter().filter_map(|thread| thread.join().ok()?.err());
        let text = |panic: Box<dyn std::any::Any + Send>| match panic.downcast::<String>() {
            Ok(text) => *text,
            Err(_) => "a thread ended".to_owned(),
        };
        ended.map(text).collect()
    })
}

/// Removes what the lives left, ends the API server's connections, and looks at the replicas.
fn rest(site: &Site<'_>) -> Result<Vec<Usage>, String> {
    let plane = site.cluster.plane();
    let admin = Kubectl::new(&plane.admin(), None, plane.dir());
    within(SOON, "the namespaces of the lives are gone", || {
        let left = admin.run(&["get", "namespaces", "-o", "name"]).into_result()?.stdout;
        let left: Vec<_> = left.lines().filter(|name| name.contains("/soak-")).collect();
        if left.is_empty() { Ok(()) } else { Err(left.join(" ")) }
    })?;
    let replicas = site.cluster.await_ready(REPLICAS);
    site.cluster.connections().cut_all();
    // The replicas notice, and the last reviews end.
    std::thread::sleep(Duration::from_secs(5));
    usage(&replicas)
}

/// A finding after all disturbances is reported by whoever leads now.
fn report_is_written(site: &Site<'_>) {
    let plane = site.cluster.plane();
    let namespace = Namespace::new(plane, "soak-report");
    let chart = Chart::new("app");
    namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "app", chart.path()]);
    namespace.kubectl("bob").fails(&["set", "image", "deployment/app", "app=other"], &["[manual-edit]"]);
    let admin = namespace.kubectl("admin");
    let report = within(SOON, "the finding is reported", || {
        admin.run(&["get", "reports.openreports.io", "interlock-app"]).into_result().map(drop)
    });
    site.duty("findings reported", report);
    let _ = steady(&admin, &["delete", "namespace", namespace.name(), "--wait=false"]);
}

fn somebody_leads(site: &Site<'_>) {
    let leads = within(SOON, "a running replica leads", || {
        let lease =
            site.cluster.kubectl().run(&["get", "lease", "interlock-leader", "-o", "json"]).into_result()?.json();
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        let replicas = site.cluster.replicas();
        if replicas.iter().any(|it| holder.contains(&it.pod)) {
            Ok(())
        } else {
            Err(format!("{holder} of {replicas:?}"))
        }
    });
    site.duty("a replica that runs leads", leads);
}

/// Lines of the replicas' logs that tell of a panic.
fn panics(site: &Site<'_>) -> Vec<String> {
    let pods = fs::read_dir(site.cluster.plane().dir().join("pods")).into_iter().flatten().flatten();
    let logs = pods.filter_map(|pod| fs::read_to_string(pod.path().join("log")).ok());
    let lines: Vec<_> = logs.flat_map(|log| log.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    lines.into_iter().filter(|line| line.contains("panicked")).map(|line| format!("a replica's log: {line}")).collect()
}

/// The names of the entries that fail closed once a review has arrived.
fn entries_that_fail_closed() -> Result<Vec<String>, String> {
    let manifest = manifest("validating-webhooks.yaml")?;
    let entries = manifest["webhooks"].as_array().ok_or("a registration has no webhooks")?;
    let closed = |entry: &&Value| entry["failurePolicy"] == "Fail";
    Ok(entries.iter().filter(closed).filter_map(|entry| entry["name"].as_str().map(str::to_owned)).collect())
}
