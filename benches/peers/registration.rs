//! Who judges the writes to the API server. Every webhook is registered in the same way, one at a time.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::cluster::Cluster;
use crate::load::once;
use crate::peer::Peer;
use crate::policies;
use crate::selection::{ADMISSION_POLICY, NOBODY};

/// The entries of Interlock's registration that are copied: objects of releases, and their records.
const ENTRIES: [&str; 3] =
    ["create-delete.records.interlock.dev", "update.records.interlock.dev", "objects.interlock.dev"];
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const PROBE: &str = "/api/v1/namespaces/shop/configmaps/probe?dryRun=All";
const WEB: &str = "/apis/apps/v1/namespaces/shop/deployments/web?dryRun=All";
/// How long the API server may take to follow a change of its registrations.
const FOLLOWED: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) enum Judge<'a> {
    Nobody,
    AdmissionPolicy,
    Webhook(&'a Peer),
}

impl Judge<'_> {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Nobody => NOBODY,
            Self::AdmissionPolicy => ADMISSION_POLICY,
            Self::Webhook(peer) => &peer.name,
        }
    }

    pub(crate) fn process(&self) -> Option<u32> {
        match self {
            Self::Webhook(peer) => Some(peer.pid()),
            _ => None,
        }
    }

    /// Returns when the API server asks this judge, and it has refused a changed image and allowed a changed label.
    pub(crate) async fn register(&self, cluster: &Cluster) -> Result<()> {
        match self {
            Self::Nobody => return Ok(()),
            Self::AdmissionPolicy => {
                cluster.kubectl(&["create", "-f", &policies::file("admission-policy.yaml").to_string_lossy()])?;
            }
            Self::Webhook(peer) => {
                let request = cluster.request(Method::POST, CONFIGURATIONS, &configuration(peer)?)?;
                let (status, body) = once(&cluster.target, request).await?;
                ensure!(status == StatusCode::CREATED, "not registered: {}", String::from_utf8_lossy(&body));
            }
        }
        self.await_effect(cluster, true).await?;
        let refuses = !matches!(self, Self::Webhook(peer) if !peer.refuses);
        let image = refusal(cluster, WEB, &image()).await?;
        ensure!(image.is_some() == refuses, "{}: a changed image has the answer {image:?}", self.name());
        let label = refusal(cluster, WEB, &label()).await?;
        ensure!(label.is_none(), "{} refuses a changed label: {label:?}", self.name());
        Ok(())
    }

    /// Returns when the API server does not ask this judge any more.
    pub(crate) async fn remove(&self, cluster: &Cluster) -> Result<()> {
        match self {
            Self::Nobody => return Ok(()),
            Self::AdmissionPolicy => {
                cluster.kubectl(&["delete", "-f", &policies::file("admission-policy.yaml").to_string_lossy()])?;
            }
            Self::Webhook(_) => {
                let path = format!("{CONFIGURATIONS}/peer");
                let request = cluster.request(Method::DELETE, &path, &json!({}))?;
                let (status, body) = once(&cluster.target, request).await?;
                ensure!(status == StatusCode::OK, "not removed: {}", String::from_utf8_lossy(&body));
            }
        }
        self.await_effect(cluster, false).await
    }

    /// The API server watches its registrations, so a change takes effect some moments later. The null webhook refuses nothing:
    /// each registration has an entry that refuses every write of one ConfigMap.
    async fn await_effect(&self, cluster: &Cluster, refused: bool) -> Result<()> {
        let (path, patch) = match self {
            Self::Webhook(_) => (PROBE, label()),
            _ => (WEB, image()),
        };
        let started = Instant::now();
        while refusal(cluster, path, &patch).await?.is_some() != refused {
            ensure!(started.elapsed() < FOLLOWED, "{}: no change after {FOLLOWED:?}", self.name());
            sleep(PAUSE).await;
        }
        Ok(())
    }
}

/// Creates the ConfigMap of the probe.
pub(crate) fn prepare(cluster: &Cluster) -> Result<()> {
    let metadata = json!({"name": "probe", "namespace": "shop", "labels": {"peers": "probe"}});
    cluster.create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
}

/// Why a write is refused, if it is.
async fn refusal(cluster: &Cluster, path: &str, patch: &Value) -> Result<Option<String>> {
    let (status, body) = once(&cluster.target, cluster.request(Method::PATCH, path, patch)?).await?;
    Ok((status != StatusCode::OK).then(|| String::from_utf8_lossy(&body).into_owned()))
}

/// As `kubectl set image` sends it.
fn image() -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "registry.example.com/shop/web:evil"}]}}}})
}

fn label() -> Value {
    json!({"metadata": {"labels": {"team": "shop"}}})
}

fn configuration(peer: &Peer) -> Result<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/base/validating-webhooks.yaml");
    let mut configuration: Value = serde_saphyr::from_str(&std::fs::read_to_string(file)?)?;
    configuration["metadata"] = json!({"name": "peer"});
    let entries = configuration["webhooks"].as_array_mut().context("no entries")?;
    entries.retain(|entry| ENTRIES.iter().any(|name| entry["name"] == *name));
    ensure!(entries.len() == ENTRIES.len(), "Interlock's registration has other entries");
    for entry in &mut *entries {
        entry["clientConfig"] = json!({"url": peer.url(), "caBundle": STANDARD.encode(&peer.ca)});
        // A call that fails would otherwise count as a fast one.
        entry["failurePolicy"] = "Fail".into();
        entry["timeoutSeconds"] = 10.into();
    }
    entries.push(json!({
        "name": "probe.peers.example.com", "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "objectSelector": {"matchLabels": {"peers": "probe"}}, "timeoutSeconds": 1,
        "rules": [{"operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        // Nobody listens there: the port is reserved for the discard protocol.
        "clientConfig": {"url": "https://127.0.0.1:9/"},
    }));
    Ok(configuration)
}
