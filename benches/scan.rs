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

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

fn main() {
    let releases = std::env::args().skip(1).find_map(|argument| argument.parse::<u32>().ok()).unwrap_or(10_000);
    let controlplane = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../controlplane/controlplane");
    assert!(controlplane.exists(), "there is no {}: run the e2e tests once", controlplane.display());
    let dir = tempfile::tempdir().unwrap();
    let mut up = Command::new(&controlplane)
        .args(["up", "--temporary"])
        .arg(dir.path().join("plane"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(up.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).expect("the control plane is ready");
    let text = |value: &Value| value.as_str().unwrap().to_owned();

    let began = Instant::now();
    let bulk = Command::new(&controlplane)
        .args(["bulk", "--etcd", &text(&ready["etcd"]), "--releases", &releases.to_string(), "--faulty-every", "500"])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(bulk.success());
    println!("{releases} releases written in {:.1?}", began.elapsed());

    for args in [&["--bodies", "questioned"][..], &[], &["--bodies", "all"], &["--drift"]] {
        let scan = Command::new(env!("CARGO_BIN_EXE_interlock"))
            .args(["scan", "-o", "json", "--kubeconfig", &text(&ready["kubeconfigs"]["admin"])])
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
    drop(up.stdin.take());
    up.wait().unwrap();
}
