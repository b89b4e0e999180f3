//! A webhook in a process of its own.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use crate::certificate::{Certificate, connector};
use crate::cluster::Cluster;
use crate::load::Target;
use crate::process;

/// The argument with which this program is the null webhook.
pub(crate) const NULL_WEBHOOK: &str = "null-webhook";
/// Lines of a log that are shown when a peer ends too early.
const LAST: usize = 3;

pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) ca: String,
    /// Where reviews are sent.
    pub(crate) path: &'static str,
    /// Whether it has rules.
    pub(crate) refuses: bool,
    /// From the start of its process to the first review that it answered by its rules.
    pub(crate) ready: Duration,
    /// Its memory before it was loaded, in MiB.
    pub(crate) at_rest: f64,
    process: Process,
}

/// Killed when dropped.
struct Process {
    child: Child,
    dir: TempDir,
    started: Instant,
}

impl Peer {
    pub(crate) fn null() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(NULL_WEBHOOK);
        let ca = |_: &Path, ready: &Value| Ok(ready["certificate"].as_str().context("no certificate")?.to_owned());
        let null = Self::announced("null webhook", command, "/", ca)?;
        Ok(Self { refuses: false, ..null })
    }

    /// In front of a cluster, as in production.
    pub(crate) fn interlock(cluster: &Cluster) -> Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_interlock"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--drain-delay", "0"]);
        command.args(["--certs", "certs", "--kubeconfig", cluster.kubeconfig()]);
        let ca = |dir: &Path, ready: &Value| Ok(fs::read_to_string(dir.join(ready["ca"].as_str().context("no CA")?))?);
        Self::announced(concat!("Interlock ", env!("CARGO_PKG_VERSION")), command, "/validate?timeout=3s", ca)
    }

    /// A program that takes its address and a certificate: `arguments` adds them, given the directory with `tls.crt` and
    /// `tls.key` and the port.
    pub(crate) fn addressed(
        name: String,
        mut command: Command,
        path: &'static str,
        arguments: impl FnOnce(&mut Command, &Path, u16),
    ) -> Result<Self> {
        let (dir, own) = (tempfile::tempdir()?, Certificate::self_signed()?);
        fs::write(dir.path().join("tls.crt"), &own.certificate)?;
        fs::write(dir.path().join("tls.key"), &own.key)?;
        let port = free_port()?;
        arguments(&mut command, dir.path(), port);
        let log = File::create(dir.path().join("log"))?;
        command.stdout(log.try_clone()?).stderr(log);
        let process = Process::start(command, dir)?;
        Self::of(name, SocketAddr::from((Ipv4Addr::LOCALHOST, port)), own.certificate, path, process)
    }

    /// A program that prints its address in a line of JSON once it listens.
    fn announced(
        name: &str,
        mut command: Command,
        path: &'static str,
        ca: impl FnOnce(&Path, &Value) -> Result<String>,
    ) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let log = File::create(dir.path().join("log"))?;
        command.stdout(Stdio::piped()).stderr(log);
        let mut process = Process::start(command, dir)?;
        let mut line = String::new();
        BufReader::new(process.child.stdout.take().context("no output")?).read_line(&mut line)?;
        let ready: Value = serde_json::from_str(&line).with_context(|| format!("{name} printed {line:?}"))?;
        let address = ready["listen"].as_str().context("no address")?.parse()?;
        let ca = ca(process.dir.path(), &ready)?;
        Self::of(name.to_owned(), address, ca, path, process)
    }

    fn of(name: String, address: SocketAddr, ca: String, path: &'static str, process: Process) -> Result<Self> {
        let target = Target { address, tls: connector(&ca)? };
        Ok(Self { name, target, ca, path, refuses: true, ready: Duration::ZERO, at_rest: 0.0, process })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// Since its start.
    pub(crate) fn age(&self) -> Duration {
        self.process.started.elapsed()
    }

    /// Its memory now, in MiB.
    pub(crate) fn memory(&self) -> Result<f64> {
        process::memory(self.pid()).map(|(now, _)| now)
    }

    /// Where the API server finds it.
    pub(crate) fn url(&self) -> String {
        // The API server adds its time-out itself.
        format!("https://{}{}", self.target.address, self.path.split('?').next().unwrap_or_default())
    }

    /// An error with the end of its log, if it has ended.
    pub(crate) fn still_runs(&mut self) -> Result<()> {
        let Some(status) = self.process.child.try_wait()? else { return Ok(()) };
        bail!("{} ended ({status}): {}", self.name, self.last_words());
    }

    /// The end of its log.
    pub(crate) fn last_words(&self) -> String {
        let log = fs::read_to_string(self.process.dir.path().join("log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LAST)..].join(" | ")
    }
}

impl Process {
    fn start(mut command: Command, dir: TempDir) -> Result<Self> {
        let started = Instant::now();
        let child = command.current_dir(&dir).stdin(Stdio::null()).spawn()?;
        Ok(Self { child, dir, started })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
