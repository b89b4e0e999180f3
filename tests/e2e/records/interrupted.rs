//! An upgrade was killed and its record deleted or unlocked: it must be finished before the next version is tried.

use std::time::Duration;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::in_flight::{impatient, killed_on_the_way_to, once_stale, policy, unlock};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::Output;
use crate::harness::records::{self, V1, V2};
use crate::harness::webhook::Webhook;
use crate::records::dead_between::supersede;

/// Longer than the leader's lease.
const SUCCESSION: Duration = Duration::from_secs(60);

/// Waits for the leader's note on the first record.
fn await_note(namespace: &Namespace<'_>, driver: Driver) {
    let kubectl = namespace.kubectl("admin");
    eventually(SUCCESSION, "the record that is left says what was interrupted", || {
        let record = kubectl.get(&[driver.resource(), V1]);
        let note = &record["metadata"]["annotations"]["interlock.dev/interrupted"];
        if note == "demo-2.0.0@2" { Ok(()) } else { Err(record["metadata"].to_string()) }
    });
}

/// Upgrades to a version, as alice.
fn upgrade(namespace: &Namespace<'_>, version: HelmVersion, driver: Driver, to: &str) -> Output {
    let chart = Chart::new("demo");
    chart.set_version(to);
    let helm = namespace.helm(version, driver, "alice");
    helm.run(&["upgrade", "demo", chart.path(), "--set=image=two", "--wait", "--timeout=60s"])
}

#[test]
fn another_version_is_refused_until_the_interrupted_one_is_deployed() {
    for (version, driver) in [(HelmVersion::V3, Driver::Secret), (HelmVersion::V4, Driver::ConfigMap)] {
        let namespace = killed_on_the_way_to("2.0.0", impatient(), "interrupted", version, driver, true);
        let kubectl = namespace.kubectl("bob");
        once_stale("bob deletes the stuck record", || kubectl.run(&["delete", driver.resource(), V2]));
        await_note(&namespace, driver);
        upgrade(&namespace, version, driver, "3.0.0").expect_failure(&[
            "[resume-interrupted]",
            "to demo-3.0.0: the upgrade to demo-2.0.0 (revision 2) was interrupted and never finished",
        ]);
        // Only the leader writes the note.
        let other = "interlock.dev/interrupted=demo-3.0.0@2";
        kubectl.ok(&["annotate", "--overwrite", driver.resource(), V1, other]);
        await_note(&namespace, driver);
        upgrade(&namespace, version, driver, "2.0.0").expect_success();
        upgrade(&namespace, version, driver, "3.0.0").expect_success();
        assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 superseded, 3 deployed");
    }
}

#[test]
fn an_upgrade_that_died_between_its_last_two_writes_is_remembered_too() {
    let (version, driver) = (HelmVersion::V4, Driver::Secret);
    let namespace = killed_on_the_way_to("2.0.0", impatient(), "between", version, driver, true);
    supersede(&namespace, driver);
    let kubectl = namespace.kubectl("bob");
    once_stale("bob deletes the stuck record", || kubectl.run(&["delete", "secret", V2]));
    // The only record that is left is superseded.
    await_note(&namespace, driver);
    let command = format!("`kubectl annotate secret -n {} {V1} interlock.dev/interrupted-`", namespace.name());
    upgrade(&namespace, version, driver, "3.0.0").expect_failure(&["[resume-interrupted]", "to demo-3.0.0", &command]);
    upgrade(&namespace, version, driver, "2.0.0").expect_success();
    upgrade(&namespace, version, driver, "3.0.0").expect_success();
    assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 superseded, 3 deployed");
}

