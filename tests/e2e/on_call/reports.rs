//! The traces of a finding in the cluster: counted once, shown in an Event, reported by the leader for its release, and
//! removed after its retention.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::decisions::decisions;
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, run};
use crate::harness::records::V1;
use crate::harness::webhook::Webhook;

/// The retention is longer than a change of leaders and short enough to wait for.
const ARGUMENTS: &[&str] = &["--report-retention=75", "--report-round=1", "--page", "--cluster-name=prod-eu"];

/// Longer than the retention and a change of leaders.
const PATIENCE: Duration = Duration::from_secs(120);

const POLICY: &str = "apiVersion: interlock.dev/v1alpha1
kind: ClusterPolicy
rules:
  manual-edit:
    mode: enforce
    cases:
    - {when: {namespaces: ['warned-*']}, mode: warn}
    - {when: {namespaces: ['audited-*']}, mode: audit}
";

/// A namespace with a release in it.
fn release<'p>(plane: &'p Plane, mode: &str) -> Namespace<'p> {
    let namespace = Namespace::new(plane, mode);
    let chart = Chart::new("demo");
    namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "demo", chart.path()]);
    namespace
}

/// One write of a declared label, as bob.
fn label(namespace: &Namespace<'_>, tier: &str, more: &[&str]) -> Output {
    let tier = format!("tier={tier}");
    let args = [&["label", "--overwrite", "deployment/demo", &tier], more].concat();
    namespace.kubectl("bob").run(&args)
}

/// Interlock's Events in a namespace.
fn events(namespace: &Namespace<'_>) -> Vec<Value> {
    let all = namespace.kubectl("admin").get(&["events.events.k8s.io", "-l", "app.kubernetes.io/managed-by=interlock"]);
    all["items"].as_array().unwrap().clone()
}

/// Waits until the namespace's only Event has this count, and returns the Event.
#[track_caller]
fn await_event(namespace: &Namespace<'_>, count: u64) -> Value {
    eventually(PATIENCE, &format!("one Event of {} that counts {count}", namespace.name()), || {
        let events = events(namespace);
        match events.as_slice() {
            [event] if event["series"]["count"].as_u64().unwrap_or(1) == count => Ok(event.clone()),
            _ => Err(format!("{events:#?}\n{}", namespace.plane().webhook().log())),
        }
    })
}

fn report(namespace: &Namespace<'_>) -> Option<Value> {
    namespace.kubectl("admin").find(&["reports.openreports.io", "interlock-demo"])
}

/// Waits until the report has one result with this count, and returns the report.
#[track_caller]
fn await_report(namespace: &Namespace<'_>, count: u64) -> Value {
    let count = count.to_string();
    eventually(PATIENCE, &format!("a report in {} that counts {count}", namespace.name()), || {
        let report = report(namespace).ok_or("there is no report")?;
        let results = report["results"].as_array().cloned().unwrap_or_default();
        if results.len() == 1 && results[0]["properties"]["count"] == count.as_str() {
            Ok(report)
        } else {
            Err(format!("{report:#}"))
        }
    })
}

#[track_caller]
fn await_no_report(namespace: &Namespace<'_>) {
    eventually(PATIENCE, &format!("no report in {}", namespace.name()), || match report(namespace) {
        None => Ok(()),
        Some(report) => Err(format!("{report:#}")),
    });
}

/// The value of a metric, if it is exported.
fn counted(webhook: &Webhook, metric: &str) -> Option<u64> {
    let text = webhook.admin("/metrics").1.replace(r#"cluster="prod-eu","#, "").replace(r#"{cluster="prod-eu"}"#, "");
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("interlock_{metric} ")))?;
    line.parse().ok()
}

fn findings(webhook: &Webhook, mode: &str, verdict: &str) -> u64 {
    let labels = format!(r#"rule="manual-edit",mode="{mode}",verdict="{verdict}""#);
    counted(webhook, &format!("findings_total{{{labels}}}")).unwrap_or_default()
}

/// Three releases on a plane of the test's own, each under another mode of `manual-edit`.
struct Releases<'p> {
    plane: &'p Plane,
    enforced: Namespace<'p>,
    warned: Namespace<'p>,
    audited: Namespace<'p>,
}

impl<'p> Releases<'p> {
    fn new(plane: &'p Plane) -> Self {
        plane.define("tests/e2e/harness/crds/reports.yaml");
        let [enforced, warned, audited] = ["enforced", "warned", "audited"].map(|mode| release(plane, mode));
        Self { plane, enforced, warned, audited }
    }

    fn a_dry_run_is_answered_and_leaves_nothing(&self) {
        label(&self.enforced, "bob", &["--dry-run=server"]).expect_failure(&["[manual-edit]"]);
        label(&self.warned, "bob", &["--dry-run=server"]).expect_success();
        let webhook = self.plane.webhook();
        assert_eq!((findings(webhook, "enforce", "denied"), findings(webhook, "warn", "warned")), (0, 0));
    }

