//! After a change of the API server's encryption configuration, an administrator replaces every Secret unchanged.

use std::time::Duration;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::forging;
use crate::harness::in_flight::kill_uninstall;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records::{self, V2};

const DRIVER: Driver = Driver::Secret;

#[test]
fn secrets_are_replaced_unchanged_whatever_the_status_of_a_record_and_helm_goes_on() {
    for version in HelmVersion::ALL {
        let namespace = Namespace::new(Plane::shared(), "encryption");
        let (alice, bob) = (namespace.helm(version, DRIVER, "alice"), namespace.helm(version, DRIVER, "bob"));
        let (chart, leaving, gone) = (Chart::new("demo"), Chart::new("leaving"), Chart::new("gone"));
        alice.ok(&["install", "leaving", leaving.path()]);
        kill_uninstall(&namespace, &alice, "leaving");
        bob.ok(&["install", "gone", gone.path()]);
        bob.ok(&["uninstall", "gone", "--keep-history"]);
        alice.ok(&["install", "demo", chart.path()]);
        alice.ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
        namespace.hang_pods();
        let upgrade = alice.spawn(&["upgrade", "demo", chart.path(), "--set=image=three", "--wait", "--timeout=60s"]);
        namespace.await_status(DRIVER, "demo", 3, "pending-upgrade");

        let releases = ["demo", "leaving", "gone"];
        let read = |release: &str| {
            let records = namespace.records(DRIVER, release);
            records.into_iter().map(|it| (it.label_status, it.annotations, it.body)).collect::<Vec<_>>()
        };
        let admin = namespace.kubectl("admin");
        let (before, all) = (releases.map(read), admin.get(&["secrets"]));
        admin.with_file("replace", &all, &[]).expect_success();
        assert_eq!(releases.map(read), before, "a record has changed, or lost its holder");

        // An edit among them is refused as ever.
        let mut record = admin.get(&["secret", V2]);
        forging::edit(&mut record, DRIVER, |body| body["manifest"] = "---\n".into());
        admin.with_file("replace", &record, &[]).expect_failure(&["denied the request", "[record-tampering]"]);
        alice.ok(&["uninstall", "leaving"]);
        assert!(namespace.records(DRIVER, "leaving").is_empty());
        namespace.ready_pods();
        upgrade.wait(Duration::from_secs(90)).expect_success();
        assert_eq!(records::summary(&namespace.records(DRIVER, "demo")), "1 superseded, 2 superseded, 3 deployed");
    }
}
