//! Gatekeeper: its webhook in front of the plane, with the rules as one template in Rego.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::cluster::Cluster;
use crate::peer::{Peer, free_port};
use crate::policies;
use crate::programs::{Built, GATEKEEPER};

const NAMESPACE: &str = "gatekeeper-system";
/// Owns Gatekeeper's reports of its own status. Without it, the garbage collector deletes each as soon as it is written.
const POD: &str = "gatekeeper-controller-manager";
/// How long it may take to define the kind of the constraint.
const DEFINED: Duration = Duration::from_secs(60);

/// Gatekeeper makes a kind of the template, so it runs once before there is a constraint. The time to its readiness is that of
/// the second start, as of every restart.
pub(crate) fn start(cluster: &Cluster) -> Result<Peer> {
    let built = GATEKEEPER.built()?;
    cluster.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))?;
    cluster.until(&["get", "serviceaccount", "default", "-n", NAMESPACE], DEFINED)?;
    cluster.create(&json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD, "namespace": NAMESPACE},
        "spec": {"containers": [{"name": "manager", "image": "gatekeeper"}]},
    }))?;
    cluster.kubectl(&["create", "-f", &built.sources.join("charts/gatekeeper/crds").to_string_lossy()])?;
    cluster.until(&["get", "constrainttemplates"], DEFINED)?;
    cluster.kubectl(&["create", "-f", &policies::file("gatekeeper-template.yaml").to_string_lossy()])?;
    let mut first = launch(cluster, &built)?;
    let defined = cluster.until(&["get", "helmreleases.constraints.gatekeeper.sh"], DEFINED);
    first.still_runs()?;
    defined.with_context(|| first.last_words())?;
    cluster.kubectl(&["create", "-f", &policies::file("gatekeeper-constraint.yaml").to_string_lossy()])?;
    drop(first);
    launch(cluster, &built)
}

fn launch(cluster: &Cluster, built: &Built) -> Result<Peer> {
    let mut command = Command::new(&built.program);
    command.env("KUBECONFIG", cluster.kubeconfig()).env("POD_NAMESPACE", NAMESPACE).env("POD_NAME", POD);
    // As in its chart, without mutation. The certificate is made here.
    command.args(["--operation=webhook", "--operation=generate", "--disable-cert-rotation"]);
    command.args(["--host=127.0.0.1", "--health-addr=127.0.0.1:0", "--shutdown-delay=0"]);
    command.arg(format!("--prometheus-port={}", free_port()?));
    Peer::addressed(format!("Gatekeeper {}", GATEKEEPER.version), command, "/v1/admit", |command, dir, port| {
        command.arg(format!("--port={port}")).arg(format!("--cert-dir={}", dir.display()));
    })
}
