//! Operations in flight: some hang, some were killed, and some are ended by another user.

use std::sync::OnceLock;
use std::time::Duration;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, Helm, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::forging;
use crate::harness::gate::Gate;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::Output;
use crate::harness::records::V2;

/// How long an operation may take once nothing blocks it.
const WHILE: Duration = Duration::from_secs(60);

/// A plane where an operation counts as stuck after three seconds, bob's edits only cause warnings, every service
/// account `corrector` is a manager, releases called `frozen` are frozen, and the user `damage` may damage records.
pub(crate) fn impatient() -> &'static Plane {
    static PLANE: OnceLock<Plane> = OnceLock::new();
    PLANE.get_or_init(|| {
        let cases = "[{when: {users: [bob]}, mode: warn}]";
        let freeze = "{name: stock-taking, reason: we count <all>, timeZone: Europe/Berlin, from: 2026-01-01, to: 2099-01-01, \
                      releases: [frozen]}";
        let damage = "{cases: [{when: {users: [damage]}, mode: audit}]}";
        let more = format!(
            "  manual-edit: {{cases: {cases}}}\n  record-integrity: {damage}\n  record-tampering: {damage}\nfreezes: [{freeze}]\n\
             managers: ['system:serviceaccount:*:corrector']\n"
        );
        let policy = policy("staleAfter: 3s") + &more;
        Plane::start_with(&policy, &["--page"])
    })
}

/// The shipped policy with other settings for `pending-recovery`. Every rule over records is enforced.
pub(crate) fn policy(recovery: &str) -> String {
    let shipped = include_str!("../../../policies/cluster.yaml");
    format!("{shipped}rules:\n  resume-interrupted: {{mode: enforce}}\n  pending-recovery: {{{recovery}}}\n")
}

/// A release whose upgrade to revision 2 was killed. Its pods become ready if `healthy`, and hang otherwise.
pub(crate) fn killed(
    plane: &'static Plane,
    test: &str,
    version: HelmVersion,
    driver: Driver,
    healthy: bool,
) -> Namespace<'static> {
    killed_on_the_way_to("1.0.0", plane, test, version, driver, healthy)
}

/// Like `killed`, where the upgrade is to this version of the chart.
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
    // A rollout that hangs shows only with several replicas: of one, the old pod stays available.
    helm.ok(&["install", "demo", chart.path(), "--set=replicas=4", "--wait", "--timeout=60s"]);
    namespace.hang_pods();
    chart.set_version(chart_version);
    let upgrade = helm.spawn(&["upgrade", "demo", chart.path(), "--set=replicas=4,image=two", "--wait"]);
    namespace.await_status(driver, "demo", 2, "pending-upgrade");
    // helm writes the record before the objects. Wait until it waits for pods.
    namespace.await_image("demo", "two");
    upgrade.kill();
    if healthy {
        namespace.ready_pods();
        namespace.await_available("demo");
    }
    namespace
}

/// Alice's uninstall of revision 1, killed when its record says `uninstalling` and its objects are still there.
#[track_caller]
pub(crate) fn kill_uninstall(namespace: &Namespace<'_>, alice: &Helm, release: &str) {
    let gate = Gate::new(namespace, "alice");
    // The first write is to the record, and the second deletes an object.
    let hold = gate.hold(2);
    let mut uninstall = alice.spawn(&["uninstall", release]);
    assert!(hold.reached_by(&mut uninstall), "the uninstall ended before it deleted an object");
    uninstall.kill();
    gate.open();
    namespace.await_status(alice.driver(), release, 1, "uninstalling");
}

/// Repeats an act until the operation is stale and the act passes. Until then only `pending-recovery` may refuse it.
pub(crate) fn once_stale(what: &str, mut act: impl FnMut() -> Output) {
    eventually(Duration::from_secs(60), what, || {
        let output = act();
        if !output.success() {
            assert!(output.stderr.contains("[pending-recovery]"), "expected only pending-recovery to refuse\n{output}");
        }
        output.into_result()
    });
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

/// Alice's upgrade to revision 2 waits for pods that hang; bob acts on the release; then the pods become ready.
pub(crate) fn during_an_upgrade(
    test: &str,
    version: HelmVersion,
    driver: Driver,
    act: impl FnOnce(&Namespace<'_>, &Helm, &Chart),
) -> (Namespace<'static>, Output) {
    during_an_upgrade_on(Plane::shared(), test, version, driver, act)
}

/// The same on another plane.
pub(crate) fn during_an_upgrade_on(
    plane: &'static Plane,
    test: &str,
    version: HelmVersion,
    driver: Driver,
    act: impl FnOnce(&Namespace<'_>, &Helm, &Chart),
) -> (Namespace<'static>, Output) {
    let namespace = Namespace::new(plane, test);
    let alice = namespace.helm(version, driver, "alice");
    let chart = Chart::new("demo");
    alice.ok(&["install", "demo", chart.path(), "--wait", "--timeout=60s"]);
    namespace.hang_pods();
    let upgrade = alice.spawn(&["upgrade", "demo", chart.path(), "--set=image=two", "--wait", "--timeout=50s"]);
    namespace.await_status(driver, "demo", 2, "pending-upgrade");
    let bob = alice.by(&namespace.plane().person("bob"));
    act(&namespace, &bob, &chart);
    namespace.ready_pods();
    let ended = upgrade.wait(WHILE);
    (namespace, ended)
}
