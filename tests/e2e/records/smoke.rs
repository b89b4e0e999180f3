//! The harness itself: real clients on a control plane, mostly without the webhook.

use std::time::Duration;

use crate::harness::chart::{Chart, HookKind, When};
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records;

#[test]
fn helm_3_with_secrets_lives_a_whole_life() {
    whole_life(HelmVersion::V3, Driver::Secret);
}

#[test]
fn helm_3_with_config_maps_lives_a_whole_life() {
    whole_life(HelmVersion::V3, Driver::ConfigMap);
}

#[test]
fn helm_4_with_secrets_lives_a_whole_life() {
    whole_life(HelmVersion::V4, Driver::Secret);
}

#[test]
fn helm_4_with_config_maps_lives_a_whole_life() {
    whole_life(HelmVersion::V4, Driver::ConfigMap);
}

fn whole_life(version: HelmVersion, driver: Driver) {
    let namespace = Namespace::new(Plane::without_webhook(), "life");
    let helm = namespace.helm(version, driver, "alice");
    let chart = Chart::new("demo")
        .hook(When::PreUpgrade, HookKind::Job)
        .hook(When::PostUpgrade, HookKind::ConfigMap)
        .hook(When::Test, HookKind::Pod);
    helm.ok(&["install", "demo", chart.path(), "--wait", "--timeout=60s"]);
    chart.set_version("1.1.0");
    helm.ok(&["upgrade", "demo", chart.path(), "--set=note=two", "--wait", "--timeout=60s"]);
    helm.ok(&["test", "demo", "--timeout=60s"]);
    helm.fails(&["upgrade", "demo", chart.path(), "--set=breakRender=true"], &["asked to break"]);
    helm.fails(&["upgrade", "demo", chart.path(), "--set=breakApply=true"], &["selector"]);
    helm.fails(&["upgrade", "demo", chart.path(), "--set=failHooks=true", "--timeout=30s"], &["hook"]);
    let records = namespace.records(driver, "demo");
    assert_eq!(records::summary(&records), "1 superseded, 2 deployed, 3 failed, 4 failed");
    assert_eq!(records[0].chart, "demo-1.0.0");
    assert_eq!(records[1].chart, "demo-1.1.0");
    helm.ok(&["rollback", "demo", "1", "--wait", "--timeout=60s"]);
    assert_eq!(records::deployed(&namespace.records(driver, "demo")), 1);
    helm.ok(&["uninstall", "demo"]);
    let left = namespace.records(driver, "demo");
    assert!(left.is_empty(), "expected no record after uninstall: {}", records::summary(&left));
}

#[test]
fn helm_waits_while_pods_hang_and_leaves_a_pending_record_when_killed() {
    let namespace = Namespace::new(Plane::without_webhook(), "hang");
    let helm = namespace.helm(HelmVersion::V3, Driver::Secret, "alice");
    let chart = Chart::new("demo");
    helm.ok(&["install", "demo", chart.path(), "--wait", "--timeout=60s"]);
    namespace.await_available("demo");
    namespace.hang_pods();
    let mut upgrade = helm.spawn(&["upgrade", "demo", chart.path(), "--set=note=two", "--wait"]);
    namespace.await_status(Driver::Secret, "demo", 2, "pending-upgrade");
    assert!(upgrade.is_running(), "expected helm to wait for pods\n{}", upgrade.wait(Duration::ZERO));
    upgrade.kill();
    let records = namespace.records(Driver::Secret, "demo");
    assert_eq!(records::summary(&records), "1 deployed, 2 pending-upgrade");
    helm.fails(&["upgrade", "demo", chart.path()], &["another operation (install/upgrade/rollback) is in progress"]);
    namespace.ready_pods();
    helm.ok(&["rollback", "demo", "1", "--wait", "--timeout=60s"]);
}

#[test]
fn people_and_service_accounts_have_their_own_names() {
    let namespace = Namespace::new(Plane::without_webhook(), "who");
    let account = namespace.service_account("deployer");
    assert_eq!(account.user(), format!("system:serviceaccount:{}:deployer", namespace.name()));
    let people = ["alice", "bob", "ci-bot", "admin"].map(|name| namespace.plane().person(name));
    for who in people.iter().chain([&account]) {
        let review = namespace.kubectl_as(who).ok(&["auth", "whoami", "-o", "json"]).json();
        assert_eq!(review["status"]["userInfo"]["username"], who.user());
    }
}

#[test]
fn the_webhook_judges_stamps_stops_and_comes_back() {
    let plane = Plane::start(include_str!("../../../policies/cluster.yaml"));
    let namespace = Namespace::new(&plane, "webhook");
    let helm = namespace.helm(HelmVersion::V4, Driver::Secret, "alice");
    let chart = Chart::new("demo");
    helm.ok(&["install", "demo", chart.path(), "--wait", "--timeout=60s"]);
    let records = namespace.records(Driver::Secret, "demo");
    assert_eq!(records[0].annotations.get("interlock.dev/holder").map(String::as_str), Some("alice"));
    plane.webhook().await_ready();
    plane.webhook().stop();
    helm.fails(&["upgrade", "demo", chart.path()], &["failed calling webhook"]);
    plane.webhook().restart();
    helm.ok(&["upgrade", "demo", chart.path()]);
    plane.webhook().kill();
    plane.webhook().restart();
    helm.ok(&["uninstall", "demo"]);
}
