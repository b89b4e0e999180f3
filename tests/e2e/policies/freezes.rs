//! A freeze that begins while real clients are at work: what has started goes on, and nothing else starts.

use std::fs;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::harness::addon_controller::{AddonController, install, managing};
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::controllers::{account, operator_controller};
use crate::harness::eventually::eventually;
use crate::harness::helm_releases::{define, helm_release, installed};
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
fn policy(begins: Timestamp) -> String {
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
    let begins = Timestamp::from_second(Timestamp::now().as_second()).unwrap() + UNTIL_IT_BEGINS;
    let (plane, chart) = (Plane::start(&policy(begins)), Chart::new("demo"));
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
    // The clock of the webhook may be a little behind.
    await_time("the freeze begins", begins + SignedDuration::from_secs(2));
    alice.fails(&["upgrade", "demo", chart.path()], &[TEXT]);
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

fn await_time(what: &str, time: Timestamp) {
    eventually(WHILE, what, || {
        let left = time.duration_since(Timestamp::now());
        if left.is_negative() { Ok(()) } else { Err(format!("{left:#} are left")) }
    });
}

/// Operations that a declaration starts: commits of Sveltos, revisions of OLM, and what makes Flux uninstall.
#[test]
fn no_declaration_starts_an_operation_in_a_freeze() {
    let from = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let freeze = format!(
        "freezes: [{{name: sale, reason: the sale, timeZone: UTC, from: {from}, to: 2100-01-01, namespaces: [frozen-*]}}]"
    );
    let plane = Plane::start(&format!("{}{freeze}\n", include_str!("../../../policies/cluster.yaml")));
    define(&plane);
    let addon_controller = install(&plane);
    let frozen = Namespace::new(&plane, "frozen-declared");
    let text = "the freeze sale is in force until 2100-01-01";

    let mut shop = AddonController::new(&frozen, &addon_controller, &["web"]);
    shop.stage("web", 1);
    shop.report(&[managing("web")]);
    shop.commit_with(&json!({"dryRun": true})).expect_success();
    shop.terminate();
    shop.stage("web", 1);
    shop.commit().expect_failure(&["would change cluster", text, "[freeze]"]);

    // A HelmRelease of a release from before the freeze: Flux keeps what a suspended one has.
    let bob = frozen.kubectl("bob");
    let object = helm_release(frozen.name(), "site", json!({}));
    bob.with_file("create", &object, &[]).expect_success();
    installed(&frozen, "site", &frozen);
    let delete = ["delete", "helmrelease/site", "--dry-run=server"];
    bob.fails(&delete, &["Flux would uninstall release", text, "[freeze]"]);
    let elsewhere = r#"{"spec":{"releaseName":"other"}}"#;
    bob.fails(&["patch", "helmrelease/site", "--type=merge", "-p", elsewhere], &[text, "[freeze]", "[retarget]"]);
    frozen.kubectl_as(&account(&plane, "flux-system", "kustomize-controller")).ok(&delete);
    bob.ok(&["patch", "helmrelease/site", "--type=merge", "-p", r#"{"spec":{"suspend":true}}"#]);
    bob.ok(&delete);

    // An extension whose objects are in a frozen namespace.
    let olm = frozen.kubectl_as(&operator_controller(&plane));
    let extension = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": frozen.name()},
        "spec": {
            "namespace": frozen.name(), "serviceAccount": {"name": "installer"},
            "source": {"sourceType": "Catalog", "catalog": {"packageName": "web"}},
        },
    });
    bob.with_file("create", &extension, &[]).expect_success();
    let revision = |extension: &str| {
        let labels = json!({"olm.operatorframework.io/owner-name": extension});
        json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": format!("{extension}-1"), "labels": labels},
            "spec": {"lifecycleState": "Active", "revision": 1},
        })
    };
    let dry_run = ["--dry-run=server"];
    olm.with_file("create", &revision(frozen.name()), &dry_run).expect_failure(&[text, "[freeze]"]);
    olm.with_file("create", &revision("another"), &dry_run).expect_success();
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
