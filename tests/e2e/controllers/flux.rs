//! Flux's helm-controller in front of the webhook: its transitions cause no finding.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::controllers::{Flux, establish_kinds, failed, helm_controller, reached};
use crate::harness::decisions::{decisions, expect_findings_only_of};
use crate::harness::eventually::eventually;
use crate::harness::helm_releases::{self, SERVED, installed, shared};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records;

const ROLLOUT: Duration = Duration::from_secs(60);
const REFUSED: &str = "selector";

#[track_caller]
fn expect_records(namespace: &Namespace<'_>, release: &str, summary: &str) {
    assert_eq!(records::summary(&namespace.records(Driver::Secret, release)), summary);
}

/// Kills an upgrade that waits for pods, after it has changed the Deployment.
#[track_caller]
fn killed_upgrade(flux: &Flux, records: &Namespace<'_>, objects: &Namespace<'_>, chart: &Chart, revision: u32) {
    objects.hang_pods();
    let upgrade = flux.clone().waiting(ROLLOUT * 5).spawn(chart, &json!({"image": "killed"}));
    records.await_status(Driver::Secret, "demo", revision, "pending-upgrade");
    objects.await_image("demo", "killed");
    upgrade.kill();
    objects.ready_pods();
}

/// The resource versions of the records, which change with every write.
fn versions(namespace: &Namespace<'_>) -> Vec<Value> {
    let list = namespace.kubectl("admin").get(&["secret", "-l", "owner=helm"]);
    list["items"].as_array().unwrap().iter().map(|record| record["metadata"]["resourceVersion"].clone()).collect()
}

/// The HelmRelease that `Flux` plays: a failed install or upgrade is retried for ever.
fn helm_release() -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "demo"},
        "spec": {
            "interval": "1m", "timeout": "1m", "chartRef": {"kind": "OCIRepository", "name": "demo"},
            "install": {"strategy": {"name": "RetryOnFailure"}}, "upgrade": {"strategy": {"name": "RetryOnFailure"}},
            "driftDetection": {"mode": "enabled"},
        },
    })
}

#[test]
fn flux_lives_a_whole_life_with_retry_on_failure() {
    let namespace = Namespace::new(Plane::shared(), "flux-life");
    establish_kinds(namespace.plane());
    let controller = helm_controller(namespace.plane());
    namespace.kubectl("bob").apply(&helm_release(), &[]).expect_success();
    let flux = Flux::new(&controller, &namespace, "demo").origin(&namespace, "demo");
    let waiting = flux.clone().waiting(ROLLOUT);
    let chart = Chart::new("demo");
    reached(waiting.reconcile(&chart, &json!({})), "install 1 deployed");
    let deployment = namespace.kubectl("admin").get(&["deployment", "demo"]);
    assert_eq!(deployment["metadata"]["labels"]["helm.toolkit.fluxcd.io/namespace"], namespace.name());

    let broken = json!({"note": "two", "breakApply": true});
    failed(flux.reconcile(&chart, &broken), "upgrade 2 failed", &[REFUSED]);
    failed(flux.reconcile(&chart, &broken), "upgrade 3 failed", &[REFUSED]);
    chart.set_version("1.1.0");
    let fixed = json!({"note": "three"});
    reached(waiting.reconcile(&chart, &fixed), "upgrade 4 deployed");
    expect_records(&namespace, "demo", "1 superseded, 2 failed, 3 failed, 4 deployed");
    let before = versions(&namespace);
    reached(flux.reconcile(&chart, &fixed), "");
    assert_eq!(versions(&namespace), before, "a release in sync has no writes");

    killed_upgrade(&flux, &namespace, &namespace, &chart, 5);
    reached(waiting.reconcile(&chart, &fixed), "unlock 5 failed, upgrade 6 deployed");
    let records = namespace.records(Driver::Secret, "demo");
    assert_eq!(records::summary(&records), "2 failed, 3 failed, 4 superseded, 5 failed, 6 deployed");
    assert_eq!(records[3].body["info"]["description"], "Release unlocked from stale 'pending-upgrade' state");
    assert_eq!(records[4].annotations["interlock.dev/holder"], controller.user());

    // A service account is audited where a person is refused.
    let bot = namespace.service_account("bot");
    let drift = namespace.kubectl_as(&bot);
    drift.ok(&["set", "image", "deployment/demo", "app=drifted:1"]);
    drift.ok(&["delete", "service/demo"]);
    namespace.kubectl("bob").fails(&["set", "image", "deployment/demo", "app=bob:1"], &["[manual-edit]"]);
    let before = versions(&namespace);
    let correcting = flux.clone().correcting_drift();
    let corrected = reached(correcting.reconcile(&chart, &fixed), "correct-drift 6 deployed");
    assert_eq!(corrected.actions[0].objects, ["Service/demo", "Deployment/demo"]);
    reached(correcting.reconcile(&chart, &fixed), "");
    assert_eq!(versions(&namespace), before, "drift is corrected without a record");

    reached(flux.uninstall(), "uninstall");
    expect_records(&namespace, "demo", "");
    let left = namespace.kubectl("admin").find(&["deployment", "demo"]);
    assert!(left.is_none(), "{left:?}");
    expect_findings_only_of(&namespace, &[bot.user(), "bob"]);
}

