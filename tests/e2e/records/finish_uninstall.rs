//! An uninstall was killed, and somebody else finishes it.

use std::time::Duration;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::in_flight::{impatient, kill_uninstall};
use crate::harness::namespace::{ALL_OF_DEMO, Namespace};
use crate::harness::plane::Plane;
use crate::harness::records::{self, V1};

const BOTH: [(HelmVersion, Driver); 2] = [(HelmVersion::V3, Driver::ConfigMap), (HelmVersion::V4, Driver::Secret)];

/// Alice's release in a namespace of its own, whose uninstall was killed.
fn half_uninstalled<'p>(plane: &'p Plane, test: &str, version: HelmVersion, driver: Driver) -> Namespace<'p> {
    let namespace = Namespace::new(plane, test);
    let alice = namespace.helm(version, driver, "alice");
    alice.ok(&["install", "demo", Chart::new("demo").path()]);
    kill_uninstall(&namespace, &alice, "demo");
    namespace
}

#[test]
fn an_uninstall_that_somebody_else_has_just_begun_is_not_taken_over() {
    for (version, driver) in BOTH {
        let namespace = half_uninstalled(Plane::shared(), "half-fresh", version, driver);
        let pipeline = namespace.helm_as(version, driver, &namespace.service_account("pipeline"));
        for other in [&namespace.helm(version, driver, "bob"), &pipeline] {
            other.fails(&["uninstall", "demo"], &["demo"]);
            let records = namespace.records(driver, "demo");
            assert_eq!(records::summary(&records), "1 uninstalling");
            assert_eq!(records[0].annotations["interlock.dev/holder"], "alice");
            assert_eq!(namespace.objects_of_demo(), ALL_OF_DEMO);
        }
        namespace.kubectl("bob").fails(&["delete", driver.resource(), V1], &["denied the request", "held by alice"]);
        // The allowed neighbour: alice's own next try.
        namespace.helm(version, driver, "alice").ok(&["uninstall", "demo"]);
        assert_eq!((namespace.records(driver, "demo").len(), namespace.objects_of_demo().len()), (0, 0));
    }
}

#[test]
fn a_dead_uninstall_is_finished_by_somebody_else_once_it_is_stale() {
    for (version, driver) in BOTH {
        for keep in [false, true] {
            let namespace = half_uninstalled(impatient(), "half-stale", version, driver);
            let bob = namespace.helm(version, driver, "bob");
            let keep_history = ["uninstall", "demo", "--keep-history"];
            let args = if keep { &keep_history[..] } else { &keep_history[..2] };
            eventually(Duration::from_secs(60), "bob finishes the uninstall", || bob.run(args).into_result());
            assert_eq!(namespace.objects_of_demo(), [""; 0]);
            let records = namespace.records(driver, "demo");
            if keep {
                assert_eq!(records::summary(&records), "1 uninstalled");
                assert_eq!(records[0].annotations["interlock.dev/holder"], "bob", "the one who finishes it holds it");
            } else {
                assert!(records.is_empty(), "{}", records::summary(&records));
                bob.ok(&["install", "demo", Chart::new("demo").path()]);
            }
        }
    }
}
