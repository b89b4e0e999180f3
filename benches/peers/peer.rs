//! A webhook in a process of its own.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tempfile::TempDir;
use tokio_rustls::TlsConnector;

use crate::process;

/// The argument with which this program is the null webhook.
pub(crate) const NULL_WEBHOOK: &str = "null-webhook";

/// Killed when dropped.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    pub(crate) tls: TlsConnector,
    /// Where reviews are sent.
    pub(crate) path: &'static str,
    child: Child,
    _dir: TempDir,
}

impl Peer {
    pub(crate) fn null() -> Result<Self> {
        let (dir, mut command) = (tempfile::tempdir()?, Command::new(std::env::current_exe()?));
        command.arg(NULL_WEBHOOK);
        let (child, ready) = start(command, &dir)?;
        let ca = ready["certificate"].as_str().context("no certificate")?;
        let (address, tls) = (address(&ready)?, connector(ca)?);
        Ok(Self { name: "null webhook", address, tls, path: "/", child, _dir: dir })
    }

    /// In front of a cluster, as in production.
    pub(crate) fn interlock(kubeconfig: &str) -> Result<Self> {
        let (dir, mut command) = (tempfile::tempdir()?, Command::new(env!("CARGO_BIN_EXE_interlock")));
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--drain-delay", "0"]);
        command.args(["--certs", "certs", "--kubeconfig", kubeconfig]);
        let (child, ready) = start(command, &dir)?;
        let ca = fs::read_to_string(dir.path().join(ready["ca"].as_str().context("no CA")?))?;
        let (address, tls) = (address(&ready)?, connector(&ca)?);
        Ok(Self { name: "interlock", address, tls, path: "/validate?timeout=3s", child, _dir: dir })
    }

    pub(crate) fn processor_time(&self) -> Result<Duration> {
        process::processor_time(self.child.id())
    }

    /// In use, and the most that ever was, in MiB.
    pub(crate) fn memory(&self) -> Result<(f64, f64)> {
        process::memory(self.child.id())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Starts a program, and reads the line of JSON that it prints once it listens.
fn start(mut command: Command, dir: &TempDir) -> Result<(Child, Value)> {
    let log = File::create(dir.path().join("log"))?;
    let mut child = command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
    Ok((child, serde_json::from_str(&line).with_context(|| format!("it printed {line:?}"))?))
}

fn address(ready: &Value) -> Result<SocketAddr> {
    Ok(ready["listen"].as_str().context("no address")?.parse()?)
}

fn connector(ca_pem: &str) -> Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes())?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
