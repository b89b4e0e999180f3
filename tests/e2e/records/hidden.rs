//! Objects that Helm's drivers read as records, although their name or type says otherwise.

use serde_json::Value;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion, Kubectl};
use crate::harness::forging;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records::{self, V1};

const REFUSED: [&str; 2] = ["denied the request", "[record-integrity]"];

/// The labels by which a driver finds revision 99 of the release `demo`.
const LABELS: [&str; 4] = ["owner=helm", "name=demo", "status=pending-upgrade", "version=99"];

/// A copy of revision 1 as revision 99, in an object that is not called and not typed like a record.
fn innocent(kubectl: &Kubectl, driver: Driver) -> Value {
    let mut object = kubectl.get(&[driver.resource(), V1]);
    forging::copy(&mut object, driver, 99, "pending-upgrade");
    object["metadata"]["name"] = "innocent".into();
    if driver == Driver::Secret {
        object["type"] = "Opaque".into();
    }
    object
}

#[test]
fn an_object_with_the_labels_of_a_record_is_refused_and_helm_sees_no_revision_99() {
    for (version, driver) in [(HelmVersion::V3, Driver::ConfigMap), (HelmVersion::V4, Driver::Secret)] {
        let namespace = Namespace::new(Plane::shared(), "hidden");
        let (helm, kubectl) = (namespace.helm(version, driver, "alice"), namespace.kubectl("bob"));
        let chart = Chart::new("demo");
        helm.ok(&["install", "demo", chart.path()]);

        let mut hidden = innocent(&kubectl, driver);
        kubectl.with_file("create", &hidden, &[]).expect_failure(&REFUSED);
        // The allowed neighbour: the same data without the labels. Labels may then be added, but not these.
        hidden["metadata"]["labels"].take();
        kubectl.with_file("create", &hidden, &[]).expect_success();
        let object = format!("{}/innocent", driver.resource());
        let label = |labels: &[&str]| kubectl.run(&[&["label", object.as_str()], labels].concat());
        label(&LABELS).expect_failure(&REFUSED);
        label(&LABELS[..2]).expect_failure(&REFUSED);
        label(&["team=blue"]).expect_success();

        let listed = helm.ok(&["list", "-o", "json"]).json();
        assert_eq!((&listed[0]["revision"], &listed[0]["status"]), (&"1".into(), &"deployed".into()), "{listed:#}");
        let history = helm.ok(&["history", "demo", "-o", "json"]).json();
        assert_eq!(history.as_array().map(Vec::len), Some(1), "{history:#}");
        helm.ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
        assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 deployed");
    }
}

#[test]
fn a_revision_that_leaves_no_room_for_the_next_is_refused() {
    for driver in Driver::ALL {
        let namespace = Namespace::new(Plane::shared(), "last-revision");
        let (helm, kubectl) = (namespace.helm(HelmVersion::V4, driver, "alice"), namespace.kubectl("bob"));
        let chart = Chart::new("demo");
        helm.ok(&["install", "demo", chart.path()]);
        // Helm counts in signed 64-bit numbers.
        for revision in [i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
            let mut last = kubectl.get(&[driver.resource(), V1]);
            forging::copy(&mut last, driver, revision, "pending-upgrade");
            kubectl.with_file("create", &last, &[]).expect_failure(&REFUSED);
        }
        helm.ok(&["upgrade", "demo", chart.path(), "--set=note=two"]);
        assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 deployed");
    }
}

#[test]
fn objects_that_helm_does_not_read_as_records_pass() {
    let namespace = Namespace::new(Plane::shared(), "not-hidden");
    let kubectl = namespace.kubectl("bob");
    kubectl.ok(&["create", "configmap", "settings", "--from-literal=release=2026.11"]);
    kubectl.ok(&["create", "secret", "generic", "password", "--from-literal=release=2026.11"]);
    for object in ["configmap/settings", "secret/password"] {
        kubectl.ok(&["label", object, "name=demo", "version=99", "status=live"]);
        kubectl.ok(&["delete", object]);
    }
}
