//! Overrides that need a ticket: refused without one, shown with it wherever they are used, kept for a time and then deleted.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion, Kubectl};
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::{Output, run};

/// Longer than a pass of the leader, the retention, and the reload of a policy.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long an expired override is kept here.
const RETENTION: SignedDuration = SignedDuration::from_secs(15);

const PATTERN: &str = "  reasonPattern: '\\b(OPS|CHG)-[0-9]+\\b'\n  reasonExample: 'OPS-1234: roll back the image'\n";

/// The shipped policy with a short retention.
fn policy() -> String {
    format!("{}overrides:\n  retainExpired: 15s\n", include_str!("../../../policies/cluster.yaml"))
}

/// `interlock override` by alice for the release `demo`.
fn open(namespace: &Namespace<'_>, args: &[&str]) -> Output {
    let plane = namespace.plane();
    let release = format!("{}/demo", namespace.name());
    let asked = ["override", &release, "--rule", "manual-edit"];
    run(plane.interlock(&plane.person("alice"), &[&asked[..], args].concat()), Duration::from_secs(60))
}

/// An edit of a declared field.
fn edit(kubectl: &Kubectl, note: &str) -> Output {
    let patch = json!({"data": {"note": note}}).to_string();
    kubectl.run(&["patch", "configmap/demo", "--type=merge", "-p", &patch])
}

fn stored(namespace: &Namespace<'_>) -> Vec<Value> {
    let all = namespace.kubectl("alice").get(&["releaseoverrides"]);
    all["items"].as_array().unwrap().clone()
}

#[test]
fn an_override_needs_its_ticket_shows_it_everywhere_and_is_deleted_in_time() {
    let plane = Plane::audited_with(&policy(), &["--report-round=1"]);
    plane.define("tests/e2e/harness/crds/reports.yaml");
    plane.define("manifests/base/releaseoverrides.yaml");
    let namespace = Namespace::new(&plane, "tickets");
    namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "demo", Chart::new("demo").path()]);
    let bob = namespace.kubectl("bob");
    an_override_from_before_stays_open(&namespace, &bob);

    let example = "for example \"OPS-1234: roll back the image\"";
    let message = ["failed to create the override", example, r"must match `\b(OPS|CHG)-[0-9]+\b`"];
    for bare in [&["--reason", "incident 8"][..], &["--reason", "incident 8", "--ticket", "OPS-8"]] {
        open(&namespace, &[&["--for", "20s"][..], bare].concat()).expect_failure(&message);
    }
    assert_eq!(stored(&namespace), Vec::<Value>::new());
    edit(&bob, "without").expect_failure(&["[manual-edit]"]);

    let kept = ["--for", "4h", "--reason", "OPS-13: a long one", "--ticket", "INC-1", "--user", "nobody", "-o", "json"];
    let kept = open(&namespace, &kept).expect_success().json();
    let asked = ["--for", "20s", "--reason", "fix for OPS-12", "--ticket", "CHG-7", "--user", "bob"];
    let made = open(&namespace, &asked).expect_success().stdout;
    assert!(made.contains("  ticket   CHG-7\n"), "{made}");
    let short = stored(&namespace).into_iter().find(|it| it["metadata"]["name"] != kept["metadata"]["name"]).unwrap();
    let admitted = edit(&bob, "with").expect_success();
    assert!(admitted.stderr.contains("CHG-7)"), "{admitted}");
    the_ticket_is_in_every_trace(&namespace, short["metadata"]["name"].as_str().unwrap());
    an_expired_one_is_deleted_and_no_other(&namespace, &short, &kept);
    every_write_of_the_webhook_names_its_program(&plane);
}

/// The policy gets its pattern while an override is open that would not be created any more.
fn an_override_from_before_stays_open(namespace: &Namespace<'_>, bob: &Kubectl) {
    let before = open(namespace, &["--for", "4h", "--reason", "incident 7", "-o", "json"]).expect_success();
    let before = before.json();
    let file = namespace.plane().webhook().policies().join("cluster.yaml");
    fs::write(&file, format!("{}{PATTERN}", policy())).unwrap();
    eventually(PATIENCE, "the pattern is in force", || {
        let asked = open(namespace, &["--for", "20s", "--reason", "incident 8", "--dry-run"]);
        if asked.stderr.contains("OPS-1234") { Ok(()) } else { Err(asked.to_string()) }
    });
    edit(bob, "before").expect_success();
    let name = before["metadata"]["name"].as_str().unwrap();
    namespace.kubectl("alice").ok(&["delete", "releaseoverrides", name]);
    eventually(PATIENCE, "it is closed", || {
        let refused = edit(bob, &format!("after {:?}", Timestamp::now()));
        if refused.stderr.contains("[manual-edit]") { Ok(()) } else { Err(refused.to_string()) }
    });
}

