//! Interlock installed by its chart: installed, upgraded, rolled back, without a replica, and uninstalled, each while
//! another user's helm works.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::harness::assets::progress;
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, Helm, HelmVersion};
use crate::harness::cluster::{CHART, Cluster, IMAGE, NAMESPACE};
use crate::harness::eventually::eventually;
use crate::harness::load::{Load, Phase};
use crate::harness::namespace::Namespace;
use crate::harness::process::{Output, run};

/// The shipped policy with a change.
const LENIENT: &str = concat!(include_str!("../../../policies/cluster.yaml"), "rules: {manual-edit: {mode: audit}}\n");
const REPLICAS: usize = 3;
/// Writes a second: enough to hit every phase, and two cores can still do the rest.
const RATE: u32 = 16;
/// How many writes an entry that fails open may miss while replicas change.
const MISSED: usize = 2;
/// How long controllers and watches may take on a busy machine.
const SOON: Duration = Duration::from_secs(60);
/// The prefix of the namespaces with other users' work. It also identifies their objects.
const THERE: &str = "there";
const THEIRS: [&str; 2] = ["Namespace /there-", " there-"];
/// What `helm uninstall` leaves: the namespace, which helm never deletes, and the definitions of overrides and Freezes, because
/// deleting them would delete all of these.
const LEFT: [&str; 5] = [
    "APIService /v1alpha1.interlock.dev",
    "CustomResourceDefinition /freezes.interlock.dev",
    "CustomResourceDefinition /releaseoverrides.interlock.dev",
    "Namespace /interlock-system",
    "ServiceAccount interlock-system/default",
];

#[test]
fn interlock_is_installed_lives_and_goes_while_others_work() {
    let cluster = Cluster::start("installed");
    let before = objects(&cluster);
    let site = Site::new(&cluster, HelmVersion::V4);
    site.install();
    site.expect_healthy();
    site.upgrade_and_rollback();
    site.come_back_from_nothing(&["--force-conflicts"]);
    site.uninstall(&before);
    let site = Site::new(&cluster, HelmVersion::V3);
    site.install();
    site.come_back_from_nothing(&[]);
    site.uninstall(&before);
}

/// One version of helm: the admin installs Interlock with it, and alice works with it.
struct Site<'c> {
    cluster: &'c Cluster,
    /// The admin's helm in Interlock's namespace.
    interlock: Helm,
    there: Namespace<'c>,
    /// Alice's helm in her namespace.
    demo: Helm,
    chart: Chart,
    load: Load,
}

impl<'c> Site<'c> {
    fn new(cluster: &'c Cluster, version: HelmVersion) -> Self {
        let plane = cluster.plane();
        let there = Namespace::new(plane, THERE);
        Self {
            cluster,
            interlock: Helm::new(version, Driver::Secret, &plane.admin(), NAMESPACE, plane.dir()),
            demo: there.helm(version, Driver::Secret, "alice"),
            load: Load::start(&there, RATE),
            there,
            chart: Chart::new("demo"),
        }
    }

    fn say(&self, what: &str, took: Duration) {
        progress(&format!("helm {:?}: {what} in {took:.1?}", self.interlock.version()));
    }

    /// `helm VERB interlock CHART ARGS --wait`. An uninstall is without `--wait`, as documented; helm has it since 3.7.
    fn helm(&self, verb: &str, args: &[&str]) -> Output {
        let mut all = vec![verb, "interlock"];
        if verb != "rollback" && verb != "uninstall" {
            all.extend([CHART, IMAGE]);
        }
        all.extend(args);
        all.push("--timeout=100s");
        if verb != "uninstall" {
            all.push("--wait");
        }
        let output = self.interlock.ok(&all);
        self.say(&format!("{verb} {}", args.join(" ")), output.took);
        output
    }

    /// Installs Interlock and waits until it guards. Nobody else's work is held up.
    fn install(&self) {
        let work = Work::start(self);
        self.helm("install", &["--create-namespace"]);
        self.expect_guarded();
        self.cluster.await_closed();
        let (phase, failed) = work.count("the installation");
        assert!(phase.let_in_only() && phase.failed.is_empty() && failed.is_empty(), "{phase}\n{failed:#?}");
        assert_eq!(self.cluster.await_ready(REPLICAS).len(), REPLICAS);
    }

