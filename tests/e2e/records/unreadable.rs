//! A record that nobody can read: what helm does over it, and the way out.

use std::time::Duration;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, Helm, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::in_flight::impatient;
use crate::harness::namespace::Namespace;
use crate::harness::process::run;
use crate::harness::records::{self, V1, V2};

const DEADLINE: Duration = Duration::from_secs(60);

/// Two revisions of a release, and a payload of the second that is no base64 inside.
fn damaged(test: &str, version: HelmVersion, driver: Driver) -> (Namespace<'static>, Helm, Chart) {
    let namespace = Namespace::new(impatient(), test);
    let (alice, chart) = (namespace.helm(version, driver, "alice"), Chart::new("demo"));
    alice.ok(&["install", "demo", chart.path()]);
    alice.ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
    let kubectl = namespace.kubectl_as(&namespace.plane().named("damage", &["system:masters"]));
    let mut record = kubectl.get(&[driver.resource(), V2]);
    record["data"]["release"] = if driver == Driver::Secret { "Kg==".into() } else { "*".into() };
    kubectl.with_file("replace", &record, &[]).expect_success();
    (namespace, alice, chart)
}

#[test]
fn helm_passes_over_a_record_that_nobody_can_read_until_it_is_deleted() {
    for (version, driver) in [(HelmVersion::V3, Driver::Secret), (HelmVersion::V4, Driver::ConfigMap)] {
        let (namespace, alice, chart) = damaged("unreadable", version, driver);
        let reads = ["nobody can read the record of revision 2, the newest", "interlock unstick", "which keeps a copy"];
        alice.fails(&["upgrade", "demo", chart.path()], &reads);
        alice.fails(&["rollback", "demo", "1"], &reads);
        let record = format!("{}/{V2}", driver.resource());
        // The neighbour: a record that can be read, and that the release starts from.
        eventually(DEADLINE, "the record is stale", || {
            namespace.kubectl("bob").run(&["delete", &record]).into_result()
        });
        let older = format!("{}/{V1}", driver.resource());
        namespace.kubectl("bob").fails(&["delete", &older], &["[record-deletion]"]);
        alice.ok(&["upgrade", "demo", chart.path(), "--set=note=three"]);
        let left = namespace.records(driver, "demo");
        assert_eq!(records::summary(&left), "1 superseded, 2 deployed");
    }
}

#[test]
fn status_scan_and_unstick_say_the_same_of_it_and_a_copy_is_kept() {
    let (namespace, alice, _) = damaged("unreadable-cli", HelmVersion::V4, Driver::Secret);
    let plane = namespace.plane();
    let bob = plane.person("bob");
    let interlock = |args: &[&str]| run(plane.interlock(&bob, args), DEADLINE);
    let release = format!("{}/demo", namespace.name());
    let fresh = interlock(&["unstick", &release, "--yes"]);
    let policies = tempfile::tempdir().unwrap();
    std::fs::write(policies.path().join("cluster.yaml"), crate::harness::in_flight::policy("staleAfter: 3s")).unwrap();
    let policies = ["--policies", policies.path().to_str().unwrap()];
    assert!(!fresh.success() && fresh.stdout.contains("may still be running"), "{fresh}");
    eventually(DEADLINE, "the record is stale", || {
        let status = interlock(&[&["status", &release], &policies[..]].concat());
        let says = ["cannot be decoded", &format!("interlock unstick {release}")];
        if says.iter().all(|text| status.stdout.contains(text)) { Ok(()) } else { Err(status.to_string()) }
    });
    let scan = interlock(&[&["scan", "-n", namespace.name(), "--bodies", "all"], &policies[..]].concat());
    // The table wraps its texts.
    let printed = scan.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let says = ["unreadable-record", &format!("interlock unstick {release}")];
    assert!(says.iter().all(|text| printed.contains(text)), "{scan}");
    let unstuck = interlock(&[&["unstick", &release, "--yes"], &policies[..]].concat());
    assert!(unstuck.success() && unstuck.stdout.contains("A copy is kept in Secret "), "{unstuck}");
    let copies = namespace.kubectl("bob").get(&["secrets", "-l", "interlock.dev/copy=record"]);
    assert_eq!(copies["items"].as_array().unwrap().len(), 1, "{copies:#}");
    // Helm sees revision 1, which is superseded, and goes on from it; here it takes the release away.
    alice.ok(&["uninstall", "demo"]);
    assert_eq!(namespace.records(Driver::Secret, "demo").len(), 0);
}