    /// However often the API server repeats the review. Returns the report.
    fn one_act_is_one_finding_in_every_sink(&self) -> Value {
        let (enforced, webhook) = (&self.enforced, self.plane.webhook());
        label(enforced, "bob", &[]).expect_failure(&["[manual-edit]"]);
        let refused =
            decisions(enforced).into_iter().filter(|decision| decision.verdict == "denied" && !decision.dry_run);
        let (repeats, news): (Vec<_>, Vec<_>) = refused.partition(|decision| decision.repeated);
        assert_eq!(news.len(), 1, "{news:#?}");
        assert_eq!(findings(webhook, "enforce", "denied"), 1);
        let repeated = repeats.len() as u64;
        assert_eq!(counted(webhook, "repeats_total").unwrap_or_default(), repeated, "{repeats:#?}");
        let event = await_event(enforced, 1);
        assert_eq!((&event["action"], &event["reason"]), (&"Refused".into(), &"ManualEdit".into()));
        let regarding = (&event["regarding"]["kind"], &event["regarding"]["name"], &event["related"]["name"]);
        assert_eq!(regarding, (&"Deployment".into(), &"demo".into(), &V1.into()));
        let described = enforced.kubectl("admin").ok(&["describe", "deployment/demo"]).stdout;
        assert!(described.contains("bob was denied"), "{described}");
        let written = await_report(enforced, 1);
        assert_eq!((&written["summary"]["fail"], &written["summary"]["warn"]), (&1.into(), &0.into()));
        assert_eq!(written["scope"]["name"], V1);
        assert_eq!(written["results"][0]["properties"]["verdict"], "denied");
        assert_eq!(written["results"][0]["properties"]["cluster"], "prod-eu");
        assert_eq!(event["metadata"]["annotations"]["interlock.dev/cluster"], "prod-eu");
        assert_eq!(written["results"][0]["resources"][0]["kind"], "Deployment");
        // The allowed neighbour leaves no trace.
        enforced.kubectl("bob").ok(&["label", "deployment/demo", "team=blue"]);
        written
    }

    /// It counts on the same Event and in the same result. Returns the report.
    fn another_change_is_folded_into_it(&self, written: &Value) -> Value {
        label(&self.enforced, "eve", &[]).expect_failure(&["[manual-edit]"]);
        await_event(&self.enforced, 2);
        let folded = await_report(&self.enforced, 2);
        assert_eq!(folded["metadata"]["uid"], written["metadata"]["uid"]);
        folded
    }

    fn warnings_and_audits_are_admitted_and_reported_apart(&self) {
        let (warned, audited, webhook) = (&self.warned, &self.audited, self.plane.webhook());
        let message = label(warned, "bob", &[]).expect_success().stderr;
        assert!(message.contains("Warning: interlock:"), "{message}");
        let silent = label(audited, "bob", &[]).expect_success().stderr;
        assert!(!silent.contains("interlock"), "{silent}");
        assert_eq!(await_event(warned, 1)["action"], "Warned");
        assert_eq!(await_event(audited, 1)["action"], "Audited");
        let (warning, failure) = (await_report(warned, 1), await_report(audited, 1));
        assert_eq!((&warning["summary"]["warn"], &warning["summary"]["fail"]), (&1.into(), &0.into()));
        assert_eq!((&failure["summary"]["fail"], &failure["summary"]["warn"]), (&1.into(), &0.into()));
        assert_eq!(failure["results"][0]["properties"]["verdict"], "would-deny");
        assert_eq!((findings(webhook, "warn", "warned"), findings(webhook, "audit", "would-deny")), (1, 1));
    }