#[test]
fn an_unlocked_operation_counts_as_interrupted_until_a_rollback() {
    let (version, driver) = (HelmVersion::V4, Driver::Secret);
    let namespace = killed_on_the_way_to("2.0.0", impatient(), "unlocked", version, driver, true);
    once_stale("bob unlocks", || unlock(&namespace, driver, "bob"));
    upgrade(&namespace, version, driver, "3.0.0").expect_failure(&["[resume-interrupted]", "demo-2.0.0 (revision 2)"]);
    namespace.helm(version, driver, "bob").ok(&["rollback", "demo", "1", "--wait", "--timeout=60s"]);
    upgrade(&namespace, version, driver, "3.0.0").expect_success();
}

#[test]
fn an_interrupted_operation_is_forgotten_when_its_note_is_removed() {
    let (version, driver) = (HelmVersion::V3, Driver::Secret);
    let namespace = killed_on_the_way_to("2.0.0", impatient(), "forgotten", version, driver, true);
    once_stale("bob unlocks", || unlock(&namespace, driver, "bob"));
    let note = format!("remove the annotation interlock.dev/interrupted from the record {V2}");
    upgrade(&namespace, version, driver, "3.0.0").expect_failure(&["[resume-interrupted]", &note]);
    namespace.kubectl("bob").ok(&["annotate", "secret", V2, "interlock.dev/interrupted-"]);
    upgrade(&namespace, version, driver, "3.0.0").expect_success();
}

#[test]
fn the_shipped_policy_only_warns_helm() {
    let namespace = Namespace::new(Plane::shared(), "warned");
    let (version, driver) = (HelmVersion::V4, Driver::Secret);
    let chart = Chart::new("demo");
    namespace.helm(version, driver, "alice").ok(&["install", "demo", chart.path(), "--wait", "--timeout=60s"]);
    namespace.hang_pods();
    chart.set_version("2.0.0");
    let helm = namespace.helm(version, driver, "alice");
    let running = helm.spawn(&["upgrade", "demo", chart.path(), "--set=image=two", "--wait"]);
    namespace.await_status(driver, "demo", 2, "pending-upgrade");
    running.kill();
    namespace.ready_pods();
    // Alice may unlock her own record. Its text says that she did so from elsewhere.
    unlock(&namespace, driver, "alice").expect_success();
    let upgraded = upgrade(&namespace, version, driver, "3.0.0").expect_success();
    let message = upgraded.stdout + &upgraded.stderr;
    assert!(message.contains("to demo-3.0.0: the upgrade to demo-2.0.0"), "expected a warning\n{message}");
    assert!(message.contains("[resume-interrupted]"), "expected the rule's name\n{message}");
}

#[test]
fn another_replica_leads_when_the_leader_is_killed() {
    let plane = &Plane::start(&policy("staleAfter: 3s"));
    let first = plane.webhook();
    let holder = || {
        let lease = plane.kubectl(&plane.admin()).get(&["lease/interlock-leader", "-n", "interlock-system"]);
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    };
    let led = eventually(SUCCESSION, "the first replica leads", || match holder() {
        nobody if nobody.is_empty() => Err("nobody leads".to_owned()),
        holder => Ok(holder),
    });
    let second = Webhook::replica(plane, first.policies(), "second", &[]).unwrap();
    let namespace = killed_on_the_way_to("2.0.0", plane, "succession", HelmVersion::V3, Driver::Secret, true);
    first.kill();
    let leads = eventually(SUCCESSION, "the second replica leads", || {
        let now = holder();
        if now == led || now.is_empty() { Err(format!("{now:?} leads\n{}", second.log())) } else { Ok(now) }
    });
    assert_ne!(leads, led);
    // The first replica is back but does not lead: the leader notes what it admits.
    first.restart();
    let kubectl = namespace.kubectl("bob");
    once_stale("bob deletes the stuck record", || kubectl.run(&["delete", "secret", V2]));
    await_note(&namespace, Driver::Secret);
    assert!(second.log().contains("noted an interrupted operation"), "{}", second.log());
    assert!(!first.log().contains("noted an interrupted operation"), "{}", first.log());
}
