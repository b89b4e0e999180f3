//! helm killed at every step of an upgrade with hooks: afterwards the documented way out works, and no other.

use std::collections::VecDeque;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::harness::chart::{Chart, HookKind, When};
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::gate::Gate;
use crate::harness::in_flight::policy;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records::{self, V2};

/// Long enough to see on a busy machine that a fresh operation is guarded, short enough to wait for.
const STALE: Duration = Duration::from_secs(20);

/// More steps than any upgrade of this chart has.
const MANY: usize = 40;

/// Cases run in parallel: they spend most of their time waiting.
const SIDE_BY_SIDE: usize = 6;

fn plane() -> &'static Plane {
    static PLANE: OnceLock<Plane> = OnceLock::new();
    PLANE.get_or_init(|| Plane::start(&policy(&format!("staleAfter: {}s", STALE.as_secs()))))
}

#[test]
fn helm_3_killed_at_every_step_of_an_upgrade() {
    every_step(HelmVersion::V3);
}

#[test]
fn helm_4_killed_at_every_step_of_an_upgrade() {
    every_step(HelmVersion::V4);
}

/// Kills at step 1, 2, 3 ... until an upgrade has no such step, and collects the records that each kill leaves behind.
fn every_step(version: HelmVersion) {
    let steps = Mutex::new((1..MANY).collect::<VecDeque<_>>());
    let endings = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                loop {
                    let Some(step) = steps.lock().unwrap().pop_front() else { break };
                    match killed_at(version, step) {
                        Some(ending) => endings.lock().unwrap().push((step, ending)),
                        // The upgrade ended before this step.
                        None => steps.lock().unwrap().clear(),
                    }
                }
            });
        }
    });
    let mut endings = endings.into_inner().unwrap();
    endings.sort();
    let left: Vec<_> = endings.iter().map(|(_, ending)| ending.as_str()).collect();
    let numbered: Vec<_> = endings.iter().map(|(step, ending)| format!("step {step}: {ending}")).collect();
    // Every state that a dead upgrade can leave behind was met.
    for state in ["1 deployed", "1 deployed, 2 pending-upgrade", "1 superseded, 2 pending-upgrade"] {
        assert!(left.contains(&state), "no step left {state:?} behind:\n{}", numbered.join("\n"));
    }
    assert!(endings.len() >= 9, "only these steps were killed at:\n{}", numbered.join("\n"));
}

/// Kills an upgrade during its n-th write and tries the ways out. Returns the records that the kill left behind, or
/// `None` if the upgrade has no such write.
fn killed_at(version: HelmVersion, step: usize) -> Option<String> {
    let namespace = Namespace::new(plane(), &format!("kill-{step}"));
    let (alice, bob) =
        (namespace.helm(version, Driver::Secret, "alice"), namespace.helm(version, Driver::Secret, "bob"));
    let chart =
        Chart::new("demo").hook(When::PreUpgrade, HookKind::ConfigMap).hook(When::PostUpgrade, HookKind::ConfigMap);
    alice.ok(&["install", "demo", chart.path()]);
    let gate = Gate::new(&namespace, "alice");
    let hold = gate.hold(step);
    let mut upgrade = alice.spawn(&["upgrade", "demo", chart.path(), "--set=note=two,image=two"]);
    if !hold.reached_by(&mut upgrade) {
        upgrade.wait(Duration::from_secs(60)).expect_success();
        return None;
    }
    let since = Instant::now();
    upgrade.kill();
    gate.open();
    let before = records::summary(&namespace.records(Driver::Secret, "demo"));
    if before == "1 deployed" {
        // No operation was started, so nothing blocks the next.
        bob.ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
        return Some(before);
    }
    let kubectl = namespace.kubectl("bob");
    bob.fails(&["upgrade", "demo", chart.path()], &["another operation (install/upgrade/rollback) is in progress"]);
    bob.fails(&["rollback", "demo", "1"], &["[pending-recovery]"]);
    kubectl.fails(&["delete", "secret", V2], &["[pending-recovery]"]);
    assert!(since.elapsed() < STALE, "this machine is too slow: the operation was stale before it could be guarded");
    namespace.await_available("demo");

    // Both ways are open whether helm died before it superseded the old revision or after.
    if step.is_multiple_of(2) {
        // The runbook's way: delete the record and run the upgrade again.
        eventually(STALE * 3, "the stuck record is deleted", || kubectl.run(&["delete", "secret", V2]).into_result());
        bob.ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
        assert_eq!(records::summary(&namespace.records(Driver::Secret, "demo")), "1 superseded, 2 deployed");
        return Some(before);
    }
    // Helm's way.
    eventually(STALE * 3, "the rollback is admitted", || bob.run(&["rollback", "demo", "1"]).into_result());
    let after = records::summary(&namespace.records(Driver::Secret, "demo"));
    assert_eq!(after, "1 superseded, 2 pending-upgrade, 3 deployed");
    Some(before)
}
