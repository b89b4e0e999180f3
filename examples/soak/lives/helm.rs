//! Lives of releases, by the real helm 3 and helm 4 with both drivers, with forbidden acts of a stranger in between.

use std::time::{Duration, Instant};

use crate::harness::chart::{Chart, HookKind, When};
use crate::harness::clients::{Driver, Helm, HelmVersion};
use crate::harness::eventually::within;
use crate::harness::process::{Output, Running};

use super::super::chance::Chance;
use super::super::ending::Expect;
use super::super::place::Place;
use super::{FRESH, OPERATION, STALE};

/// The name of every release and of its objects.
const RELEASE: &str = "app";
/// How long a client may take to see a new record.
const UNSURE: Duration = Duration::from_secs(15);
/// How long the leader may take for a note: longer than a change of leaders and a restart of the API server.
const NOTE: Duration = Duration::from_secs(120);

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

pub(super) fn live(place: &Place<'_>, chance: &mut Chance) -> Option<()> {
    let plane = place.site.cluster.plane();
    let (version, driver) = (*chance.pick(&HelmVersion::ALL), *chance.pick(&Driver::ALL));
    let helm = place.namespace.helm(version, driver, "alice");
    let his_helm = helm.by(&plane.person("bob"));
    let chart = Chart::new("demo").hook(When::PreUpgrade, HookKind::ConfigMap).hook(When::Test, HookKind::Pod);
    Life { place, driver, helm, his_helm, chart, revision: 0 }.whole(chance)
}

struct Life<'p> {
    place: &'p Place<'p>,
    driver: Driver,
    /// Alice's, who owns the release.
    helm: Helm,
    /// Bob's, who is a stranger.
    his_helm: Helm,
    chart: Chart,
    /// The deployed revision.
    revision: u32,
}

impl Life<'_> {
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

    fn act(&self, kind: &'static str, expect: Expect, output: &Output) -> Option<()> {
        self.place.act(kind, expect, output)
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
            let words: Vec<_> = words.collect();
            let label = format!("team=t{}", chance.below(1_000_000));
            self.place.forbidden(kind, &words, rules, &["label", "deployment/app", &label, "--overwrite"])?;
        }
        Some(())
    }

    /// An upgrade that hangs, once its record is pending.
    fn in_flight(&self, set: &str) -> Option<(Running, Instant)> {
        self.place.hang_pods()?;
        let started = Instant::now();
        let mut running = self.helm.spawn(&["upgrade", RELEASE, self.chart.path(), set, "--wait", "--timeout=100s"]);
        let next = self.record(self.revision + 1);
        let pending = within(OPERATION, "the record is pending", || {
            let labels = self.place.admin.run(&[
                "get",
                self.driver.resource(),
                &next,
                "-o",
                "jsonpath={.metadata.labels.status}",
            ]);
            if labels.stdout == "pending-upgrade" || !running.is_running() { Ok(()) } else { Err(labels.to_string()) }
        });
        if pending.is_ok() && running.is_running() {
            return Some((running, started));
        }
        self.place.ready_pods()?;
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
            let edit = self.place.bob.run(FORBIDDEN[0].1);
            right = self.act("edit during an upgrade", Expect::Refused(&["foreign-edit-in-transition"]), &edit);
        }
        self.place.ready_pods()?;
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
        self.place.ready_pods()?;
        let (kind, record) = (self.driver.resource(), self.record(self.revision + 1));
        loop {
            let tried = Instant::now();
            let output = self.place.bob.run(&["delete", kind, &record, "--wait=false"]);
            // Around the end of its time either is right, because this clock is not the API server's.
            let is_fresh = tried - pending + UNSURE < STALE;
            let is_stuck = tried - pending > STALE + OPERATION;
            if is_stuck || (output.success() && !is_fresh) {
                self.act("delete a stuck record", Expect::Passes, &output)?;
                break;
            }
            self.act("delete a record in flight", Expect::Refused(&["pending-recovery"]), &output)?;
            self.place.site.sleep(Duration::from_secs(3));
        }
        let note = format!("demo-2.0.0@{}", self.revision + 1);
        let path = r"jsonpath={.metadata.annotations.interlock\.dev/interrupted}";
        let (left, mut seen) = (self.record(self.revision), String::new());
        let noted = within(NOTE, &format!("{}/{left} says {note}", self.place.namespace.name()), || {
            seen = self.place.admin.run(&["get", kind, &left, "-o", path]).stdout;
            if seen == note { Ok(()) } else { Err(seen.clone()) }
        });
        let is_noted = noted.is_ok();
        self.place.site.duty("interrupted operations noted", noted);
        is_noted.then_some(())?;
        self.chart.set_version("3.0.0");
        let skipping = self.helm.run(&self.arguments(&["upgrade", RELEASE, "CHART"]));
        self.act("skip an interrupted version", Expect::Refused(&["resume-interrupted"]), &skipping)?;
        self.chart.set_version("2.0.0");
        self.operate("upgrade", &["upgrade", RELEASE, "CHART", "--wait", "--timeout=90s"], 1)
    }
}
