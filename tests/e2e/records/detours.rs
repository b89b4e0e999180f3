//! What cannot be done to a record or an object in one write cannot be done with the help of Kubernetes either.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::namespace::{ALL_OF_DEMO, Namespace};
use crate::harness::plane::Plane;
use crate::harness::records::{self, V1};

/// How long the garbage collector may take to notice an owner that does not exist.
const COLLECTOR: Duration = Duration::from_secs(60);

const BOTH: [(HelmVersion, Driver); 2] = [(HelmVersion::V3, Driver::ConfigMap), (HelmVersion::V4, Driver::Secret)];

fn installed(test: &str, version: HelmVersion, driver: Driver) -> (Namespace<'static>, Chart) {
    let namespace = Namespace::new(Plane::shared(), test);
    let chart = Chart::new("demo");
    namespace.helm(version, driver, "alice").ok(&["install", "demo", chart.path()]);
    (namespace, chart)
}

#[test]
fn nothing_is_handed_to_the_garbage_collector_by_an_owner_that_does_not_exist() {
    for (version, driver) in BOTH {
        let (namespace, chart) = installed("orphaned", version, driver);
        let bob = namespace.kubectl("bob");
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "5d0fd9d8-9a0c-4bd8-a2ff-1d2ab6b1a0c7"});
        let owned = json!({"metadata": {"ownerReferences": [owner]}}).to_string();
        let patch = |object: &str| bob.run(&["patch", object, "--type=merge", "-p", &owned]);
        patch(&format!("{}/{V1}", driver.resource())).expect_failure(&["denied the request", "[record-"]);
        for object in ALL_OF_DEMO {
            patch(object).expect_failure(&["denied the request", "[manual-"]);
        }
        // The allowed neighbour: an object of nobody. Once it is gone, the collector has been at work.
        bob.ok(&["create", "configmap", "bystander"]);
        patch("configmap/bystander").expect_success();
        eventually(COLLECTOR, "the garbage collector deletes the bystander", || {
            bob.find(&["configmap/bystander"]).map_or(Ok(()), |object| Err(object.to_string()))
        });
        assert_eq!(namespace.objects_of_demo(), ALL_OF_DEMO);
        namespace.helm(version, driver, "alice").ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
        assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 deployed");
    }
}

#[test]
fn a_record_stays_writable_and_deletable() {
    for (version, driver) in BOTH {
        let (namespace, chart) = installed("frozen", version, driver);
        let (bob, record) = (namespace.kubectl("bob"), format!("{}/{V1}", driver.resource()));
        let patch = |patch: &Value| bob.run(&["patch", &record, "--type=merge", "-p", &patch.to_string()]);
        // Neither can be taken back by helm: it does not know them, and an immutable object stays immutable.
        patch(&json!({"immutable": true})).expect_failure(&["denied the request", "[record-"]);
        let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
        patch(&held).expect_failure(&["denied the request", "[record-"]);
        patch(&json!({"metadata": {"annotations": {"note": "hello"}}})).expect_success();
        let helm = namespace.helm(version, driver, "alice");
        helm.ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
        assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 deployed");
        helm.ok(&["uninstall", "demo"]);
        assert!(namespace.records(driver, "demo").is_empty());
    }
}
