//! `docs/moving.md`, as printed: Helm forgets a release, its objects stay, and a later upgrade takes them back.

use std::time::Duration;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::in_flight::impatient;
use crate::harness::namespace::Namespace;
use crate::harness::process::run;
use crate::harness::records::V2;

const PAGE: &str = include_str!("../../../docs/moving.md");
const DEADLINE: Duration = Duration::from_secs(60);

/// The command of a step on the page, for another namespace and another release.
fn step(number: usize, namespace: &str) -> Vec<String> {
    let row = PAGE.lines().find(|line| line.starts_with(&format!("| {number}. "))).expect("a step of the page");
    let command = row.rsplit('`').nth(1).expect("a command of the step");
    let command = command.replace("shop", namespace).replace("web", "demo");
    let (plain, reason) = command.split_once('"').unwrap_or((&command, ""));
    let words = plain.split_whitespace().map(str::to_owned);
    words.chain((!reason.is_empty()).then(|| reason.trim_end_matches('"').to_owned())).collect()
}

#[test]
fn helm_forgets_a_release_whose_objects_stay() {
    let plane = impatient();
    plane.define("manifests/base/releaseoverrides.yaml");
    for version in HelmVersion::ALL {
        let namespace = Namespace::new(plane, "moving");
        let (alice, chart) = (namespace.helm(version, Driver::Secret, "alice"), Chart::new("demo"));
        alice.ok(&["install", "demo", chart.path()]);
        alice.ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
        let admin = namespace.kubectl("admin");
        let delete = ["delete", "configmap/demo"];
        admin.fails(&["delete", "secret", V2], &["[record-deletion]", "Helm to forget it and keep its objects"]);
        admin.fails(&delete, &["[manual-delete]"]);
        let command = |number: usize| {
            let words = step(number, namespace.name());
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            match words[0] {
                "interlock" => run(plane.interlock(&plane.admin(), &words[1..]), DEADLINE),
                "kubectl" => admin.run(&words[1..]),
                other => panic!("{other} is no program of the tests"),
            }
        };
        eventually(DEADLINE, "the definition is served", || command(2).into_result());
        eventually(DEADLINE, "the override is known", || command(3).into_result());
        assert_eq!(namespace.records(Driver::Secret, "demo").len(), 0);
        admin.ok(&delete);
        command(4).expect_success();
        // Back to Helm.
        alice.ok(&["upgrade", "--install", "demo", chart.path(), "--take-ownership"]);
        admin.fails(&delete, &["[manual-delete]"]);
    }
}
