//! Lives of releases, by the real helm 3 and helm 4 with both drivers, with forbidden acts of a stranger in between.

use std::time::{Duration, Instant};

use crate::harness::chart::{Chart, HookKind, When};
use crate::harness::clients::{Driver, Helm, HelmVersion, Kubectl};
use crate::harness::eventually::within;
use crate::harness::process::{Output, Running};

use super::chance::Chance;
use super::ending::Expect;
use super::site::{Site, steady};

/// The name of every release and of its objects.
const RELEASE: &str = "app";
/// The policy's staleAfter.
pub(crate) const STALE: Duration = Duration::from_secs(45);
/// How long a client may take to see a new record.
const UNSURE: Duration = Duration::from_secs(15);
/// Acts against an operation in flight begin before this, so that they end long before it is stale.
const FRESH: Duration = Duration::from_secs(20);
/// How long one operation may take on a busy machine.
const OPERATION: Duration = Duration::from_secs(110);
/// How long the leader may take for a note: longer than a change of leaders and a restart of the API server.
const NOTE: Duration = Duration::from_secs(120);
/// Makes `--wait` wait, and the opposite.
const HANG: &str = "controlplane/pods=hang";
const READY: &str = "controlplane/pods-";

/// A forbidden act: its name, kubectl's arguments with RECORD and KIND for the deployed record, and the rules that may refuse it.
type Forbidden = (&'static str, &'static [&'static str], &'static [&'static str]);

const FORBIDDEN: [Forbidden; 7] = [
    (
        "edit a ConfigMap",
        &["patch", "configmap", RELEASE, "--type=merge", "-p", r#"{"data":{"note":"by hand"}}"#],
        &["manual-edit"],
    ),
    ("change an image", &["set", "image", "deployment/app", "app=other"], &["manual-edit"]),
    ("delete a Service", &["delete", "service", RELEASE, "--wait=false"], &["manual-delete"]),
    ("scale a Deployment", &["scale", "deployment/app", "--replicas=7"], &["manual-scale"]),
    (
        "change a record's status",
        &["label", "KIND", "RECORD", "status=failed", "--overwrite"],
        &["record-integrity", "illegal-transition", "record-tampering"],
    ),
    (
        "replace a record's content",
        &["patch", "KIND", "RECORD", "--type=merge", "-p", r#"{"data":{"release":"bm90IGEgcmVjb3Jk"}}"#],
        &["record-integrity", "record-tampering"],
    ),
    ("delete a record", &["delete", "KIND", "RECORD", "--wait=false"], &["record-deletion", "pending-recovery"]),
];

/// Lives one release after the other until the stop.
pub(crate) fn live(site: &Site<'_>, worker: usize, mut chance: Chance, round: &str) {
    let mut number = 0;
    while !site.is_stopped() {
        number += 1;
        let Some(mut life) = Life::begin(site, &format!("soak-{round}-{worker}-{number}"), &mut chance) else {
            site.sleep(Duration::from_secs(1));
            continue;
        };
        // An act that did not end as expected ends the life: it changes the verdicts of later acts.
        let _ = life.whole(&mut chance);
        life.end();
    }
}

struct Life<'s> {
    site: &'s Site<'s>,
    namespace: String,
    driver: Driver,
    /// Alice's, who owns the release.
    helm: Helm,
    /// Bob's, who is a stranger.
    his_helm: Helm,
    bob: Kubectl,
    admin: Kubectl,
    chart: Chart,
    /// The deployed revision.
    revision: u32,
}

impl<'s> Life<'s> {
    fn begin(site: &'s Site<'s>, namespace: &str, chance: &mut Chance) -> Option<Self> {
        let plane = site.cluster.plane();
        let (version, driver) = (*chance.pick(&HelmVersion::ALL), *chance.pick(&Driver::ALL));
        let kubectl = |who: &str| Kubectl::new(&plane.person(who), Some(namespace), plane.dir());
        let helm = Helm::new(version, driver, &plane.person("alice"), namespace, plane.dir());
        let (bob, admin) = (kubectl("bob"), kubectl("admin"));
        let created = admin.run(&["create", "namespace", namespace]);
        (created.success() || created.stderr.contains("already exists")).then_some(())?;
        steady(&admin, &["get", "serviceaccount", "default"])?;
        Some(Self {
            site,
            namespace: namespace.to_owned(),
            driver,
            his_helm: helm.by(&plane.person("bob")),
            helm,
            bob,
            admin,
            chart: Chart::new("demo").hook(When::PreUpgrade, HookKind::ConfigMap).hook(When::Test, HookKind::Pod),
            revision: 0,
        })
    }

    fn whole(&mut self, chance: &mut Chance) -> Option<()> {
        self.operate("install", &["install", RELEASE, "CHART", "--wait", "--timeout=90s"], 1)?;
        self.forbidden(chance)?;
        self.operate("upgrade", &["upgrade", RELEASE, "CHART", "--set=note=two", "--wait", "--timeout=90s"], 1)?;
        self.fail("upgrade that fails", &["upgrade", RELEASE, "CHART", "--set=breakApply=true"], 1)?;
        self.operate("upgrade", &["upgrade", RELEASE, "CHART", "--set=note=three"], 1)?;
        self.forbidden(chance)?;
        let undo = self.helm.version().rollback_on_failure();
        let atomic = ["upgrade", RELEASE, "CHART", "--set=breakApply=true", undo, "--timeout=90s"];
        self.fail("atomic upgrade that fails", &atomic, 2)?;
        self.operate("test", &["test", RELEASE, "--timeout=90s"], 0)?;
        self.operate("rollback", &["rollback", RELEASE, "1", "--wait", "--timeout=90s"], 1)?;
        match chance.below(4) {
            0 => self.interrupted()?,
            1 => self.forbidden(chance)?,
            _ => self.concurrent()?,
        }
        if chance.below(2) == 0 {
            self.operate("uninstall, history kept", &["uninstall", RELEASE, "--keep-history"], 0)?;
        }
        self.operate("uninstall", &["uninstall", RELEASE], 0)
    }

    /// Deleting a namespace is clean-up, which passes in every state.
    fn end(self) {
        let _ = steady(&self.admin, &["delete", "namespace", &self.namespace, "--wait=false", "--ignore-not-found"]);
    }

    fn act(&self, kind: &'static str, expect: Expect, output: &Output) -> Option<()> {
        let text = format!("{}\n{}\n{}", output.command, output.stdout, output.stderr);
        let right = self.site.ledger.act(kind, expect, output.success(), &text, output.took);
        (right && !self.site.is_stopped()).then_some(())
    }

    fn arguments<'a>(&'a self, args: &'a [&'a str]) -> Vec<&'a str> {
        args.iter().map(|arg| if *arg == "CHART" { self.chart.path() } else { arg }).collect()
    }

    /// An operation of alice that writes this many revisions, the last of which is deployed.
    fn operate(&mut self, kind: &'static str, args: &[&str], revisions: u32) -> Option<()> {
        let output = self.helm.run(&self.arguments(args));
        self.act(kind, Expect::Passes, &output)?;
        self.revision += revisions;
        Some(())
    }

    /// Likewise, but the API server refuses one object.
    fn fail(&mut self, kind: &'static str, args: &[&str], revisions: u32) -> Option<()> {
        let output = self.helm.run(&self.arguments(args));
        self.act(kind, Expect::Fails("selector"), &output)?;
        self.revision += revisions;
        Some(())
    }

    fn record(&self, revision: u32) -> String {
        format!("sh.helm.release.v1.{RELEASE}.v{revision}")
    }

    /// A few forbidden acts, each followed by an allowed one.
    fn forbidden(&self, chance: &mut Chance) -> Option<()> {
        let record = self.record(self.revision);
        for (kind, args, rules) in chance.shuffled(&FORBIDDEN).into_iter().take(3) {
            let words = args.iter().map(|arg| match *arg {
                "KIND" => self.driver.resource(),
                "RECORD" => &record,
                arg => arg,
            });
            self.act(kind, Expect::Refused(rules), &self.bob.run(&words.collect::<Vec<_>>()))?;
            let label = format!("team=t{}", chance.below(1_000_000));
            let neighbour = self.bob.run(&["label", "deployment/app", &label, "--overwrite"]);
            self.act("label an object", Expect::Passes, &neighbour)?;
        }
        Some(())
    }

    /// An upgrade that hangs, once its record is pending.
    fn in_flight(&self, set: &str) -> Option<(Running, Instant)> {
        steady(&self.admin, &["label", "namespace", &self.namespace, "--overwrite", HANG])?;
        let started = Instant::now();
        let mut running = self.helm.spawn(&["upgrade", RELEASE, self.chart.path(), set, "--wait", "--timeout=100s"]);
        let next = self.record(self.revision + 1);
        let pending = within(OPERATION, "the record is pending", || {
            let labels =
                self.admin.run(&["get", self.driver.resource(), &next, "-o", "jsonpath={.metadata.labels.status}"]);
            if labels.stdout == "pending-upgrade" || !running.is_running() { Ok(()) } else { Err(labels.to_string()) }
        });
        if pending.is_ok() && running.is_running() {
            return Some((running, started));
        }
        steady(&self.admin, &["label", "namespace", &self.namespace, READY])?;
        self.act("upgrade beside others", Expect::Passes, &running.wait(OPERATION));
        None
    }

    /// Bob acts while alice's upgrade runs, which then ends well.
    fn concurrent(&mut self) -> Option<()> {
        let (running, started) = self.in_flight("--set=image=two,note=four")?;
        let mut right = Some(());
        if started.elapsed() < FRESH {
            let rollback = self.his_helm.run(&["rollback", RELEASE, "1"]);
            right = self.act("rollback over an upgrade", Expect::Refused(&["pending-recovery"]), &rollback);
        }
        if right.is_some() && started.elapsed() < FRESH {
            let edit = self.bob.run(FORBIDDEN[0].1);
            right = self.act("edit during an upgrade", Expect::Refused(&["foreign-edit-in-transition"]), &edit);
        }
        steady(&self.admin, &["label", "namespace", &self.namespace, READY])?;
        let upgraded = running.wait(OPERATION);
        right?;
        self.act("upgrade beside others", Expect::Passes, &upgraded)?;
        self.revision += 1;
        Some(())
    }

    /// Alice's upgrade dies, bob deletes its record once it is stale, and the leader notes what was interrupted.
    fn interrupted(&mut self) -> Option<()> {
        self.chart.set_version("2.0.0");
        let (running, _) = self.in_flight("--set=note=five")?;
        let pending = Instant::now();
        drop(running.kill());
        steady(&self.admin, &["label", "namespace", &self.namespace, READY])?;
        let (kind, record) = (self.driver.resource(), self.record(self.revision + 1));
        loop {
            let tried = Instant::now();
            let output = self.bob.run(&["delete", kind, &record, "--wait=false"]);
            // Around the end of its time either is right, because this clock is not the API server's.
            let is_fresh = tried - pending + UNSURE < STALE;
            let is_stuck = tried - pending > STALE + OPERATION;
            if is_stuck || (output.success() && !is_fresh) {
                self.act("delete a stuck record", Expect::Passes, &output)?;
                break;
            }
            self.act("delete a record in flight", Expect::Refused(&["pending-recovery"]), &output)?;
            self.site.sleep(Duration::from_secs(3));
        }
        let note = format!("demo-2.0.0@{}", self.revision + 1);
        let path = r"jsonpath={.metadata.annotations.interlock\.dev/interrupted}";
        let (left, mut seen) = (self.record(self.revision), String::new());
        let noted = within(NOTE, &format!("{}/{left} says {note}", self.namespace), || {
            seen = self.admin.run(&["get", kind, &left, "-o", path]).stdout;
            if seen == note { Ok(()) } else { Err(seen.clone()) }
        });
        let is_noted = noted.is_ok();
        self.site.duty("interrupted operations noted", noted);
        is_noted.then_some(())?;
        self.chart.set_version("3.0.0");
        let skipping = self.helm.run(&self.arguments(&["upgrade", RELEASE, "CHART"]));
        self.act("skip an interrupted version", Expect::Refused(&["resume-interrupted"]), &skipping)?;
        self.chart.set_version("2.0.0");
        self.operate("upgrade", &["upgrade", RELEASE, "CHART", "--wait", "--timeout=90s"], 1)
    }
}
