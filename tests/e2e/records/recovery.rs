//! The ways out of an operation whose client died, before and after it counts as stuck.

use std::time::Duration;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::in_flight::{impatient, killed, once_stale, unlock};
use crate::harness::plane::Plane;
use crate::harness::records::{self, V2};

#[test]
fn a_fresh_operation_is_neither_rolled_back_over_nor_deleted_nor_unlocked() {
    for (version, driver) in [(HelmVersion::V3, Driver::Secret), (HelmVersion::V4, Driver::ConfigMap)] {
        let namespace = killed(Plane::shared(), "fresh", version, driver, true);
        for person in ["alice", "bob"] {
            namespace.helm(version, driver, person).fails(
                &["rollback", "demo", "1"],
                &[
                    "denied the request",
                    "[pending-recovery]",
                    "held by alice for",
                    "you can roll back 15 min after it started",
                ],
            );
            let kubectl = namespace.kubectl(person);
            kubectl.fails(
                &["delete", driver.resource(), V2],
                &["[pending-recovery]", "may still be running", "after 15 min"],
            );
        }
        unlock(&namespace, driver, "bob").expect_failure(&["[pending-recovery]", "held by alice"]);
        assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 deployed, 2 pending-upgrade");
        // The holder may unlock it: helm does so when it fails. Then every way out is open.
        unlock(&namespace, driver, "alice").expect_success();
        namespace.helm(version, driver, "bob").ok(&["rollback", "demo", "1", "--wait", "--timeout=60s"]);
        assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 failed, 3 deployed");
    }
}

#[test]
fn a_stale_operation_is_rolled_back_over() {
    for version in HelmVersion::ALL {
        let namespace = killed(impatient(), "stale-rollback", version, Driver::Secret, true);
        let bob = namespace.helm(version, Driver::Secret, "bob");
        once_stale("bob rolls back", || bob.run(&["rollback", "demo", "1", "--wait", "--timeout=60s"]));
        let summary = records::summary(&namespace.records(Driver::Secret, "demo"));
        assert_eq!(summary, "1 superseded, 2 pending-upgrade, 3 deployed");
    }
}

#[test]
fn a_stale_record_over_a_healthy_workload_is_deleted_and_the_upgrade_runs_again() {
    for (version, driver) in [(HelmVersion::V3, Driver::Secret), (HelmVersion::V4, Driver::ConfigMap)] {
        let namespace = killed(impatient(), "stale-delete", version, driver, true);
        let kubectl = namespace.kubectl("bob");
        once_stale("bob deletes the stuck record", || kubectl.run(&["delete", driver.resource(), V2]));
        let chart = Chart::new("demo");
        let helm = namespace.helm(version, driver, "bob");
        helm.ok(&["upgrade", "demo", chart.path(), "--set=image=two", "--wait", "--timeout=60s"]);
        assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 deployed");
    }
}

#[test]
fn a_stale_record_over_an_unhealthy_workload_cannot_be_deleted() {
    let namespace = killed(impatient(), "stale-unhealthy", HelmVersion::V3, Driver::Secret, false);
    let kubectl = namespace.kubectl("bob");
    eventually(Duration::from_secs(60), "only the workload is left to complain about", || {
        let refused = kubectl.run(&["delete", "secret", V2]).expect_failure(&["[pending-recovery]"]);
        let workload = refused.stderr.contains(&format!("Deployment {}/demo", namespace.name()));
        if workload && !refused.stderr.contains("may still be running") { Ok(()) } else { Err(refused.to_string()) }
    });
    namespace.ready_pods();
    namespace.await_available("demo");
    kubectl.ok(&["delete", "secret", V2]);
}

#[test]
fn a_stale_operation_is_unlocked_by_anyone() {
    let namespace = killed(impatient(), "stale-unlock", HelmVersion::V4, Driver::Secret, true);
    once_stale("bob unlocks", || unlock(&namespace, Driver::Secret, "bob"));
    let chart = Chart::new("demo");
    let helm = namespace.helm(HelmVersion::V4, Driver::Secret, "bob");
    helm.ok(&["upgrade", "demo", chart.path(), "--wait", "--timeout=60s"]);
    assert_eq!(records::summary(&namespace.records(Driver::Secret, "demo")), "1 superseded, 2 failed, 3 deployed");
}
