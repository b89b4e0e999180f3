//! A real control plane with the webhook registered, to try Interlock on. Ctrl-C ends it.
//!
//! `cargo run --release --example playground` needs only Go, for the first build of the control plane and of helm. It is
//! the harness of the e2e tests, with instructions for people on the terminal. Cargo does not build the program `interlock`
//! for an example, so this program also runs `interlock serve`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    missing_docs,
    reason = "the harness is written for tests, and this example uses only a part of it"
)]

#[path = "../tests/e2e/harness"]
mod harness {
    pub(crate) mod assets;
    pub(crate) mod chart;
    pub(crate) mod clients;
    pub(crate) mod eventually;
    pub(crate) mod kubectl_server;
    pub(crate) mod plane;
    pub(crate) mod process;
    pub(crate) mod profile;
    pub(crate) mod records;
    pub(crate) mod webhook;
}

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use harness::assets::Assets;
use harness::chart::Chart;
use harness::plane::Plane;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(command) if command == "serve" => return release_interlock::cli::main(),
        Some(_) => {
            eprintln!("playground: no arguments are supported");
            return ExitCode::from(2);
        }
        None => {}
    }
    match play() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("playground: {error}");
            ExitCode::from(2)
        }
    }
}

fn play() -> Result<(), String> {
    let assets = harness::assets::prepared()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    // Listen before anything is started that must be stopped. The build above may be interrupted at any point.
    let end = {
        let _inside = runtime.enter();
        End::listen().map_err(|e| format!("cannot listen for signals: {e}"))?
    };
    let plane = Plane::shipped("playground")?;
    let chart = Chart::new("demo");
    let programs = link_programs(assets, plane.dir())?;
    io::stdout()
        .write_all(instructions(&plane, assets, &programs, chart.path()).as_bytes())
        .map_err(|e| format!("cannot print: {e}"))?;
    runtime.block_on(end.reached());
    eprintln!("playground: stopping");
    Ok(())
}

/// The end of the playground: a signal such as Ctrl-C, or the end of standard input if that is not a terminal.
struct End {
    signals: [Signal; 3],
    input: oneshot::Receiver<()>,
}

impl End {
    fn listen() -> io::Result<Self> {
        let signals =
            [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?];
        let (closed, input) = oneshot::channel();
        std::thread::spawn(move || {
            if io::stdin().is_terminal() {
                // The user may type into the terminal. Dropping the sender would end the playground.
                std::mem::forget(closed);
            } else {
                let _ = io::copy(&mut io::stdin(), &mut io::sink());
            }
        });
        Ok(Self { signals, input })
    }

    async fn reached(self) {
        let Self { signals: [mut interrupt, mut terminate, mut hangup], input } = self;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
            _ = input => {}
        }
    }
}

/// Creates a directory with links to `helm3`, `helm4` and `kubectl`.
fn link_programs(assets: &Assets, dir: &Path) -> Result<PathBuf, String> {
    let bin = dir.join("bin");
    let link = || {
        fs::create_dir(&bin)?;
        symlink(&assets.helm3, bin.join("helm3"))?;
        symlink(&assets.helm4, bin.join("helm4"))?;
        symlink(&assets.kubectl, bin.join("kubectl"))
    };
    link().map_err(|e| format!("cannot create {}: {e}", bin.display()))?;
    Ok(bin)
}

/// The printed instructions. The e2e tests run the indented lines.
fn instructions(plane: &Plane, assets: &Assets, programs: &Path, chart: &str) -> String {
    let kubeconfig = |name| plane.person(name).kubeconfig().display().to_string();
    let (alice, bob, admin) = (kubeconfig("alice"), kubeconfig("bob"), kubeconfig("admin"));
    let (dir, log, programs) = (plane.dir().display(), plane.webhook().log_file().display(), programs.display());
    let Assets { kubectl, helm3, helm4, .. } = assets;
    let (kubectl, helm3, helm4) = (kubectl.display(), helm3.display(), helm4.display());
    format!(
        r#"
A Kubernetes control plane is running with Interlock, which uses policies/cluster.yaml.
There is no kubelet: pods become ready automatically.

Become alice in another terminal:

    export KUBECONFIG="{alice}"
    export KUBECACHEDIR="{dir}/cache"
    export PATH="{programs}:$PATH"

To become bob:    export KUBECONFIG="{bob}"
To become admin:  export KUBECONFIG="{admin}"

helm3 is {helm3}
helm4 is {helm4}
kubectl is {kubectl}
Interlock logs its decisions to {log}

1. Install a release, and look at its record, which names alice as the holder:

    helm4 install demo {chart} --wait
    kubectl get secret sh.helm.release.v1.demo.v1 -o jsonpath='{{.metadata.annotations}}'

2. Start an upgrade whose pods hang. Roll back as bob, which is refused. Then let the upgrade finish:

    kubectl label namespace default controlplane/pods=hang
    helm4 upgrade demo {chart} --set note=two --wait &
    kubectl wait --for=create secret/sh.helm.release.v1.demo.v2 --timeout=60s
    KUBECONFIG="{bob}" helm4 rollback demo 1
    kubectl label namespace default controlplane/pods-
    wait

3. Edit a record by hand, which is refused (helm finds the deployed record by this label):

    kubectl label secret sh.helm.release.v1.demo.v2 status=failed --overwrite

4. Scale the release's Deployment by hand, which is refused (the chart declares the replicas). Restart it, which is allowed:

    kubectl scale deployment demo --replicas=7
    kubectl rollout restart deployment demo

Ctrl-C stops everything and leaves nothing behind.
"#
    )
}
