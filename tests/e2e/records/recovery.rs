//! The ways out of an operation that died, before and after it counts as stuck.

use std::sync::OnceLock;
use std::time::Duration;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::forging;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::Output;
use crate::harness::records;

const V2: &str = "sh.helm.release.v1.demo.v2";

/// A plane on which an operation counts as stuck after three seconds, bob is only warned of his edits, and any service account
/// `corrector` is a manager.
pub(crate) fn impatient() -> &'static Plane {
    static PLANE: OnceLock<Plane> = OnceLock::new();
    PLANE.get_or_init(|| {
        let cases = "[{when: {users: [bob]}, mode: warn}, {when: {serviceAccounts: ['*']}, mode: audit}]";
        let policy = policy("staleAfter: 3s")
            .replace("\nrules:\n", &format!("\nrules:\n  manual-edit: {{cases: {cases}}}\n"))
            .replace("\nmanagers:\n", "\nmanagers:\n  - system:serviceaccount:*:corrector\n");
        Plane::start(&policy)
    })
}

/// The shipped policy with other settings of `pending-recovery`, and every rule over records enforced.
pub(crate) fn policy(recovery: &str) -> String {
    let shipped = include_str!("../../../policies/cluster.yaml");
    let (_, lists) = shipped.split_once("\nmanagers:").unwrap();
    format!(
        "apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nrules:\n  resume-interrupted: {{mode: enforce}}\n  pending-recovery: {{{recovery}}}\nmanagers:{lists}"
    )
}

/// A release whose upgrade to revision 2 was killed. Its pods become ready, unless they are to hang.
fn killed(
    plane: &'static Plane,
    test: &str,
    version: HelmVersion,
    driver: Driver,
    healthy: bool,
) -> Namespace<'static> {
    killed_on_the_way_to("1.0.0", plane, test, version, driver, healthy)
}

/// The same, where the upgrade brings in this version of the chart.
pub(crate) fn killed_on_the_way_to<'p>(
    chart_version: &str,
    plane: &'p Plane,
    test: &str,
    version: HelmVersion,
    driver: Driver,
    healthy: bool,
) -> Namespace<'p> {
    let namespace = Namespace::new(plane, test);
    let helm = namespace.helm(version, driver, "alice");
    let chart = Chart::new("demo");
    // With several replicas a rollout that hangs shows in the numbers: of one, the old pod stays available.
    helm.ok(&["install", "demo", chart.path(), "--set=replicas=4", "--wait", "--timeout=60s"]);
    namespace.hang_pods();
    chart.set_version(chart_version);
    let upgrade = helm.spawn(&["upgrade", "demo", chart.path(), "--set=replicas=4,image=two", "--wait"]);
    namespace.await_status(driver, "demo", 2, "pending-upgrade");
    // The record is there before the objects are: let it get to its wait.
    eventually(Duration::from_secs(60), "the upgrade has changed the Deployment", || {
        let image = namespace.kubectl("admin").get(&["deployment", "demo"]);
        let image = image["spec"]["template"]["spec"]["containers"][0]["image"].to_string();
        if image.contains("two") { Ok(()) } else { Err(image) }
    });
    upgrade.kill();
    if healthy {
        namespace.ready_pods();
        namespace.await_available("demo");
    }
    namespace
}

/// Tries until an act that waits for staleness passes; every refusal before that must be of `pending-recovery`.
pub(crate) fn once_stale(what: &str, mut act: impl FnMut() -> Output) {
    eventually(Duration::from_secs(60), what, || {
        let output = act();
        if !output.success() {
            assert!(output.stderr.contains("[pending-recovery]"), "expected only pending-recovery to refuse\n{output}");
        }
        output.into_result()
    });
}

#[test]
fn a_fresh_operation_is_neither_rolled_back_over_nor_deleted_nor_unlocked() {
    for (version, driver) in [(HelmVersion::V3, Driver::Secret), (HelmVersion::V4, Driver::ConfigMap)] {
        let namespace = killed(Plane::shared(), "fresh", version, driver, true);
        for person in ["alice", "bob"] {
            namespace.helm(version, driver, person).fails(
                &["rollback", "demo", "1"],
                &["denied the request", "[pending-recovery]", "held by alice for", "admitted 15 min after its start"],
            );
            let kubectl = namespace.kubectl(person);
            kubectl.fails(&["delete", driver.resource(), V2], &["[pending-recovery]", "may be alive", "after 15 min"]);
        }
        unlock(&namespace, driver, "bob").expect_failure(&["[pending-recovery]", "held by alice"]);
        assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 deployed, 2 pending-upgrade");
        // The holder may: it is what helm does when it fails. After that everything is open.
        unlock(&namespace, driver, "alice").expect_success();
        namespace.helm(version, driver, "bob").ok(&["rollback", "demo", "1", "--wait", "--timeout=60s"]);
        assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 failed, 3 deployed");
    }
}

/// Writes `failed` over the pending record, as Flux and scripts do.
pub(crate) fn unlock(namespace: &Namespace<'_>, driver: Driver, person: &str) -> Output {
    let kubectl = namespace.kubectl(person);
    let mut record = kubectl.get(&[driver.resource(), V2]);
    forging::edit(&mut record, driver, |body| {
        body["info"]["status"] = "failed".into();
        body["info"]["description"] = "Release unlocked from stale 'pending-upgrade' state".into();
    });
    record["metadata"]["labels"]["status"] = "failed".into();
    kubectl.with_file("replace", &record, &[])
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
fn a_stale_record_over_an_unhealthy_workload_stays() {
    let namespace = killed(impatient(), "stale-unhealthy", HelmVersion::V3, Driver::Secret, false);
    let kubectl = namespace.kubectl("bob");
    eventually(Duration::from_secs(60), "only the workload is left to complain about", || {
        let refused = kubectl.run(&["delete", "secret", V2]).expect_failure(&["[pending-recovery]"]);
        let workload = refused.stderr.contains(&format!("Deployment {}/demo", namespace.name()));
        if workload && !refused.stderr.contains("may be alive") { Ok(()) } else { Err(refused.to_string()) }
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
