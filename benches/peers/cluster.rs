//! The control plane of the benchmark, with releases in it.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::certificate::connector;
use crate::load::Target;
use crate::plane::Plane;

/// Between two looks at something that takes its time.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Cluster {
    plane: Plane,
    /// The API server.
    pub(crate) target: Target,
    token: String,
}

impl Cluster {
    pub(crate) fn start() -> Result<Self> {
        let plane = Plane::start();
        let text = |name: &str| plane.ready()[name].as_str().with_context(|| format!("the plane has no {name}"));
        let address = text("server")?.trim_start_matches("https://").parse()?;
        let tls = connector(&fs::read_to_string(text("ca")?)?)?;
        let kubeconfig: Value = serde_saphyr::from_str(&fs::read_to_string(plane.kubeconfig())?)?;
        let token = kubeconfig["users"][0]["user"]["token"].as_str().context("admin has no token")?.to_owned();
        Ok(Self { target: Target { address, tls }, token, plane })
    }

    pub(crate) fn kubeconfig(&self) -> &str {
        self.plane.kubeconfig()
    }

    /// The process of the API server.
    pub(crate) fn api_server(&self) -> Result<u32> {
        Ok(self.plane.ready()["pids"]["kube-apiserver"].as_u64().context("no process id")?.try_into()?)
    }

    /// As admin. Returns its output.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl_with(arguments, "")
    }

    pub(crate) fn create(&self, object: &Value) -> Result<()> {
        self.kubectl_with(&["create", "-f", "-"], &object.to_string()).map(drop)
    }

    /// Repeats a command until it succeeds.
    pub(crate) fn until(&self, arguments: &[&str], deadline: Duration) -> Result<()> {
        let started = Instant::now();
        loop {
            match self.kubectl(arguments) {
                Ok(_) => return Ok(()),
                Err(error) if started.elapsed() > deadline => return Err(error),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// A request to the API server as admin, whose requests are exempt from its queues.
    pub(crate) fn request(&self, method: Method, path: &str, body: &Value) -> Result<Request<Full<Bytes>>> {
        let kind = if method == Method::PATCH { "application/strategic-merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let request = request.header("authorization", format!("Bearer {}", self.token)).header("content-type", kind);
        Ok(request.body(Full::new(Bytes::from(body.to_string())))?)
    }

    fn kubectl_with(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut kubectl = self.plane.kubectl();
        kubectl.args(arguments).env("KUBECONFIG", self.kubeconfig());
        let mut kubectl = kubectl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        kubectl.stdin.take().context("a pipe")?.write_all(input.as_bytes())?;
        let output = kubectl.wait_with_output()?;
        if !output.status.success() {
            bail!("kubectl {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A release, the objects that its manifest declares, and its record, whose status label is `deployed`.
    pub(crate) fn install(&self, release: &str, revision: u32, documents: &[Value]) -> Result<()> {
        for document in documents {
            let mut object = document.clone();
            object["metadata"]["namespace"] = NAMESPACE.into();
            object["metadata"]["annotations"] =
                json!({"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": NAMESPACE});
            self.create(&object)?;
        }
        self.create(&record(release, revision, documents)?)
    }
}

/// Where the releases are.
pub(crate) const NAMESPACE: &str = "shop";

/// The record of a release that declares these documents.
pub(crate) fn record(release: &str, revision: u32, documents: &[Value]) -> Result<Value> {
    let manifest: String =
        documents.iter().map(|document| format!("---\n# Source: web/templates/web.yaml\n{document}\n")).collect();
    let body = json!({
        "name": release, "info": {"status": "deployed", "last_deployed": "2026-11-20T10:00:00Z"},
        "chart": {"metadata": {"name": "web", "version": "1.2.3"}}, "config": {}, "version": revision,
        "namespace": NAMESPACE, "manifest": manifest,
    });
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(body.to_string().as_bytes())?;
    let payload = STANDARD.encode(STANDARD.encode(gzip.finish()?));
    ensure!(payload.len() < 1 << 20, "the record of {release} is too large for a Secret");
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "data": {"release": payload},
        "metadata": {
            "name": format!("sh.helm.release.v1.{release}.v{revision}"), "namespace": NAMESPACE,
            "labels": {"name": release, "owner": "helm", "status": "deployed", "version": revision.to_string()},
        },
    }))
}
