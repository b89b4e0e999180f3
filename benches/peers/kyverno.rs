//! Kyverno: its admission controller in front of the plane, with the rules as two `ValidatingPolicy`s.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::cluster::Cluster;
use crate::peer::{Peer, free_port};
use crate::policies;
use crate::programs::KYVERNO;

const NAMESPACE: &str = "kyverno";
/// As its chart sets them.
const ENVIRONMENT: [(&str, &str); 7] = [
    ("KYVERNO_NAMESPACE", NAMESPACE),
    ("KYVERNO_DEPLOYMENT", "kyverno-admission-controller"),
    ("KYVERNO_POD_NAME", "kyverno-admission-controller-1"),
    ("KYVERNO_SERVICEACCOUNT_NAME", "kyverno-admission-controller"),
    ("KYVERNO_SVC", "kyverno-svc"),
    ("INIT_CONFIG", "kyverno"),
    ("METRICS_CONFIG", "kyverno-metrics"),
];
/// How long the API server may take to serve its kinds.
const DEFINED: Duration = Duration::from_secs(60);
/// The policies are named in the path, as in the registration that Kyverno writes for itself.
const PATH: &str = "/vpol/peers-images/peers-records";

pub(crate) fn start(cluster: &Cluster) -> Result<Peer> {
    let built = KYVERNO.built()?;
    cluster.kubectl(&["create", "-R", "-f", &built.sources.join("config/crds").to_string_lossy()])?;
    cluster.kubectl(&["create", "-f", &policies::file("kyverno-cluster.yaml").to_string_lossy()])?;
    cluster.until(&["get", "validatingpolicies.policies.kyverno.io"], DEFINED)?;
    cluster.kubectl(&["create", "-f", &policies::file("kyverno.yaml").to_string_lossy()])?;
    let mut command = Command::new(built.program);
    command.envs(ENVIRONMENT);
    command.args(["--kubeconfig", cluster.kubeconfig(), "--webhookServerHost=127.0.0.1", "--serverIP=127.0.0.1"]);
    command.args(["--caSecretName=ca", "--tlsSecretName=tls", "--disableCertManagerController"]);
    // The chart's own setting. Reports are switched off: each would be a write of its own to the API server for every allowed
    // review, and no other peer has them.
    command.args(["--omitEvents=PolicyApplied,PolicySkipped", "--admissionReports=false"]);
    command.args(["--disableLogColor", "--metricsHost=127.0.0.1", "--controllerRuntimeMetricsAddress=0"]);
    command.arg(format!("--metricsPort={}", free_port()?));
    let mut secret = Ok(());
    let peer = Peer::addressed(format!("Kyverno {}", KYVERNO.version), command, PATH, |command, dir, port| {
        command.arg(format!("--webhookServerPort={port}"));
        secret = certificates(cluster, dir);
    })?;
    secret.map(|()| peer)
}

/// Kyverno reads its certificate from Secrets. The leader writes them, and this is not the leader.
fn certificates(cluster: &Cluster, dir: &Path) -> Result<()> {
    let encoded = |file: &str| anyhow::Ok(STANDARD.encode(fs::read(dir.join(file))?));
    for name in ["ca", "tls"] {
        cluster.create(&json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "data": {"tls.crt": encoded("tls.crt")?, "tls.key": encoded("tls.key")?},
        }))?;
    }
    Ok(())
}
