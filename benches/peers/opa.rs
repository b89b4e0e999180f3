//! OPA: one file of rules, and no cluster.

use std::process::Command;

use anyhow::Result;

use crate::cluster::Cluster;
use crate::peer::Peer;
use crate::policies;
use crate::programs::OPA;

pub(crate) fn start(_: &Cluster) -> Result<Peer> {
    let mut command = Command::new(OPA.built()?.program);
    command.args(["run", "--server", "--skip-version-check", "--log-level=error"]);
    Peer::addressed(format!("OPA {}", OPA.version), command, "/", |command, dir, port| {
        command.arg(format!("--addr=https://127.0.0.1:{port}"));
        command.arg("--tls-cert-file").arg(dir.join("tls.crt"));
        command.arg("--tls-private-key-file").arg(dir.join("tls.key"));
        command.arg(policies::file("opa.rego"));
    })
}