#[test]
fn flux_remediates_a_failed_install_and_a_failed_upgrade() {
    let namespace = Namespace::new(Plane::shared(), "flux-remediate");
    let flux = Flux::new(&helm_controller(namespace.plane()), &namespace, "demo").remediating();
    let chart = Chart::new("demo");
    let broken = json!({"note": "two", "breakApply": true});
    failed(flux.reconcile(&chart, &broken), "install 1 failed, uninstall", &[REFUSED]);
    expect_records(&namespace, "demo", "");
    reached(flux.reconcile(&chart, &json!({})), "install 1 deployed");
    failed(flux.reconcile(&chart, &broken), "upgrade 2 failed, rollback 3 deployed", &[REFUSED]);
    reached(flux.reconcile(&chart, &json!({"note": "two"})), "upgrade 4 deployed");
    expect_records(&namespace, "demo", "1 superseded, 2 failed, 3 superseded, 4 deployed");
    reached(flux.uninstall(), "uninstall");
    expect_findings_only_of(&namespace, &[]);
}

#[test]
fn flux_as_a_tenant_keeps_records_and_objects_apart() {
    let (storage, target) = (Namespace::new(shared(), "flux-storage"), Namespace::new(shared(), "flux-target"));
    let tenant = storage.service_account("tenant");
    let flux = Flux::new(&helm_controller(storage.plane()), &storage, "demo")
        .target(&target)
        .origin(&storage, "demo")
        .impersonating(&tenant);
    let waiting = flux.clone().waiting(ROLLOUT);
    let chart = Chart::new("demo");
    reached(waiting.reconcile(&chart, &json!({})), "install 1 deployed");
    failed(flux.reconcile(&chart, &json!({"breakApply": true})), "upgrade 2 failed", &[REFUSED]);
    killed_upgrade(&flux, &storage, &target, &chart, 3);
    reached(waiting.reconcile(&chart, &json!({"note": "two"})), "unlock 3 failed, upgrade 4 deployed");
    let records = storage.records(Driver::Secret, "demo");
    assert_eq!(records::summary(&records), "1 superseded, 2 failed, 3 failed, 4 deployed");
    // The user is the tenant. Only the field manager, taken from the user agent, shows that Flux wrote it.
    assert_eq!(records[3].annotations["interlock.dev/holder"], tenant.user());
    assert_eq!(records[3].annotations["interlock.dev/target-namespace"], target.name());
    let managed = storage.kubectl("admin").get(&["secret", &records[3].object, "--show-managed-fields"]);
    assert_eq!(managed["metadata"]["managedFields"][0]["manager"], "helm-controller");
    // The status of the HelmRelease leads to records elsewhere. They count because an account beside it holds the newest one.
    let spec = json!({"targetNamespace": target.name(), "releaseName": "demo", "serviceAccountName": "tenant"});
    let admin = storage.kubectl("admin");
    admin.with_file("create", &helm_releases::helm_release(storage.name(), "demo", spec), &[]).expect_success();
    installed(&storage, "demo", &target);
    let edit = ["set", "image", "deployment/demo", "app=bob:1"];
    eventually(SERVED, "the webhook knows who manages the objects", || {
        let output = target.kubectl("bob").run(&[&edit[..], &["--dry-run=server"]].concat());
        if output.success() { Err(output.to_string()) } else { Ok(()) }
    });
    target.kubectl("bob").fails(&edit, &["[manual-edit]"]);
    expect_findings_only_of(&target, &["bob"]);

    // Another account takes over between two operations.
    let heir = storage.service_account("heir");
    let handover = r#"{"spec":{"serviceAccountName":"heir"}}"#;
    admin.ok(&["patch", "helmrelease/demo", "--type=merge", "-p", handover]);
    let flux = flux.impersonating(&heir);
    reached(flux.reconcile(&chart, &json!({"note": "three"})), "upgrade 5 deployed");
    expect_findings_only_of(&target, &["bob"]);

    // The account is no manager, but it restores what the chart declares.
    target.kubectl_as(&tenant).ok(&["delete", "service/demo"]);
    target.kubectl_as(&tenant).ok(&["set", "image", "deployment/demo", "app=drifted:1"]);
    reached(flux.clone().correcting_drift().reconcile(&chart, &json!({"note": "three"})), "correct-drift 5 deployed");

    reached(flux.uninstall(), "uninstall");
    expect_records(&storage, "demo", "");
    expect_findings_only_of(&storage, &[]);
    expect_findings_only_of(&target, &["bob", tenant.user()]);
}