    /// `interlock doctor` has no finding about the installation.
    fn expect_healthy(&self) {
        eventually(SOON, "the doctor finds nothing", || {
            let plane = self.cluster.plane();
            let message = run(plane.interlock(&plane.admin(), &["doctor", "-n", NAMESPACE]), SOON);
            if message.stdout.contains("nothing is wrong\n") { message.into_result() } else { Err(message.to_string()) }
        });
    }

    /// Forbidden acts are refused, and their allowed neighbours pass.
    fn expect_guarded(&self) {
        let kubectl = self.there.kubectl("alice");
        let release = format!("guarded-{}", self.there.records(Driver::Secret, "guarded").len());
        if release == "guarded-0" {
            self.demo.ok(&["install", "guarded", self.chart.path()]);
        } else {
            self.demo.ok(&["upgrade", "guarded", self.chart.path(), &format!("--set=note={release}")]);
        }
        kubectl.fails(&["set", "image", "deployment/guarded", "app=other"], &["[manual-edit]"]);
        let newest = self.there.records(Driver::Secret, "guarded").pop().expect("a record of what was just released");
        let record = format!("sh.helm.release.v1.guarded.v{}", newest.revision);
        kubectl.fails(&["delete", "secret", &record], &["[record-deletion]"]);
        kubectl.ok(&["label", "deployment/guarded", "--overwrite", &format!("team={release}")]);
    }

    /// Upgrades to another policy and other pods, and rolls back.
    fn upgrade_and_rollback(&self) {
        let trusted = self.ca_bundles();
        let work = Work::start(self);
        let policy = self.cluster.plane().dir().join("lenient.yaml");
        fs::write(&policy, LENIENT).expect("the plane's directory is writable");
        let policy = format!("--set-file=policies.cluster={}", policy.display());
        self.helm("upgrade", &["--set=podAnnotations.round=two", &policy]);
        self.expect_edit(|output| output.success());
        assert_eq!(self.ca_bundles(), trusted, "the upgrade touched the caBundle");
        self.helm("rollback", &["1"]);
        self.expect_edit(|output| output.stderr.contains("[manual-edit]"));
        assert_eq!(self.ca_bundles(), trusted, "the rollback touched the caBundle");
        work.stop("an upgrade and a rollback");
        self.cluster.await_ready(REPLICAS);
    }

    /// Waits until an edit by hand has this result, because the replicas take time to read their policy.
    fn expect_edit(&self, ends: impl Fn(&Output) -> bool) {
        let kubectl = self.there.kubectl("alice");
        eventually(SOON, "the replicas follow the policy", || {
            // A dry run gets the same verdict and leaves no field that conflicts with the next upgrade.
            let output = kubectl.run(&["set", "image", "deployment/guarded", "app=other", "--dry-run=server"]);
            if ends(&output) { Ok(()) } else { Err(output.to_string()) }
        });
    }

    /// The caBundles of all entries.
    fn ca_bundles(&self) -> BTreeSet<(String, String)> {
        let kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
        let registered = self.cluster.kubectl().get(&[kinds]);
        let configurations = registered["items"].as_array().expect("a list");
        let entries =
            configurations.iter().flat_map(|configuration| configuration["webhooks"].as_array().expect("entries"));
        let text = |value: &Value| value.as_str().expect("every entry has a name and a caBundle").to_owned();
        entries.map(|entry| (text(&entry["name"]), text(&entry["clientConfig"]["caBundle"]))).collect()
    }

    /// Without a replica nothing is judged, including the chart's own upgrade, which brings the replicas back.
    fn come_back_from_nothing(&self, args: &[&str]) {
        // A rollback to the first revision opens the entries again for a moment.
        self.cluster.await_closed();
        let trusted = self.ca_bundles();
        self.cluster.kubectl().ok(&["scale", "deployment/interlock", "--replicas=0"]);
        eventually(SOON, "no replica is left", || {
            let replicas = self.cluster.replicas();
            if replicas.is_empty() { Ok(()) } else { Err(format!("{replicas:?}")) }
        });
        self.demo.fails(&["upgrade", "guarded", self.chart.path()], &["failed calling webhook"]);
        self.helm("upgrade", args);
        self.cluster.await_ready(REPLICAS);
        assert_eq!(self.ca_bundles(), trusted, "the upgrade touched the caBundle");
        self.expect_guarded();
    }

