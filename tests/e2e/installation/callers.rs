//! The API server is known, and everybody else is a stranger.

use std::time::Duration;

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;

/// A probe goes out once in 30 s while strangers call.
const SOON: Duration = Duration::from_secs(90);

/// How many reviews came from strangers.
fn of_strangers(plane: &Plane) -> u64 {
    let (_, metrics) = plane.webhook().admin("/metrics");
    let line = metrics.lines().find_map(|line| line.strip_prefix("interlock_reviews_of_strangers_total "));
    line.and_then(|count| count.parse().ok()).expect("the metric")
}

#[test]
fn the_api_server_is_known_by_the_nonce_that_it_brings() {
    // This API server publishes no address of its own.
    let plane = Plane::shipped("callers").unwrap();
    plane.define("manifests/base/releaseoverrides.yaml");
    let namespace = Namespace::new(&plane, "callers");
    let chart = Chart::new("demo");
    let alice = namespace.helm(HelmVersion::V4, Driver::Secret, "alice");
    alice.ok(&["install", "demo", chart.path()]);
    eventually(SOON, "no review of an upgrade comes from a stranger", || {
        let before = of_strangers(&plane);
        alice.ok(&["upgrade", "demo", chart.path()]);
        match of_strangers(&plane) - before {
            0 => Ok(()),
            count => Err(format!("{count} came from strangers")),
        }
    });
}