#[test]
fn nobody_installs_over_what_flux_keeps_elsewhere_and_other_releases_are_free() {
    for version in HelmVersion::ALL {
        let (storage, target) = (Namespace::new(shared(), "flux-far"), Namespace::new(shared(), "flux-near"));
        let flux = Flux::new(&helm_controller(storage.plane()), &storage, "demo").target(&target);
        let chart = Chart::new("demo");
        reached(flux.clone().waiting(ROLLOUT).reconcile(&chart, &json!({})), "install 1 deployed");
        // The objects and their marks would suit a release of this name in their own namespace.
        let alice = target.helm(version, Driver::Secret, "alice");
        alice.fails(&["install", "demo", chart.path()], &["[unusual-create]", storage.name()]);
        target.kubectl("alice").fails(&["delete", "configmap/demo"], &["[manual-delete]", storage.name()]);
        alice.ok(&["install", "mine", chart.path()]);
        target.kubectl("alice").fails(&["delete", "configmap/mine"], &["[manual-delete]"]);
        reached(flux.waiting(ROLLOUT).reconcile(&chart, &json!({"note": "two"})), "upgrade 2 deployed");
        expect_findings_only_of(&target, &["alice"]);
    }
}

#[test]
fn flux_waits_for_a_live_helm_run() {
    let namespace = Namespace::new(Plane::shared(), "flux-waits");
    let flux = Flux::new(&helm_controller(namespace.plane()), &namespace, "demo");
    let chart = Chart::new("demo");
    reached(flux.clone().waiting(ROLLOUT).reconcile(&chart, &json!({})), "install 1 deployed");
    namespace.hang_pods();
    let alice = namespace.helm(HelmVersion::V4, Driver::Secret, "alice");
    let run = ["upgrade", "demo", chart.path(), "--set=image=alice", "--force-conflicts", "--wait", "--timeout=100s"];
    let upgrade = alice.spawn(&run);
    namespace.await_status(Driver::Secret, "demo", 2, "pending-upgrade");
    let description = json!({"note": "flux"});
    let refused = ["[pending-recovery]", "held by alice", "`flux reconcile helmrelease NAME --with-source`"];
    failed(flux.reconcile(&chart, &description), "unlock 2 pending-upgrade", &refused);
    expect_records(&namespace, "demo", "1 deployed, 2 pending-upgrade");
    namespace.ready_pods();
    upgrade.wait(ROLLOUT * 2).expect_success();
    reached(flux.reconcile(&chart, &description), "upgrade 3 deployed");
    expect_records(&namespace, "demo", "1 superseded, 2 superseded, 3 deployed");
    let denied = decisions(&namespace).into_iter().filter(|decision| decision.verdict != "allowed");
    let denied: Vec<_> = denied.map(|decision| (decision.operation, decision.rules)).collect();
    assert_eq!(denied, [("UPDATE".to_owned(), "pending-recovery=enforce".to_owned())]);
}

#[test]
fn flux_shortens_a_long_name_and_finds_it_again() {
    let namespace = Namespace::new(Plane::shared(), "flux-long");
    let name = "a-target-namespace-with-a-long-name-a-helm-release-with-a-long-name";
    let short = "a-target-namespace-with-a-long-name-a-he-04bbd798065e";
    let flux = Flux::new(&helm_controller(namespace.plane()), &namespace, name);
    let chart = Chart::new("demo");
    reached(flux.reconcile(&chart, &json!({})), "install 1 deployed");
    reached(flux.reconcile(&chart, &json!({"note": "two"})), "upgrade 2 deployed");
    expect_records(&namespace, short, "1 superseded, 2 deployed");
    reached(flux.uninstall(), "uninstall");
    expect_findings_only_of(&namespace, &[]);
}