fn the_ticket_is_in_every_trace(namespace: &Namespace<'_>, name: &str) {
    let (plane, admin) = (namespace.plane(), namespace.kubectl("admin"));
    let (log, used) = (plane.webhook().log(), format!("\"overridden\":\"{}/{name}\"", namespace.name()));
    assert!(log.lines().any(|line| line.contains(&used) && line.contains("\"ticket\":\"CHG-7\"")), "{used}\n{log}");
    let event = eventually(PATIENCE, "an Event shows the ticket", || {
        let events = admin.get(&["events.events.k8s.io"])["items"].clone();
        let ours = events
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["metadata"]["annotations"]["interlock.dev/ticket"] == "CHG-7");
        ours.cloned().ok_or_else(|| events.to_string())
    });
    let note = format!("The override {}/{name} (ticket CHG-7) allowed bob to do this: ", namespace.name());
    assert!(event["note"].as_str().unwrap().starts_with(&note), "{event:#}");
    eventually(PATIENCE, "the report shows the ticket", || {
        let report = admin.find(&["reports.openreports.io", "interlock-demo"]).ok_or("there is no report")?;
        let results = report["results"].as_array().cloned().unwrap_or_default();
        let used = results.iter().find(|it| it["properties"]["verdict"] == "overridden");
        let ticket = used.map(|it| it["properties"]["ticket"].clone());
        if ticket == Some("CHG-7".into()) { Ok(()) } else { Err(format!("{report:#}")) }
    });
    eventually(PATIENCE, "the audit log shows the ticket", || {
        let log = audit_events(plane);
        let mut edits = log
            .iter()
            .filter(|event| event["user"]["username"] == "bob" && event["objectRef"]["resource"] == "configmaps");
        // The API server puts the name of the webhook before each key.
        let value = |event: &Value, key: &str| {
            let annotations = event["annotations"].as_object()?;
            annotations.iter().find(|(name, _)| name.ends_with(key)).map(|(_, value)| value.clone())
        };
        let of_override = Some(format!("{}/{name}", namespace.name()).into());
        let shown = edits
            .any(|event| value(event, "/override") == of_override && value(event, "/ticket") == Some("CHG-7".into()));
        if shown { Ok(()) } else { Err(format!("{log:#?}")) }
    });
    let release = format!("{}/demo", namespace.name());
    let status = run(plane.interlock(&plane.person("alice"), &["status", &release]), PATIENCE);
    assert!(status.stdout.contains(": OPS-13: a long one (ticket INC-1)"), "{status}");
}

/// Also in the audit log, which has the user agent beside the user.
fn every_write_of_the_webhook_names_its_program(plane: &Plane) {
    let agents = |user: &str| -> BTreeSet<String> {
        let events = audit_events(plane).into_iter().filter(|event| event["user"]["username"] == user);
        events.map(|event| event["userAgent"].to_string()).collect()
    };
    let ours = concat!("\"interlock/v", env!("CARGO_PKG_VERSION"), "\"").to_owned();
    assert_eq!(agents("system:serviceaccount:interlock-system:interlock"), BTreeSet::from([ours.clone()]));
    assert!(agents("alice").contains(&ours), "`interlock override` by alice");
}

/// The audit log so far. Its last line may be incomplete.
fn audit_events(plane: &Plane) -> Vec<Value> {
    let log = fs::read_to_string(plane.audit_log()).expect("the audit log");
    log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The one that expired is deleted, and not before its retention. The other one is not due.
fn an_expired_one_is_deleted_and_no_other(namespace: &Namespace<'_>, short: &Value, kept: &Value) {
    let name = short["metadata"]["name"].as_str().unwrap();
    eventually(PATIENCE, "the expired override is deleted", || {
        let names: Vec<_> = stored(namespace).iter().map(|it| it["metadata"]["name"].to_string()).collect();
        if names.iter().any(|it| it.contains(name)) { Err(names.join(" ")) } else { Ok(()) }
    });
    let left: Vec<_> = stored(namespace).iter().map(|it| it["metadata"]["uid"].clone()).collect();
    assert_eq!(left, [kept["metadata"]["uid"].clone()]);
    let line = eventually(PATIENCE, "the leader logs the deletion", || {
        let log = namespace.plane().webhook().log();
        let line = log.lines().find(|line| line.contains("\"deleted an expired object\"") && line.contains(name));
        line.and_then(|line| serde_json::from_str::<Value>(line).ok()).ok_or(log)
    });
    assert_eq!(
        (&line["release"], &line["created_by"], &line["ticket"]),
        (&"demo".into(), &"alice".into(), &"CHG-7".into())
    );
    let time = |value: &Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
    let due = time(&short["spec"]["expiresAt"]).checked_add(RETENTION).unwrap();
    assert!(time(&line["timestamp"]) >= due, "{line:#} before {due}");
}
