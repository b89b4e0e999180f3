//! Records deleted with kubectl and by controllers.

use std::time::Duration;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records;

fn three_revisions(test: &str, driver: Driver) -> (Namespace<'static>, Chart) {
    let namespace = Namespace::new(Plane::shared(), test);
    let helm = namespace.helm(HelmVersion::V3, driver, "alice");
    let chart = Chart::new("demo");
    helm.ok(&["install", "demo", chart.path()]);
    helm.ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
    helm.ok(&["upgrade", "demo", chart.path(), "--set=note=three"]);
    (namespace, chart)
}

#[test]
fn the_newest_deployed_record_cannot_be_deleted_and_older_ones_can() {
    for driver in Driver::ALL {
        let (namespace, chart) = three_revisions("delete-one", driver);
        let kubectl = namespace.kubectl("alice");
        let delete = |revision: u32| {
            kubectl.run(&["delete", driver.resource(), &format!("sh.helm.release.v1.demo.v{revision}")])
        };
        delete(3).expect_failure(&["denied the request", "[record-deletion]", "the release is live"]);
        delete(1).expect_success();
        assert_eq!(records::summary(&namespace.records(driver, "demo")), "2 superseded, 3 deployed");
        namespace.helm(HelmVersion::V3, driver, "alice").ok(&["upgrade", "demo", chart.path()]);
    }
}

#[test]
fn deleting_all_records_leaves_the_live_one() {
    for driver in Driver::ALL {
        for selection in [["-l", "owner=helm"], ["--all", "--wait=true"]] {
            let (namespace, chart) = three_revisions("delete-all", driver);
            let kubectl = namespace.kubectl("alice");
            let [first, second] = selection;
            kubectl.fails(&["delete", driver.resource(), first, second], &["[record-deletion]"]);
            assert_eq!(records::summary(&namespace.records(driver, "demo")), "3 deployed", "{selection:?}");
            let helm = namespace.helm(HelmVersion::V3, driver, "alice");
            helm.ok(&["upgrade", "demo", chart.path(), "--set=note=four"]);
            // The allowed neighbour: `helm uninstall`, which deletes the objects too.
            helm.ok(&["uninstall", "demo"]);
            assert!(namespace.records(driver, "demo").is_empty());
        }
    }
}

#[test]
fn a_collection_delete_by_a_person_deletes_no_record() {
    let (namespace, _) = three_revisions("delete-collection", Driver::Secret);
    let path = format!("/api/v1/namespaces/{}/secrets?labelSelector=owner%3Dhelm", namespace.name());
    namespace
        .kubectl("alice")
        .fails(&["delete", "--raw", &path], &["[record-deletion]", "together with other records"]);
    let summary = records::summary(&namespace.records(Driver::Secret, "demo"));
    assert_eq!(summary, "1 superseded, 2 superseded, 3 deployed");
}

#[test]
fn a_namespace_is_deleted_with_all_its_records() {
    let (namespace, _) = three_revisions("delete-namespace", Driver::Secret);
    namespace.helm(HelmVersion::V4, Driver::ConfigMap, "alice").ok(&["install", "other", Chart::new("other").path()]);
    let kubectl = namespace.plane().kubectl(&namespace.plane().person("alice"));
    kubectl.ok(&["delete", "namespace", namespace.name(), "--wait=false"]);
    eventually(Duration::from_secs(90), "the namespace is gone", || {
        match kubectl.find(&["namespace", namespace.name()]) {
            None => Ok(()),
            Some(namespace) => Err(namespace["status"].to_string()),
        }
    });
}

#[test]
fn the_garbage_collector_deletes_the_records_of_an_operator_whose_resource_is_gone() {
    let namespace = Namespace::new(Plane::shared(), "delete-garbage");
    let operator = namespace.service_account("operator");
    let kubectl = namespace.kubectl_as(&operator);
    let chart = Chart::new("demo");
    namespace.helm_as(HelmVersion::V3, Driver::Secret, &operator).ok(&["install", "demo", chart.path()]);
    kubectl.ok(&["create", "configmap", "owner"]);
    let owner = kubectl.get(&["configmap", "owner"]);
    let patch = serde_json::json!({"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    ]}});
    // Operators make a custom resource the owner of the records that they write. A person makes nothing the owner of a record.
    let patch = ["patch", "secret", records::V1, "--type=merge", "-p", &patch.to_string()];
    namespace.kubectl("alice").fails(&patch, &["denied the request", "[record-tampering]"]);
    kubectl.ok(&patch);
    kubectl.ok(&["delete", "configmap", "owner"]);
    eventually(Duration::from_secs(90), "the live record is collected", || {
        let summary = records::summary(&namespace.records(Driver::Secret, "demo"));
        if summary.is_empty() { Ok(()) } else { Err(summary) }
    });
}