    /// Nothing fails during the uninstall, and only the documented objects are left.
    fn uninstall(self, before: &BTreeSet<String>) {
        let work = Work::start(&self);
        self.helm("uninstall", &[]);
        self.there.kubectl("alice").ok(&["set", "image", "deployment/guarded", "app=other"]);
        let (phase, failed) = work.count("the removal");
        assert!(phase.let_in_only() && phase.failed.is_empty() && failed.is_empty(), "{phase}\n{failed:#?}");
        let expected: BTreeSet<_> = LEFT.into_iter().map(str::to_owned).collect();
        eventually(SOON, &format!("nothing is left but {expected:#?}"), || {
            let left = objects(self.cluster);
            let ours = left.difference(before).filter(|object| !THEIRS.iter().any(|theirs| object.contains(theirs)));
            let left: BTreeSet<_> = ours.cloned().collect();
            if left == expected { Ok(()) } else { Err(format!("{left:#?}")) }
        });
        assert!(self.cluster.replicas().is_empty());
    }
}

/// A user whose helm upgrades a release again and again, next to the load.
struct Work<'s> {
    stop: Arc<AtomicBool>,
    helm: JoinHandle<Vec<Output>>,
    load: &'s Load,
}

impl<'s> Work<'s> {
    fn start(site: &'s Site<'_>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, helm) = (stop.clone(), site.demo.clone());
        let chart = site.chart.path().to_owned();
        let worker = std::thread::spawn(move || {
            let mut outputs = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let note = format!("--set=note=n{}", outputs.len());
                outputs.push(helm.run(&["upgrade", "--install", "demo", &chart, &note, "--history-max=3"]));
            }
            outputs
        });
        drop(site.load.phase());
        Self { stop, helm: worker, load: &site.load }
    }

    #[track_caller]
    fn stop(self, during: &str) {
        let (phase, failed) = self.count(during);
        // The policy in between only audits edits. On a machine with ten times its capacity of work, one write in a
        // thousand passed an entry that fails open.
        let missed = phase.wrong.iter().filter(|wrong| *wrong != "edit: admitted").count();
        assert!(phase.right > 0 && phase.failed.is_empty(), "{phase}");
        assert!(missed <= MISSED && phase.failed_open_only(), "{phase}");
        assert!(failed.is_empty(), "{} operations failed, such as\n{}", failed.len(), failed[0]);
    }

    /// Returns the results of the writes, and the failed operations of helm.
    #[track_caller]
    fn count(self, during: &str) -> (Phase, Vec<Output>) {
        self.stop.store(true, Ordering::Relaxed);
        let outputs = self.helm.join().expect("a client's failure is a value");
        let phase = self.load.phase();
        let count = outputs.len();
        let failed: Vec<_> = outputs.into_iter().filter(|output| !output.success()).collect();
        progress(&format!("during {during}: {phase}; {} of {count} upgrades by helm failed", failed.len()));
        (phase, failed)
    }
}

/// Every object of the cluster, except those that the control plane creates and removes by itself.
fn objects(cluster: &Cluster) -> BTreeSet<String> {
    let kubectl = cluster.kubectl();
    let kinds = kubectl.ok(&["api-resources", "--verbs=list", "-o", "name"]).stdout;
    let passing = ["events", "events.events.k8s.io", "componentstatuses", "ipaddresses.networking.k8s.io"];
    let kinds: Vec<_> = kinds.lines().filter(|kind| !passing.contains(kind)).collect();
    let template = r#"{range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}"#;
    let listed = kubectl.ok(&["get", &kinds.join(","), "--all-namespaces", "-o", &format!("jsonpath={template}")]);
    listed.stdout.lines().filter(|line| !line.starts_with("Lease kube-system/apiserver-")).map(str::to_owned).collect()
}
