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

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(200);

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
    let ready = line(&mut up);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let kubeconfig = text(&ready["kubeconfigs"]["admin"]);
    // Where the replicas agree on a leader, and where its overrides are defined.
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/base");
    for file in ["namespace.yaml", "releaseoverrides.yaml"] {
        let mut kubectl = Command::new(&controlplane);
        kubectl.args(["kubectl", "apply", "-f"]).arg(base.join(file)).env("KUBECONFIG", &kubeconfig);
        assert!(kubectl.stdout(Stdio::null()).status().unwrap().success());
    }

    measure("no release", &kubeconfig, dir.path());
    let bulk = ["bulk", "--etcd", &text(&ready["etcd"]), "--releases", &releases.to_string()];
    assert!(Command::new(&controlplane).args(bulk).stderr(Stdio::null()).status().unwrap().success());
    measure(&format!("{releases} releases"), &kubeconfig, dir.path());
    drop(up.stdin.take());
    up.wait().unwrap();
}

/// Starts a server, and tells what it takes once it is ready, and once its first scan as the leader is over.
fn measure(what: &str, kubeconfig: &str, dir: &Path) {
    let began = Instant::now();
    let mut serve = Command::new(env!("CARGO_BIN_EXE_interlock"))
        .args(["serve", "--kubeconfig", kubeconfig, "--drain-delay", "0"])
        .args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--certs"])
        .arg(dir.join("certs"))
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

/// The JSON line that a child prints when it is ready.
fn line(child: &mut Child) -> Value {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    serde_json::from_str(&line).expect("it is ready")
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
