//! helm died after it superseded the old revision and before it deployed the new one: no record is deployed.

use std::time::Duration;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::forging;
use crate::harness::in_flight::{impatient, killed, killed_on_the_way_to, once_stale, policy};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records::{self, V1, V2};

const RUN: [&str; 4] = ["--set=replicas=4,image=two", "--wait", "--timeout=60s", "--history-max=10"];

/// helm's last write before it died, under alice's name.
#[track_caller]
pub(super) fn supersede(namespace: &Namespace<'_>, driver: Driver) {
    let kubectl = namespace.kubectl("alice");
    let mut record = kubectl.get(&[driver.resource(), V1]);
    forging::edit(&mut record, driver, |body| body["info"]["status"] = "superseded".into());
    record["metadata"]["labels"]["status"] = "superseded".into();
    kubectl.with_file("replace", &record, &[]).expect_success();
    assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 pending-upgrade");
}

/// Upgrades as bob.
#[track_caller]
fn expect_upgrade(namespace: &Namespace<'_>, version: HelmVersion, driver: Driver) {
    let chart = Chart::new("demo");
    namespace.helm(version, driver, "bob").ok(&[&["upgrade", "demo", chart.path()], &RUN[..]].concat());
    assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 deployed");
}

#[test]
fn once_stale_the_dead_record_is_deleted_and_the_upgrade_goes_on_from_the_superseded_one() {
    for (version, driver) in [(HelmVersion::V3, Driver::ConfigMap), (HelmVersion::V4, Driver::Secret)] {
        let namespace = killed(impatient(), "dead-between", version, driver, true);
        supersede(&namespace, driver);
        let kubectl = namespace.kubectl("bob");
        once_stale("bob deletes the stuck record", || kubectl.run(&["delete", driver.resource(), V2]));
        // The record that is left is the only one to upgrade from.
        kubectl.fails(&["delete", driver.resource(), V1], &["denied the request", "[record-deletion]"]);
        expect_upgrade(&namespace, version, driver);
    }
}

#[test]
fn a_first_install_that_died_is_deleted_once_stale_and_installed_anew() {
    let (version, driver) = (HelmVersion::V4, Driver::Secret);
    let namespace = Namespace::new(impatient(), "dead-install");
    let (chart, alice) = (Chart::new("demo"), namespace.helm(version, driver, "alice"));
    namespace.hang_pods();
    let install = alice.spawn(&["install", "demo", chart.path(), "--wait"]);
    namespace.await_status(driver, "demo", 1, "pending-install");
    // helm writes the record before the objects.
    namespace.await_image("demo", "registry.invalid/app:1");
    install.kill();
    namespace.ready_pods();
    namespace.await_available("demo");
    let kubectl = namespace.kubectl("bob");
    once_stale("bob deletes the stuck record", || kubectl.run(&["delete", "secret", V1]));
    namespace.helm(version, driver, "bob").ok(&["install", "demo", chart.path(), "--wait", "--timeout=60s"]);
    assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 deployed");
}

#[test]
fn where_only_rolling_forward_is_allowed_each_refusal_names_a_way_that_is_open() {
    let plane = Plane::start(&policy("staleAfter: 3s, rollForwardOnly: true"));
    let (version, driver) = (HelmVersion::V3, Driver::Secret);
    let namespace = killed_on_the_way_to("1.0.0", &plane, "forward", version, driver, true);
    supersede(&namespace, driver);
    let (bob, kubectl) = (namespace.helm(version, driver, "bob"), namespace.kubectl("bob"));
    let named = format!("Once it counts as stuck, run `interlock unstick {}/demo`", namespace.name());
    bob.fails(&["rollback", "demo", "1"], &["[pending-recovery]", &named]);
    eventually(Duration::from_secs(60), "the way that the refusal names is open", || {
        let output = kubectl.run(&["delete", "secret", V2]);
        assert!(!output.stderr.contains("roll back"), "expected no way that is closed\n{output}");
        output.into_result()
    });
    expect_upgrade(&namespace, version, driver);
    // After a failed upgrade the way is another upgrade.
    let chart = Chart::new("demo");
    bob.run(&["upgrade", "demo", chart.path(), "--set=breakApply=true"]).expect_failure(&[]);
    bob.fails(&["rollback", "demo", "2"], &["[pending-recovery]", "Upgrade to a version that fixes the release"]);
    bob.ok(&["upgrade", "demo", chart.path(), "--set=image=three"]);
    assert_eq!(records::deployed(&namespace.records(driver, "demo")), 1);
}
