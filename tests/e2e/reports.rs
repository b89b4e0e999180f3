//! What a finding leaves behind in the cluster: counted once, told by an Event, reported of its release by the leader, and gone
//! when its time is over.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::chart::Chart;
use crate::clients::{Driver, HelmVersion};
use crate::decisions::decisions;
use crate::eventually::eventually;
use crate::namespace::Namespace;
use crate::plane::Plane;
use crate::webhook::Webhook;

/// Longer than the leader needs to take over, and than a test wants to wait.
const ARGUMENTS: &[&str] = &["--report-retention=75", "--report-round=1"];

/// Longer than both of these.
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
fn label(namespace: &Namespace<'_>, tier: &str, more: &[&str]) -> crate::process::Output {
    let tier = format!("tier={tier}");
    let args = [&["label", "--overwrite", "deployment/demo", &tier], more].concat();
    namespace.kubectl("bob").run(&args)
}

/// Our Events of a namespace.
fn events(namespace: &Namespace<'_>) -> Vec<Value> {
    let all = namespace.kubectl("admin").get(&["events.events.k8s.io", "-l", "app.kubernetes.io/managed-by=interlock"]);
    all["items"].as_array().unwrap().clone()
}

/// How often the only Event of a namespace has happened, once it says so, with the Event.
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

/// The report of a namespace's release, once its only result counts so many.
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

/// The line of a metric, or nothing.
fn counted(webhook: &Webhook, metric: &str) -> Option<u64> {
    let (_, text) = webhook.admin("/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("interlock_{metric} ")))?;
    line.parse().ok()
}

fn findings(webhook: &Webhook, mode: &str, verdict: &str) -> u64 {
    let labels = format!(r#"rule="manual-edit",mode="{mode}",verdict="{verdict}""#);
    counted(webhook, &format!("findings_total{{{labels}}}")).unwrap_or_default()
}

#[test]
fn a_finding_is_counted_once_told_reported_kept_over_the_leaders_death_and_forgotten_in_time() {
    let plane = Plane::start_with(POLICY, ARGUMENTS);
    let first = plane.webhook();
    let admin = plane.kubectl(&plane.admin());
    let definition = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/crds/reports.yaml");
    admin.ok(&["apply", "-f", definition.to_str().expect("the checkout has a plain name")]);
    let (enforced, warned, audited) =
        (release(&plane, "enforced"), release(&plane, "warned"), release(&plane, "audited"));

    // A dry run gets its answer and leaves nothing.
    label(&enforced, "bob", &["--dry-run=server"]).expect_failure(&["[manual-edit]"]);
    label(&warned, "bob", &["--dry-run=server"]).expect_success();
    assert_eq!((findings(first, "enforce", "denied"), findings(first, "warn", "warned")), (0, 0));

    // One act is one finding in every sink, however often the API server asks.
    label(&enforced, "bob", &[]).expect_failure(&["[manual-edit]"]);
    let refused = decisions(&enforced).into_iter().filter(|decision| decision.verdict == "denied" && !decision.dry_run);
    let (repeats, news): (Vec<_>, Vec<_>) = refused.partition(|decision| decision.repeated);
    assert_eq!(news.len(), 1, "{news:#?}");
    assert_eq!(findings(first, "enforce", "denied"), 1);
    let repeated = repeats.len() as u64;
    assert_eq!(counted(first, "repeats_total").unwrap_or_default(), repeated, "{repeats:#?}");
    let event = await_event(&enforced, 1);
    assert_eq!((&event["action"], &event["reason"]), (&"Refused".into(), &"ManualEdit".into()));
    let regarding = (&event["regarding"]["kind"], &event["regarding"]["name"], &event["related"]["name"]);
    assert_eq!(regarding, (&"Deployment".into(), &"demo".into(), &"sh.helm.release.v1.demo.v1".into()));
    let described = enforced.kubectl("admin").ok(&["describe", "deployment/demo"]).stdout;
    assert!(described.contains("bob was denied"), "{described}");
    let written = await_report(&enforced, 1);
    assert_eq!((&written["summary"]["fail"], &written["summary"]["warn"]), (&1.into(), &0.into()));
    assert_eq!(written["scope"]["name"], "sh.helm.release.v1.demo.v1");
    assert_eq!(written["results"][0]["properties"]["verdict"], "denied");
    assert_eq!(written["results"][0]["resources"][0]["kind"], "Deployment");
    // The neighbour leaves no trace.
    enforced.kubectl("bob").ok(&["label", "deployment/demo", "team=blue"]);

    // Another change by the same hand is counted on the same Event and in the same result.
    label(&enforced, "eve", &[]).expect_failure(&["[manual-edit]"]);
    await_event(&enforced, 2);
    let folded = await_report(&enforced, 2);
    assert_eq!(folded["metadata"]["uid"], written["metadata"]["uid"]);

    // What only warns and what only records are told apart, and not refused.
    let told = label(&warned, "bob", &[]).expect_success().stderr;
    assert!(told.contains("Warning: interlock:"), "{told}");
    let silent = label(&audited, "bob", &[]).expect_success().stderr;
    assert!(!silent.contains("interlock"), "{silent}");
    assert_eq!(await_event(&warned, 1)["action"], "Warned");
    assert_eq!(await_event(&audited, 1)["action"], "Audited");
    let (warning, failure) = (await_report(&warned, 1), await_report(&audited, 1));
    assert_eq!((&warning["summary"]["warn"], &warning["summary"]["fail"]), (&1.into(), &0.into()));
    assert_eq!((&failure["summary"]["fail"], &failure["summary"]["warn"]), (&1.into(), &0.into()));
    assert_eq!(failure["results"][0]["properties"]["verdict"], "would-deny");
    assert_eq!((findings(first, "warn", "warned"), findings(first, "audit", "would-deny")), (1, 1));
    // Rounds have passed since, and nothing was written that had not changed.
    let still = report(&enforced).expect("the report is still there");
    assert_eq!(still["metadata"]["resourceVersion"], folded["metadata"]["resourceVersion"]);
    assert_eq!(counted(first, r#"report_writes_total{sink="reports",write="updated"}"#), Some(4));

    // The leader dies with an Event that it may not have reported of; another takes over from the reports and the Events.
    let second = Webhook::replica(&plane, first.policies(), "second", ARGUMENTS).unwrap();
    label(&enforced, "mallory", &[]).expect_failure(&["[manual-edit]"]);
    await_event(&enforced, 3);
    first.kill();
    eventually(PATIENCE, "the second replica leads", || {
        if second.log().contains("\"leading\"") { Ok(()) } else { Err(second.log()) }
    });
    first.restart();
    label(&enforced, "trudy", &[]).expect_failure(&["[manual-edit]"]);
    let kept = await_report(&enforced, 4);
    assert_eq!(kept["metadata"]["uid"], written["metadata"]["uid"]);
    assert_eq!(kept["results"][0]["properties"]["first"], written["results"][0]["properties"]["first"]);

    // A release that goes takes its report along; what is old falls out.
    enforced.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["uninstall", "demo"]);
    await_no_report(&enforced);
    await_no_report(&audited);
    await_no_report(&warned);
}
