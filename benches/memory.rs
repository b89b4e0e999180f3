//! What `interlock serve` takes of memory in front of an empty cluster and of one with many releases:
//!
//!     cargo bench --bench memory [-- RELEASES]
//!
//! 10,000 releases of three records unless told otherwise, which the test tool writes straight into an etcd. Needs
//! `target/controlplane/`, which the e2e tests build.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a benchmark fails by a panic"
)]

#[path = "fixtures/plane.rs"]
mod plane;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plane::{Plane, line, releases};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(200);

fn main() {
    let (releases, plane) = (releases(), Plane::start());
    // Where the replicas agree on a leader, and where its overrides are defined.
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/base");
    for file in ["namespace.yaml", "releaseoverrides.yaml"] {
        let mut kubectl = plane.command("kubectl");
        kubectl.args(["apply", "-f"]).arg(base.join(file)).env("KUBECONFIG", plane.kubeconfig());
        assert!(kubectl.stdout(Stdio::null()).status().unwrap().success());
    }
    measure("no release", &plane);
    plane.fill(releases, &[]);
    measure(&format!("{releases} releases"), &plane);
}

/// Starts a server, and tells what it takes once it is ready, and once its first scan as the leader is over.
fn measure(what: &str, plane: &Plane) {
    let (began, certs) = (Instant::now(), tempfile::tempdir().unwrap());
    let mut serve = Command::new(env!("CARGO_BIN_EXE_interlock"))
        .args(["serve", "--kubeconfig", plane.kubeconfig(), "--drain-delay", "0"])
        .args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--certs"])
        .arg(certs.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let addresses = line(&mut serve);
    let admin = addresses["admin"].as_str().unwrap();
    wait(|| get(admin, "/readyz").starts_with("HTTP/1.1 200"));
    let ready = (began.elapsed(), memory(&serve, "VmRSS"));
    wait(|| get(admin, "/metrics").contains("\ninterlock_scan_findings{"));
    println!(
        "{what:<16} ready after {:>4.1?} at {:>4.1} MiB; after the first scan {:>4.1} MiB, at most {:>4.1} MiB",
        ready.0,
        ready.1,
        memory(&serve, "VmRSS"),
        memory(&serve, "VmHWM"),
    );
    serve.kill().unwrap();
    serve.wait().unwrap();
}

fn wait(mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(300), "it takes too long");
        std::thread::sleep(PAUSE);
    }
}

fn get(address: &str, path: &str) -> String {
    let mut answer = String::new();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// In MiB, of what the kernel says of a process.
fn memory(child: &Child, field: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}
