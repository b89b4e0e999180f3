//! The built binary as a server without a cluster, in a directory of its own.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::client::{Answer, Client, Connection, request};

/// A running server; killed when dropped.
pub(crate) struct Standalone {
    child: Child,
    dir: TempDir,
    client: Client,
    /// The port of probes and metrics.
    admin: SocketAddr,
}

impl Standalone {
    /// Starts one and waits until it is ready.
    pub(crate) fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_interlock"));
        command.arg("serve").args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]).args(arguments);
        // Variables of the environment in which the tests run.
        for name in ["INTERLOCK_LOG", "INTERLOCK_LOG_FORMAT", "KUBERNETES_SERVICE_HOST", "INTERLOCK_KUBECONFIG"] {
            command.env_remove(name);
        }
        command.envs(environment.iter().copied()).current_dir(&dir).stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(File::create(dir.path().join("log")).unwrap());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not ready: {line}"));
        let ca = fs::read_to_string(dir.path().join(ready["ca"].as_str().unwrap())).unwrap();
        let client = Client::new(ready["listen"].as_str().unwrap().parse().unwrap(), &ca);
        let admin = ready["admin"].as_str().unwrap().parse().unwrap();
        Self { child, dir, client, admin }
    }

    /// Sends a body to one half of the webhook, with further headers.
    pub(crate) async fn post(&self, path: &str, body: String, headers: &[(&'static str, &str)]) -> Bytes {
        let mut request = request(::http::Method::POST, path, Some("application/json"), body.into());
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        self.client.connect().await.send(request).await.unwrap().body
    }

    /// A GET to the port of reviews.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.client.connect().await.get(path).await
    }

    /// A request to the admin port.
    pub(crate) async fn admin(&self, method: ::http::Method, path: &str, host: &str) -> Answer {
        let mut request = request(method, path, None, Bytes::new());
        request.headers_mut().insert("host", host.parse().unwrap());
        Connection::plain(self.admin).await.send(request).await.unwrap()
    }

    pub(crate) async fn metrics(&self) -> String {
        Connection::plain(self.admin).await.get("/metrics").await.text().to_owned()
    }

    /// A connection to the port of reviews.
    pub(crate) async fn connection(&self) -> Connection {
        self.client.connect().await
    }

    /// The number of its threads.
    pub(crate) fn threads(&self) -> usize {
        fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().count()
    }

    /// The most memory that it ever had, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    }

    /// SIGTERM. Returns the log once the server has ended.
    pub(crate) fn stop(mut self) -> String {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
        fs::read_to_string(self.dir.path().join("log")).unwrap()
    }
}

impl Drop for Standalone {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
