//! Two people change one release at the same time.

use std::time::Duration;

use crate::harness::clients::{Driver, Helm, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::forging;
use crate::harness::in_flight::{during_an_upgrade, during_an_upgrade_on, impatient};
use crate::harness::records::{self, V2};

/// Runs a test for both helms and both drivers.
fn everywhere(test: impl Fn(HelmVersion, Driver)) {
    for version in HelmVersion::ALL {
        for driver in Driver::ALL {
            test(version, driver);
        }
    }
}

#[test]
fn a_rollback_during_an_upgrade_is_refused_and_the_upgrade_ends_as_if_nothing_had_happened() {
    everywhere(|version, driver| {
        let (namespace, upgrade) = during_an_upgrade("race-rollback", version, driver, |namespace, bob, _| {
            let reasons =
                ["denied the request", "[pending-recovery]", "pending-upgrade, revision 2, held by alice for"];
            bob.fails(&["rollback", "demo", "1"], &reasons);
            let records = namespace.records(driver, "demo");
            assert_eq!(records::summary(&records), "1 deployed, 2 pending-upgrade");
        });
        upgrade.expect_success();
        let records = namespace.records(driver, "demo");
        assert_eq!(records::summary(&records), "1 superseded, 2 deployed");
        // The allowed neighbour: the same rollback, once no operation is in flight.
        namespace.helm(version, driver, "bob").ok(&["rollback", "demo", "1", "--wait", "--timeout=60s"]);
        assert_eq!(records::deployed(&namespace.records(driver, "demo")), 1);
    });
}

#[test]
fn a_second_upgrade_by_a_client_that_does_not_look_is_refused() {
    let driver = Driver::Secret;
    let (namespace, upgrade) = during_an_upgrade("race-upgrade", HelmVersion::V4, driver, |namespace, _, _| {
        // helm itself refuses before it writes, but other clients may not look.
        let kubectl = namespace.kubectl("bob");
        let mut record = kubectl.get(&["secret", V2]);
        forging::copy(&mut record, driver, 3, "pending-upgrade");
        let refused = kubectl.with_file("create", &record, &[]).expect_failure(&["[concurrent-operation]"]);
        assert!(refused.stderr.contains("held by alice"), "{refused}");
    });
    upgrade.expect_success();
    let records = namespace.records(driver, "demo");
    assert_eq!(records::summary(&records), "1 superseded, 2 deployed");
}

/// Bob uninstalls as soon as alice's upgrade counts as stuck, although it is only slow.
#[track_caller]
fn uninstall_once_stuck(bob: &Helm, args: &[&str]) {
    let args = [&["uninstall", "demo"], args].concat();
    eventually(Duration::from_secs(40), "bob uninstalls", || bob.run(&args).into_result());
}

#[test]
fn a_reinstall_over_an_upgrade_that_is_only_slow_leaves_one_deployed_record() {
    everywhere(|version, driver| {
        let (namespace, upgrade) =
            during_an_upgrade_on(impatient(), "race-reinstall", version, driver, |namespace, bob, chart| {
                uninstall_once_stuck(bob, &["--keep-history"]);
                namespace.ready_pods();
                bob.ok(&["install", "demo", chart.path(), "--replace", "--wait", "--timeout=60s"]);
                // Alice's upgrade can continue: its objects exist again.
            });
        let records = namespace.records(driver, "demo");
        assert_eq!(records::with_status(&records, "deployed"), [3], "{}\n{upgrade}", records::summary(&records));
    });
}

#[test]
fn a_new_install_is_not_overwritten_by_an_upgrade_of_the_life_before() {
    everywhere(|version, driver| {
        let (namespace, upgrade) =
            during_an_upgrade_on(impatient(), "race-purge", version, driver, |namespace, bob, chart| {
                uninstall_once_stuck(bob, &[]);
                namespace.ready_pods();
                bob.ok(&["install", "demo", chart.path(), "--set=note=new", "--wait", "--timeout=60s"]);
            });
        let records = namespace.records(driver, "demo");
        assert_eq!(records::summary(&records), "1 deployed", "{upgrade}");
        assert_eq!(records[0].body["config"]["note"], "new", "the record is the new install's\n{upgrade}");
    });
}
