//! `helm uninstall` by somebody who may not end the operation of another, or start one.
//!
//! helm only logs a refused write of its record and goes on to delete the objects, so each door refuses by itself.

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, Helm, HelmVersion};
use crate::harness::decisions::decisions;
use crate::harness::in_flight::during_an_upgrade;
use crate::harness::namespace::{ALL_OF_DEMO, Namespace};
use crate::harness::plane::Plane;
use crate::harness::records;

/// The uninstall fails, and everything is still as it was.
#[track_caller]
fn expect_refused(namespace: &Namespace<'_>, helm: &Helm, left: &str) {
    helm.fails(&["uninstall", "demo"], &["demo"]);
    assert_eq!(records::summary(&namespace.records(helm.driver(), "demo")), left);
    assert_eq!(namespace.objects_of_demo(), ALL_OF_DEMO);
}

/// The rules that refused a user's writes to this resource.
fn refused_by(namespace: &Namespace<'_>, user: &str, resource: &str) -> String {
    let refused = decisions(namespace).into_iter().filter(|it| it.user == user && it.resource == resource);
    refused.filter(|it| it.verdict == "denied").map(|it| it.rules).collect::<Vec<_>>().join(" ")
}

#[test]
fn an_uninstall_by_somebody_else_during_an_upgrade_deletes_nothing() {
    for version in HelmVersion::ALL {
        for driver in Driver::ALL {
            let (namespace, upgrade) = during_an_upgrade("foreign-uninstall", version, driver, |namespace, bob, _| {
                expect_refused(namespace, bob, "1 deployed, 2 pending-upgrade");
            });
            upgrade.expect_success();
            assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 deployed");
            let record = format!("{}s", driver.resource());
            assert!(refused_by(&namespace, "bob", &record).contains("pending-recovery"), "the record's door is open");
            let objects = refused_by(&namespace, "bob", "deployments.apps");
            assert!(objects.contains("foreign-edit-in-transition"), "the objects' door is open: {objects:?}");
            // The allowed neighbour: the same uninstall, once no operation is in flight.
            namespace.helm(version, driver, "bob").ok(&["uninstall", "demo"]);
            assert_eq!((namespace.records(driver, "demo").len(), namespace.objects_of_demo().len()), (0, 0));
        }
    }
}

#[test]
fn an_uninstall_by_another_service_account_during_an_upgrade_deletes_nothing() {
    for (version, driver) in [(HelmVersion::V3, Driver::ConfigMap), (HelmVersion::V4, Driver::Secret)] {
        let (namespace, upgrade) = during_an_upgrade("foreign-pipeline", version, driver, |namespace, _, _| {
            let pipeline = namespace.helm_as(version, driver, &namespace.service_account("pipeline"));
            expect_refused(namespace, &pipeline, "1 deployed, 2 pending-upgrade");
        });
        upgrade.expect_success();
        assert_eq!(records::summary(&namespace.records(driver, "demo")), "1 superseded, 2 deployed");
        let pipeline = namespace.helm_as(version, driver, &namespace.service_account("pipeline"));
        pipeline.ok(&["uninstall", "demo"]);
        assert_eq!((namespace.records(driver, "demo").len(), namespace.objects_of_demo().len()), (0, 0));
    }
}

#[test]
fn where_only_managers_start_operations_an_uninstall_by_anybody_else_stops_with_everything_still_there() {
    // As shipped, what service accounts do to objects is only audited.
    let managed = concat!(
        include_str!("../../../policies/cluster.yaml"),
        "rules: {unusual-create: {startedBy: managers}}\nmanagers: ['system:serviceaccount:*:deployer']\n"
    );
    let plane = Plane::start(managed);
    for (version, driver) in [(HelmVersion::V3, Driver::Secret), (HelmVersion::V4, Driver::ConfigMap)] {
        let namespace = Namespace::new(&plane, "managed-uninstall");
        let deployer = namespace.helm_as(version, driver, &namespace.service_account("deployer"));
        deployer.ok(&["install", "demo", Chart::new("demo").path()]);
        expect_refused(&namespace, &namespace.helm(version, driver, "alice"), "1 deployed");
        let pipeline = namespace.helm_as(version, driver, &namespace.service_account("pipeline"));
        expect_refused(&namespace, &pipeline, "1 deployed");
        deployer.ok(&["uninstall", "demo"]);
        assert_eq!((namespace.records(driver, "demo").len(), namespace.objects_of_demo().len()), (0, 0));
    }
}
