//! Records that are left over under the other driver.

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::controllers::account;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records::V1;

/// A restored backup can bring back the record of a release that was uninstalled since.
#[test]
fn records_without_workloads_do_not_stop_an_install_under_the_other_driver() {
    for (version, test) in [(HelmVersion::V3, "left-over-helm3"), (HelmVersion::V4, "left-over-helm4")] {
        let namespace = Namespace::new(Plane::shared(), test);
        let chart = Chart::new("demo");
        let in_config_maps = namespace.helm(version, Driver::ConfigMap, "alice");
        in_config_maps.ok(&["install", "demo", chart.path()]);
        let mut record = namespace.kubectl("admin").get(&["configmap", V1]);
        let alice = namespace.helm(version, Driver::Secret, "alice");
        alice.fails(&["install", "demo", chart.path()], &["revision 1 in a ConfigMap is deployed"]);
        in_config_maps.ok(&["uninstall", "demo"]);
        let metadata = record["metadata"].as_object_mut().unwrap();
        ["uid", "resourceVersion", "managedFields"].iter().for_each(|key| _ = metadata.remove(*key));
        let velero = namespace.kubectl_as(&account(namespace.plane(), "velero", "velero"));
        velero.with_file("create", &record, &[]).expect_success();

        let installed = alice.ok(&["install", "demo", chart.path()]);
        assert!(installed.stderr.contains("Revision 1 of demo in a ConfigMap is deployed"), "{installed}");
        alice.ok(&["upgrade", "demo", chart.path()]);
    }
}