    /// The log of `interlock adopt` is another one. It also reads the reports.
    fn adopt_says_what_was_reported(&self) {
        let (admin, log) = (self.plane.admin(), "tests/recordings/mapkubeapis.jsonl.gz");
        let log = Path::new(env!("CARGO_MANIFEST_DIR")).join(log);
        let [log, kubeconfig] = [log.as_path(), admin.kubeconfig()].map(|path| path.to_str().unwrap());
        let arguments = ["adopt", log, "--kubeconfig", kubeconfig, "-o", "json"];
        let metrics = self.plane.dir().join("metrics.txt");
        std::fs::write(&metrics, self.plane.webhook().admin("/metrics").1).unwrap();
        let arguments = [&arguments[..], &["--metrics", metrics.to_str().unwrap()]].concat();
        let report = run(self.plane.interlock(&admin, &arguments), PATIENCE).json();
        let counted = report["counted"].as_array().unwrap().iter();
        let counted: Vec<_> = counted.map(|it| format!("{} {} {}", it["rule"], it["verdict"], it["count"])).collect();
        assert!(counted.contains(&r#""manual-edit" "denied" 2"#.to_owned()), "{counted:?}");
        let reported = report["cluster"]["reported"].as_array().unwrap().iter();
        let mut reported: Vec<_> =
            reported.map(|it| format!("{} {} {}", it["verdict"], it["count"], it["accounts"])).collect();
        reported.sort();
        let wanted = [r#""denied" 2 ["bob"]"#, r#""warned" 1 ["bob"]"#, r#""would-deny" 1 ["bob"]"#];
        assert_eq!(reported, wanted, "{report}");
    }

    /// The leader has had several rounds since.
    fn a_report_that_has_not_changed_is_not_written_again(&self, folded: &Value) {
        let still = report(&self.enforced).expect("the report is still there");
        assert_eq!(still["metadata"]["resourceVersion"], folded["metadata"]["resourceVersion"]);
        let updates = counted(self.plane.webhook(), r#"report_writes_total{sink="reports",write="updated"}"#);
        assert_eq!(updates, Some(4));
    }

    /// The leader dies with an Event that it may not have reported. Another replica takes over from the reports and the
    /// Events. Returns that replica, which leads as long as it runs.
    fn the_report_goes_on_when_the_leader_is_killed(&self, written: &Value) -> Webhook {
        let (enforced, first) = (&self.enforced, self.plane.webhook());
        let second = Webhook::replica(self.plane, first.policies(), "second", ARGUMENTS).unwrap();
        self.the_page_of_any_replica_is_about_all(&second);
        label(enforced, "mallory", &[]).expect_failure(&["[manual-edit]"]);
        await_event(enforced, 3);
        first.kill();
        eventually(PATIENCE, "the second replica leads", || {
            if second.log().contains("\"leading\"") { Ok(()) } else { Err(second.log()) }
        });
        first.restart();
        label(enforced, "trudy", &[]).expect_failure(&["[manual-edit]"]);
        let kept = await_report(enforced, 4);
        assert_eq!(kept["metadata"]["uid"], written["metadata"]["uid"]);
        assert_eq!(kept["results"][0]["properties"]["first"], written["results"][0]["properties"]["first"]);
        second
    }

    /// The other replica has refused nothing itself. The Service is made up: the plane has no controller for EndpointSlices.
    fn the_page_of_any_replica_is_about_all(&self, other: &Webhook) {
        let admin = self.plane.kubectl(&self.plane.admin());
        admin.run(&["create", "namespace", "interlock-system"]);
        let endpoint = |pod: &str, ready: bool| {
            json!({"addresses": ["192.0.2.1"], "conditions": {"ready": ready}, "nodeName": "n1",
                "targetRef": {"kind": "Pod", "namespace": "interlock-system", "name": pod}})
        };
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "interlock-x", "namespace": "interlock-system",
                "labels": {"kubernetes.io/service-name": "interlock"}},
            "endpoints": [endpoint("interlock-a", true), endpoint("interlock-b", true), endpoint("interlock-c", false)],
        });
        admin.apply(&slice, &[]).expect_success();
        let namespace = self.enforced.name();
        let history = format!("/changes/{namespace}/demo");
        let wanted = [
            "Interlock · prod-eu",
            "2 of 3 ready",
            &format!("<b>UPDATE apps/v1 Deployment {namespace}/demo</b>"),
            "2 times · bob",
            &history,
        ];
        eventually(PATIENCE, "the page of the other replica", || match other.admin("/") {
            (200, html) if wanted.iter().all(|text| html.contains(text)) => Ok(()),
            other => Err(format!("{other:?}")),
        });
        let (status, html) = other.admin(&history);
        assert!(status == 200 && html.contains("<td>install</td><td>alice</td><td>demo-1.0.0</td>"), "{html}");
    }

    /// An uninstall removes the release's report. The results of the other releases expire.
    fn reports_go_with_their_release_and_with_time(&self) {
        self.enforced.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["uninstall", "demo"]);
        await_no_report(&self.enforced);
        await_no_report(&self.audited);
        await_no_report(&self.warned);
    }
}

#[test]
fn a_finding_is_counted_once_reported_kept_when_the_leader_dies_and_forgotten_in_time() {
    let plane = Plane::start_with(POLICY, ARGUMENTS);
    let releases = Releases::new(&plane);
    releases.a_dry_run_is_answered_and_leaves_nothing();
    let written = releases.one_act_is_one_finding_in_every_sink();
    let folded = releases.another_change_is_folded_into_it(&written);
    releases.warnings_and_audits_are_admitted_and_reported_apart();
    releases.adopt_says_what_was_reported();
    releases.a_report_that_has_not_changed_is_not_written_again(&folded);
    let second = releases.the_report_goes_on_when_the_leader_is_killed(&written);
    releases.reports_go_with_their_release_and_with_time();
    drop(second);
}
