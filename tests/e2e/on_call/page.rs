//! The page of `serve --page`, of a real cluster.

use std::time::Duration;

use serde_json::json;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::in_flight::{impatient, killed};
use crate::harness::process::run;

const SOON: Duration = Duration::from_secs(60);

#[test]
fn the_page_shows_a_killed_upgrade_with_its_next_step_a_freeze_an_override_and_refusals() {
    let plane = impatient();
    plane.define("manifests/base/releaseoverrides.yaml");
    let namespace = killed(plane, "page", HelmVersion::V3, Driver::Secret, false);
    let release = format!("{}/demo", namespace.name());
    let shows = |what: &str, wanted: &[&str]| {
        eventually(SOON, what, || match plane.webhook().admin("/") {
            (200, html) if wanted.iter().all(|text| html.contains(text)) => Ok(()),
            other => Err(format!("{other:?}")),
        });
    };
    // Its pods hang.
    let way = format!("helm rollback demo 1 -n {}", namespace.name());
    let next = format!("Next: <code>{way}</code>");
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
