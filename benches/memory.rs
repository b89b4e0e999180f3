//! What `interlock serve` takes of memory in front of an empty cluster, of one in which a tenant has stored HelmReleases as large as an
//! object can be, of one with Applications of Argo CD and Kustomizations, and of one with many releases:
//!
//!     cargo bench --bench memory [-- RELEASES]
//!
//! 10,000 releases of three records unless told otherwise, which the test tool writes straight into an etcd. Needs
//! `target/controlplane/`, which the e2e tests build. More than 400 MiB in front of the HelmReleases end the run with an error.

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
use serde_json::{Value, json};

/// How many HelmReleases a tenant stores, and how large each is, in bytes.
const HOSTILE: [usize; 2] = [8, 48];
const HOSTILE_BYTES: usize = 1_300_000;

/// The most that a replica may take in front of them, in MiB.
const MAX_MEMORY: f64 = 400.0;

/// How many Applications and Kustomizations there are, and how many objects each applies.
const APPLIERS: usize = 1_000;
const APPLIED: usize = 20;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(200);

fn main() {
    let (releases, plane) = (releases(), Plane::start());
    // Where the replicas agree on a leader, and where its overrides are defined.
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/base");
    for file in ["namespace.yaml", "releaseoverrides.yaml"] {
        assert!(kubectl(&plane, &["apply", "-f", base.join(file).to_str().unwrap()]));
    }
    measure("no release", &plane);
    hostile(&plane);
    appliers(&plane);
    plane.fill(releases, &[]);
    measure(&format!("{releases} releases"), &plane);
}

/// HelmReleases of nothing but empty values, which every replica lists when it starts, and the leader in its scan.
fn hostile(plane: &Plane) {
    let definition = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/harness/crds/helmreleases.yaml");
    assert!(kubectl(plane, &["apply", "-f", definition.to_str().unwrap()]));
    let dir = tempfile::tempdir().unwrap();
    let values = format!("{}{{}}", "{},".repeat(HOSTILE_BYTES / 3));
    let mut stored = 0;
    for count in HOSTILE {
        while stored < count {
            let file = dir.path().join("helmrelease.json");
            let object = format!(
                r#"{{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease",
                "metadata":{{"name":"r{stored}","namespace":"default"}},
                "spec":{{"interval":"10m","chartRef":{{"kind":"OCIRepository","name":"a"}},"values":{{"a":[{values}]}}}}}}"#
            );
            fs::write(&file, object).unwrap();
            // A new definition takes a moment until it is served.
            wait(|| kubectl(plane, &["create", "-f", file.to_str().unwrap()]));
            stored += 1;
        }
        let most = measure(&format!("{count} HelmReleases of 1.3 MB"), plane);
        assert!(most < MAX_MEMORY, "{most} MiB");
    }
    assert!(kubectl(plane, &["delete", "helmreleases", "--all", "-n", "default"]));
}

/// Applications and Kustomizations after a sync, and a Deployment of each Kustomization, as every replica watches those.
fn appliers(plane: &Plane) {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, items: Vec<Value>| {
        let file = dir.path().join(name);
        fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()).unwrap();
        file.to_str().unwrap().to_owned()
    };
    for kind in ["applications", "kustomizations"] {
        let definition = format!("{}/tests/e2e/harness/crds/{kind}.yaml", env!("CARGO_MANIFEST_DIR"));
        assert!(kubectl(plane, &["apply", "-f", &definition]));
    }
    let objects =
        write("objects", (0..APPLIERS).flat_map(|number| [application(number), deployment(number)]).collect());
    let kustomizations = write("kustomizations", (0..APPLIERS).map(kustomization).collect());
    // A new definition takes a moment until it is served.
    wait(|| kubectl(plane, &["get", "applications,kustomizations"]));
    assert!(kubectl(plane, &["create", "-f", &objects, "-f", &kustomizations]));
    assert!(kubectl(plane, &["replace", "--subresource=status", "-f", &kustomizations]));
    measure(&format!("{APPLIERS} of Argo CD and Flux each"), plane);
}

fn application(number: usize) -> Value {
    let of = |object: usize| {
        json!({"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "default",
        "name": format!("argo-{number}-{object}"), "status": "Synced", "health": {"status": "Healthy"}})
    };
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": format!("app-{number}"), "namespace": "default"},
        "spec": {"project": "default", "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            "source": {"repoURL": "https://example.com/shop.git", "path": "app", "targetRevision": "main"}},
        "status": {"resources": (0..APPLIED).map(of).collect::<Vec<_>>()}})
}

fn kustomization(number: usize) -> Value {
    let of = |object: usize| json!({"id": format!("default_flux-{number}-{object}_apps_Deployment"), "v": "v1"});
    json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": format!("shop-{number}"), "namespace": "default"},
        "spec": {"interval": "10m", "prune": true, "path": "./shop", "sourceRef": {"kind": "GitRepository", "name": "shop"}},
        "status": {"inventory": {"entries": (0..APPLIED).map(of).collect::<Vec<_>>()}}})
}

fn deployment(number: usize) -> Value {
    let name = format!("flux-{number}-0");
    let labels = json!({"kustomize.toolkit.fluxcd.io/name": format!("shop-{number}"), "kustomize.toolkit.fluxcd.io/namespace": "default"});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "app", "image": "registry.invalid/app:1"}]}}}})
}

fn kubectl(plane: &Plane, arguments: &[&str]) -> bool {
    let mut kubectl = plane.kubectl();
    kubectl.args(arguments).env("KUBECONFIG", plane.kubeconfig());
    kubectl.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

/// Starts a server, and tells what it takes once it is ready, and once its first scan as the leader is over. Returns the most of it.
fn measure(what: &str, plane: &Plane) -> f64 {
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
    let most = memory(&serve, "VmHWM");
    println!(
        "{what:<30} ready after {:>4.1?} at {:>4.1} MiB; after the first scan {:>4.1} MiB, at most {:>4.1} MiB",
        ready.0,
        ready.1,
        memory(&serve, "VmRSS"),
        most,
    );
    serve.kill().unwrap();
    serve.wait().unwrap();
    most
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
