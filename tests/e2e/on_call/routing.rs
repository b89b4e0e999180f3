//! What routes a finding to the right people: labels of its Namespace on the Event and the report, and the freeze that refused.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion, Kubectl};
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;

/// Longer than the labels of a Namespace are remembered.
const PATIENCE: Duration = Duration::from_secs(120);

const OWN: &str = "app.kubernetes.io/managed-by";

/// A policy that copies two labels, and freezes releases of one name from yesterday to tomorrow. Also says when the freeze ends.
fn policy() -> (String, Timestamp) {
    let (day, now) = (SignedDuration::from_hours(24), Timestamp::from_second(Timestamp::now().as_second()).unwrap());
    let shown = |moment: Timestamp| moment.to_zoned(TimeZone::UTC).datetime();
    let window = format!("from: {}, to: {}", shown(now - day), shown(now + day));
    let freezes = format!("freezes: [{{name: sale, reason: the sale, timeZone: UTC, {window}, releases: [frozen]}}]");
    let head = "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy";
    (format!("{head}\nreportLabels: [team, example.com/route]\n{freezes}\n"), now + day)
}

/// The Event of a rule, by its reason.
#[track_caller]
fn await_event(admin: &Kubectl, reason: &str) -> Value {
    eventually(PATIENCE, &format!("an Event {reason}"), || {
        let events = admin.get(&["events.events.k8s.io", "-l", &format!("{OWN}=interlock")])["items"].clone();
        let ours = events.as_array().unwrap().iter().find(|it| it["reason"] == reason);
        ours.cloned().ok_or_else(|| events.to_string())
    })
}

/// The report of a release.
#[track_caller]
fn await_report(admin: &Kubectl, release: &str) -> Value {
    eventually(PATIENCE, &format!("a report on {release}"), || {
        admin.find(&["reports.openreports.io", &format!("interlock-{release}")]).ok_or("there is none".to_owned())
    })
}

#[test]
fn events_and_reports_have_the_labels_of_their_namespace_and_name_the_freeze() {
    let (policy, ends) = policy();
    let plane = Plane::start_with(&policy, &["--report-round=1"]);
    plane.define("tests/e2e/harness/crds/reports.yaml");
    let (blue, bare) = (Namespace::new(&plane, "routing"), Namespace::new(&plane, "routing-bare"));
    let (admin, chart) = (blue.kubectl("admin"), Chart::new("demo"));
    let given = ["team=blue", "example.com/route=on-call", "cost=7", "app.kubernetes.io/managed-by=somebody"];
    admin.ok(&[&["label", "namespace", blue.name()], &given[..]].concat());
    for namespace in [&blue, &bare] {
        namespace.helm(HelmVersion::V4, Driver::Secret, "alice").ok(&["install", "demo", chart.path()]);
        namespace.kubectl("bob").fails(&["label", "deployment/demo", "--overwrite", "tier=bob"], &["[manual-edit]"]);
    }
    let wanted = json!({OWN: "interlock", "team": "blue", "example.com/route": "on-call"});
    assert_eq!(await_event(&admin, "ManualEdit")["metadata"]["labels"], wanted);
    let report = await_report(&admin, "demo");
    assert_eq!(report["metadata"]["labels"], wanted);
    assert_eq!(report["results"][0]["properties"]["freeze"], Value::Null);
    // Tools select by them.
    let found =
        plane.kubectl(&plane.admin()).get(&["reports.openreports.io", "-A", "-l", "team=blue"])["items"].clone();
    assert_eq!((found.as_array().unwrap().len(), &found[0]["metadata"]["uid"]), (1, &report["metadata"]["uid"]));
    // A Namespace without the labels.
    let admin_of_bare = bare.kubectl("admin");
    assert_eq!(await_event(&admin_of_bare, "ManualEdit")["metadata"]["labels"], json!({OWN: "interlock"}));
    assert_eq!(await_report(&admin_of_bare, "demo")["metadata"]["labels"], json!({OWN: "interlock"}));

    the_freeze_is_named(&blue, ends);
    a_label_that_changes_is_on_what_is_written_later(&blue);
}

fn the_freeze_is_named(namespace: &Namespace<'_>, ends: Timestamp) {
    let (admin, alice) = (namespace.kubectl("admin"), namespace.helm(HelmVersion::V4, Driver::Secret, "alice"));
    let chart = Chart::new("demo");
    alice.fails(&["install", "frozen", chart.path()], &["the freeze sale is in force until"]);
    let event = await_event(&admin, "Freeze");
    let message =
        ["freeze", "frozen-until"].map(|key| event["metadata"]["annotations"][format!("interlock.dev/{key}")].clone());
    assert_eq!(message, ["sale".into(), Value::from(ends.to_string())]);
    let properties = &await_report(&admin, "frozen")["results"][0]["properties"];
    assert_eq!((&properties["freeze"], &properties["frozenUntil"]), (&"sale".into(), &ends.to_string().into()));
    // The neighbour that is not frozen is upgraded.
    alice.ok(&["upgrade", "demo", chart.path()]);
}

fn a_label_that_changes_is_on_what_is_written_later(namespace: &Namespace<'_>) {
    let admin = namespace.kubectl("admin");
    admin.ok(&["label", "namespace", namespace.name(), "--overwrite", "team=green", "example.com/route-"]);
    let bob = namespace.kubectl("bob");
    eventually(PATIENCE, "the report has the new label", || {
        let tier = format!("tier=t{}", Timestamp::now().as_millisecond());
        bob.fails(&["label", "deployment/demo", "--overwrite", &tier], &["[manual-edit]"]);
        let labels = await_report(&admin, "demo")["metadata"]["labels"].clone();
        if labels == json!({OWN: "interlock", "team": "green"}) { Ok(()) } else { Err(labels.to_string()) }
    });
}
