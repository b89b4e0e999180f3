//! A freeze that begins while real clients are at work: what has started goes on, and nothing else starts.

use std::fs;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records;

const DRIVER: Driver = Driver::Secret;
const TEXT: &str = "the freeze sale is in force until";

/// From the start of the plane to the freeze: four releases are installed in it, and upgrades begin, which fail after it has begun.
const UNTIL_IT_BEGINS: SignedDuration = SignedDuration::from_secs(70);

/// Longer than that.
const WHILE: Duration = Duration::from_secs(120);

/// The shipped policy with a freeze that lasts longer than the test.
fn policy() -> String {
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    let begins = now + UNTIL_IT_BEGINS;
    let shown = |moment: Timestamp| moment.to_zoned(TimeZone::UTC).datetime();
    let freeze = format!(
        "freezes: [{{name: sale, reason: the sale, timeZone: UTC, from: {}, to: {}, namespaces: [freeze-*], \
         exempt: {{users: [bob]}}}}]",
        shown(begins),
        shown(begins + SignedDuration::from_hours(1))
    );
    format!("{}{freeze}\n", include_str!("../../../policies/cluster.yaml"))
}

#[test]
fn a_freeze_stops_what_would_start_and_nothing_that_has_started() {
    let (plane, chart) = (Plane::start(&policy()), Chart::new("demo"));
    let stuck = Namespace::new(&plane, "freeze-stuck");
    let owner = stuck.helm(HelmVersion::V4, DRIVER, "alice");
    owner.ok(&["install", "demo", chart.path()]);
    stuck.hang_pods();
    let fails = owner.spawn(&["upgrade", "demo", chart.path(), "--set=image=two", "--timeout=70s", "--wait"]);
    stuck.await_status(DRIVER, "demo", 2, "pending-upgrade");
    let running = [HelmVersion::V3, HelmVersion::V4].map(|version| {
        let namespace = Namespace::new(&plane, &format!("freeze-{version:?}").to_lowercase());
        let helm = namespace.helm(version, DRIVER, "alice");
        helm.ok(&["install", "demo", chart.path()]);
        namespace.hang_pods();
        // It fails in the freeze, and is rolled back there.
        let flags = ["--set=image=two", "--timeout=70s", "--wait", version.rollback_on_failure()];
        let upgrade = helm.spawn(&[&["upgrade", "demo", chart.path()][..], &flags[..]].concat());
        namespace.await_status(DRIVER, "demo", 2, "pending-upgrade");
        (namespace, helm, upgrade)
    });
    let frozen = Namespace::new(&plane, "freeze-rest");
    let alice = frozen.helm(HelmVersion::V4, DRIVER, "alice");
    alice.ok(&["install", "demo", chart.path()]);
    eventually(WHILE, "the freeze begins", || {
        let upgrade = alice.run(&["upgrade", "demo", chart.path()]);
        if upgrade.stderr.contains(TEXT) { Ok(()) } else { Err(upgrade.to_string()) }
    });
    // What fails in the freeze may be rolled back, and takes nothing with it that was deployed before.
    fails.wait(WHILE).expect_failure(&[]);
    let objects = stuck.objects_of_demo();
    owner.fails(&["uninstall", "demo"], &["failed to delete release"]);
    assert_eq!(stuck.objects_of_demo(), objects);
    stuck.ready_pods();
    owner.ok(&["rollback", "demo", "1"]);
    for (namespace, helm, upgrade) in running {
        eventually(WHILE, "the upgrade fails", || {
            let message = namespace.records(DRIVER, "demo");
            if message.iter().any(|record| record.body_status == "failed") {
                Ok(())
            } else {
                Err(records::summary(&message))
            }
        });
        namespace.ready_pods();
        let ended = upgrade.wait(WHILE);
        assert!(!ended.stderr.contains("[freeze]"), "{ended}");
        let message = namespace.records(DRIVER, "demo");
        assert_eq!(records::deployed(&message), 1, "{}", records::summary(&message));
        // The next one is a start.
        helm.fails(&["upgrade", "demo", chart.path()], &[TEXT, "(the sale)"]);
        helm.fails(&["rollback", "demo", "1"], &[TEXT]);
        // Helm says no more of it. An uninstall deletes nothing, also by an account that may delete objects of releases.
        let objects = namespace.objects_of_demo();
        for who in [plane.person("alice"), namespace.service_account("deployer")] {
            helm.by(&who).fails(&["uninstall", "demo"], &["failed to delete release"]);
            assert_eq!(namespace.objects_of_demo(), objects, "{}", who.user());
        }
        assert_eq!(records::deployed(&namespace.records(DRIVER, "demo")), 1);
        // What the release does not declare may be changed.
        namespace.kubectl("alice").ok(&["label", "deployment/demo", "team=blue"]);
        let exempt = namespace.helm(helm.version(), DRIVER, "bob");
        exempt.ok(&["upgrade", "demo", chart.path()]);
        exempt.ok(&["uninstall", "demo"]);
        assert_eq!(namespace.objects_of_demo(), Vec::<&str>::new());
    }
}

#[test]
fn the_freeze_of_a_namespace_keeps_what_its_releases_have_elsewhere() {
    const ROLE: &str =
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {{ .Release.Namespace }}\n";
    let (plane, chart) =
        (Plane::start(include_str!("../../../policies/cluster.yaml")), Chart::new("demo").template("role", ROLE));
    let namespace = Namespace::new(&plane, "own-freeze");
    let alice = namespace.helm(HelmVersion::V4, DRIVER, "alice");
    alice.ok(&["install", "demo", chart.path()]);
    let freeze = "freezes: [{name: own, reason: ours, timeZone: UTC, from: 2020-01-01, to: 2120-01-01}]";
    let text = format!("apiVersion: interlock.dev/v1alpha1\nkind: NamespacePolicy\n{freeze}\n");
    let directory = plane.webhook().policies().join("namespaces");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join(format!("{}.yaml", namespace.name())), text).unwrap();
    eventually(WHILE, "the freeze is in force", || {
        let upgrade = alice.run(&["upgrade", "demo", chart.path()]);
        if upgrade.stderr.contains("the freeze own is in force") { Ok(()) } else { Err(upgrade.to_string()) }
    });
    let role = format!("clusterrole/{}", namespace.name());
    let deployer = namespace.service_account("deployer");
    alice.by(&deployer).fails(&["uninstall", "demo"], &["failed to delete release"]);
    assert!(namespace.kubectl("admin").find(&[&role]).is_some());
    namespace.kubectl_as(&deployer).fails(&["delete", &role], &["[freeze]"]);
}
