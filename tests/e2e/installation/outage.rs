//! The effect of the registration alone, when no replica answers.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records;
use crate::harness::webhook::{NOWHERE, register};

const DOWN: &[&str] = &["failed calling webhook \"create-delete.records.interlock.dev\""];

#[test]
fn only_new_and_deleted_records_wait_for_a_webhook_that_is_down() {
    let plane = Plane::alone();
    let namespace = Namespace::new(&plane, "outage");
    let kubectl = namespace.kubectl("alice");
    let chart = Chart::new("demo");
    for (version, driver) in [(HelmVersion::V3, Driver::Secret), (HelmVersion::V4, Driver::ConfigMap)] {
        namespace.helm(version, driver, "alice").ok(&["install", driver.resource(), chart.path()]);
    }
    register(&plane, NOWHERE, plane.ca()).unwrap();
    let marker = |name: &str, kind: &str, labels: Value| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "labels": labels}});
    eventually(Duration::from_secs(20), "the registration works", || {
        let record = marker("probe", "ConfigMap", json!({"owner": "helm"}));
        let probe = kubectl.with_file("create", &record, &["--dry-run=server"]);
        if probe.stderr.contains(DOWN[0]) { Ok(()) } else { Err(probe.to_string()) }
    });

    for (version, driver) in [(HelmVersion::V3, Driver::Secret), (HelmVersion::V4, Driver::ConfigMap)] {
        let (helm, resource) = (namespace.helm(version, driver, "alice"), driver.resource());
        let object = format!("sh.helm.release.v1.{resource}.v1");
        // A transition cannot start. It leaves nothing behind.
        helm.fails(&["upgrade", resource, chart.path(), "--set=note=two"], DOWN);
        helm.fails(&["install", &format!("{resource}-2"), chart.path()], DOWN);
        kubectl.fails(&["delete", resource, &object], DOWN);
        kubectl.fails(&["delete", resource, "-l", "owner=helm"], DOWN);
        assert_eq!(records::summary(&namespace.records(driver, resource)), "1 deployed");
        // A running operation can still write its record.
        kubectl.ok(&["label", resource, &object, "team=shop"]);
        // Removing one of a record's two marks does not help.
        kubectl.ok(&["label", resource, &object, "owner-"]);
        if driver == Driver::Secret {
            kubectl.fails(&["delete", resource, &object], DOWN);
        }
        kubectl.ok(&["label", resource, &object, "owner=helm"]);
    }
    // OLM's index Secret is a record by its type alone.
    let mut chunks = marker("index", "Secret", json!({}));
    chunks["type"] = json!("operatorframework.io/index.v1");
    kubectl.with_file("create", &chunks, &[]).expect_failure(DOWN);
    // Everything else passes: other Secrets and ConfigMaps, with and without labels, and objects of charts.
    for kind in ["Secret", "ConfigMap"] {
        for labels in [json!({"owner": "shop"}), json!(null)] {
            kubectl.with_file("create", &marker("ordinary", kind, labels), &[]).expect_success();
            kubectl.ok(&["delete", kind, "ordinary"]);
        }
    }
    kubectl.ok(&["scale", "deployment", "secret", "--replicas=2"]);
    // So do records in kube-system, and records that are deleted with their namespace.
    let system = plane.kubectl(&plane.admin());
    let record = marker("probe", "ConfigMap", json!({"owner": "helm"}));
    system.with_file("create", &record, &["-n", "kube-system"]).expect_success();
    plane.kubectl(&plane.admin()).ok(&["delete", "namespace", namespace.name(), "--timeout=60s"]);
}

#[test]
fn an_upgrade_that_runs_while_the_webhook_dies_ends_as_without_it() {
    let plane = Plane::start(include_str!("../../../policies/cluster.yaml"));
    for (version, driver) in [(HelmVersion::V3, Driver::Secret), (HelmVersion::V4, Driver::ConfigMap)] {
        let namespace = Namespace::new(&plane, "outage-upgrade");
        let helm = namespace.helm(version, driver, "alice");
        let chart = Chart::new("demo");
        helm.ok(&["install", "demo", chart.path(), "--wait", "--timeout=60s"]);
        namespace.hang_pods();
        let upgrade = helm.spawn(&["upgrade", "demo", chart.path(), "--set=image=two", "--wait", "--timeout=60s"]);
        namespace.await_status(driver, "demo", 2, "pending-upgrade");
        plane.webhook().kill();
        namespace.ready_pods();
        upgrade.wait(Duration::from_secs(90)).expect_success();
        assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 deployed");
        // While the webhook is down, the API server refuses a new transition and names the webhook.
        helm.fails(&["upgrade", "demo", chart.path(), "--set=note=two"], DOWN);
        assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 deployed");
        plane.webhook().restart();
        eventually(Duration::from_secs(60), "an upgrade passes again", || {
            helm.run(&["upgrade", "demo", chart.path(), "--set=note=two"]).into_result()
        });
        let records = namespace.records(driver, "demo");
        assert_eq!(records::summary(&records), "1 superseded, 2 superseded, 3 deployed");
        assert_eq!(records[2].annotations["interlock.dev/holder"], "alice");
    }
}
