//! A replica whose clock is wrong judges by the API server's.

use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::clock::WrongClock;
use crate::harness::in_flight::{killed_on_the_way_to, unlock};
use crate::harness::plane::Plane;
use crate::harness::records;

#[test]
fn ages_are_by_the_clock_of_the_api_server_whatever_a_replica_s_says() {
    let plane = Plane::shipped("clock").unwrap();
    let clock = WrongClock::build(plane.dir()).unwrap();
    for (name, hours) in [("ahead", 1), ("behind", -1)] {
        plane.webhook().stop();
        plane.webhook().restart_with(&clock.ahead(hours * 3_600));
        plane.webhook().await_ready();
        let log = plane.webhook().log();
        assert!(log.contains("this machine's clock is corrected by the API server's"), "{log}");
        // The first operation is by a right clock for both: the stamps of the mutating half and the age that the validating half finds.
        let namespace = killed_on_the_way_to("1.0.0", &plane, name, HelmVersion::V4, Driver::Secret, true);
        let bob = namespace.helm(HelmVersion::V4, Driver::Secret, "bob");
        bob.fails(&["rollback", "demo", "1"], &["[pending-recovery]", "held by alice for", " s. Wait"]);
        unlock(&namespace, Driver::Secret, "alice").expect_success();
        bob.ok(&["rollback", "demo", "1", "--wait", "--timeout=60s"]);
        let summary = records::summary(&namespace.records(Driver::Secret, "demo"));
        assert_eq!(summary, "1 superseded, 2 failed, 3 deployed");
    }
}
