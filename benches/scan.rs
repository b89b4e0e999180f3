//! `interlock scan` over the records of many releases, which the test tool writes straight into an etcd:
//!
//!     cargo bench --bench scan [-- RELEASES]
//!
//! 10,000 releases of three records unless told otherwise; one in 500 has a fault. Needs `target/controlplane/`, which the
//! e2e tests build.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a benchmark fails by a panic"
)]

#[path = "fixtures/plane.rs"]
mod plane;

use std::process::Command;
use std::time::Instant;

use plane::{Plane, releases};
use serde_json::Value;

fn main() {
    let (releases, plane) = (releases(), Plane::start());
    let began = Instant::now();
    plane.fill(releases, &["--faulty-every", "500"]);
    println!("{releases} releases written in {:.1?}", began.elapsed());

    for args in [&["--bodies", "questioned"][..], &[], &["--bodies", "all"], &["--drift"]] {
        let scan = Command::new(env!("CARGO_BIN_EXE_interlock"))
            .args(["scan", "-o", "json", "--kubeconfig", plane.kubeconfig()])
            .args(args)
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&scan.stdout).unwrap_or_else(|_| panic!("{scan:?}"));
        println!(
            "scan {:<20} {:>5.1} s, {:>4.0} MiB at most, {:>6} calls, {:>6} bodies, {:>6} objects, findings {}",
            args.join(" "),
            report["tookSeconds"].as_f64().unwrap(),
            report["peakMemoryBytes"].as_f64().unwrap_or_default() / f64::from(1 << 20),
            report["calls"],
            report["bodies"],
            report["objects"],
            report["counts"],
        );
    }
}
