//! The page of `serve --page`, of a real cluster.

use std::time::Duration;

use serde_json::json;

use crate::harness::applications::{Application, Sync, define};
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::in_flight::{impatient, killed};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::run;

const SOON: Duration = Duration::from_secs(60);

#[track_caller]
fn shows(plane: &Plane, what: &str, wanted: &[&str]) {
    eventually(SOON, what, || match plane.webhook().admin("/") {
        (200, html) if wanted.iter().all(|text| html.contains(text)) => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

#[test]
fn the_page_shows_a_killed_upgrade_with_its_next_step_a_freeze_an_override_and_refusals() {
    let plane = impatient();
    plane.define("manifests/base/releaseoverrides.yaml");
    let namespace = killed(plane, "page", HelmVersion::V3, Driver::Secret, false);
    let release = format!("{}/demo", namespace.name());
    let shows = |what: &str, wanted: &[&str]| shows(plane, what, wanted);
    // Its pods hang.
    let way = format!("helm rollback demo 1 -n {}", namespace.name());
    let next = format!("Next: <code class=\"command\">{way}</code>");
    let title = format!("<b>{release}</b> <span class=\"severity\">stuck</span>");
    shows("the killed upgrade is stuck", &[&title, "pending-upgrade, revision 2, held by <b>", &next]);
    let policies = format!("--policies={}", plane.dir().join("policies").display());
    let status = run(plane.interlock(&plane.person("alice"), &["status", &release, &policies]), SOON);
    assert!(status.stdout.contains(&way), "{status}");

    // A user whose edits the policy of this plane refuses.
    let admin = namespace.kubectl("admin");
    let edit = |note: &str| {
        let patch = json!({"data": {"note": note}}).to_string();
        admin.run(&["patch", "configmap/demo", "--type=merge", "-p", &patch])
    };
    edit("refused").expect_failure(&["denied the request"]);
    shows("the refusal", &[&format!("UPDATE v1 ConfigMap {release}"), "admin"]);

    let until = "Frozen until 2099-01-01 00:00 Europe/Berlin: we count &lt;all&gt;</p>";
    shows("the freeze", &["<b>stock-taking</b> <span class=\"severity\">in force</span>", until, "releases frozen"]);
    let (alice, chart) = (namespace.helm(HelmVersion::V4, Driver::Secret, "alice"), Chart::new("demo"));
    alice.fails(&["install", "frozen", chart.path()], &["the freeze stock-taking is in force until"]);
    shows("the refusal of a start", &["the freeze stock-taking is in force until", ">freeze</span>"]);

    let rules = ["--rule", "manual-edit", "--rule", "foreign-edit-in-transition"];
    let args = [&["override", &release, "--for", "30m", "--reason", "INC-7 <b>"][..], &rules].concat();
    run(plane.interlock(&plane.person("alice"), &args), SOON).expect_success();
    shows(
        "the override",
        &["INC-7 &lt;b&gt;", "suspends manual-edit, foreign-edit-in-transition for all users until "],
    );
    // The neighbouring act passes, and is not shown as a refusal.
    edit("allowed").expect_success();
}

#[test]
fn the_page_shows_a_sync_with_its_next_step_and_what_was_refused_around_it() {
    let plane = impatient();
    define(plane);
    let namespace = Namespace::new(plane, "page-sync");
    let shop = Application::new(&namespace, json!({}), Sync::Client);
    let (alice, bob) = (namespace.kubectl("alice"), namespace.kubectl("bob"));
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"mode": "one"}});
    shop.apply(&config).expect_success();
    shop.list(&[("", "ConfigMap", "web")]);
    let sync = json!({"operation": {"sync": {"revision": "main"}}});
    shop.patch(&bob, &sync).expect_success();
    shop.begins();
    let place = namespace.name();
    let title = format!("<b>Application {place}/shop</b> <span class=\"severity\">stuck</span>");
    let next = format!("interlock unstick -n {place} app/shop");
    shows(
        plane,
        "the sync is stuck",
        &[
            "Operations of Applications",
            &title,
            "held by <b>bob</b> for ",
            &format!("Next: <code class=\"command\">{next}</code>"),
        ],
    );
    let policies = format!("--policies={}", plane.dir().join("policies").display());
    let status = run(plane.interlock(&plane.person("alice"), &["status", "-n", place, &policies]), SOON);
    assert!(status.stdout.contains(&next), "{status}");

    shop.orphan();
    shows(plane, "it is interrupted", &[&title, "<p>interrupted, held by <b>bob</b>"]);
    shop.patch(&bob, &sync).expect_failure(&["its last sync was interrupted"]);
    alice
        .run(&["patch", "configmap/web", "--type=merge", "-p", r#"{"data":{"mode":"two"}}"#])
        .expect_failure(&["[manual-edit]"]);
    let refused = [
        format!(
            "UPDATE argoproj.io/v1alpha1 Application {place}/shop</b> <span class=\"severity\">concurrent-operation"
        ),
        format!("UPDATE v1 ConfigMap {place}/web</b> <span class=\"severity\">manual-edit"),
        format!("Argo CD&#39;s Application {place}/shop"),
    ];
    shows(plane, "the refusals", &refused.each_ref().map(String::as_str));
}
