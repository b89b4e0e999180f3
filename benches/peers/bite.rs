//! What a peer must answer before it is measured: its rules refuse what they are for, and nothing beside it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::cluster::record;
use crate::edits;
use crate::load::once;
use crate::peer::Peer;

/// How long a peer may take from its start to its first review.
const READY: Duration = Duration::from_secs(120);
/// Between two attempts: the resolution of the time to readiness.
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Deserialize)]
struct Review {
    response: Response,
}

#[derive(Deserialize)]
struct Response {
    allowed: bool,
}

/// Waits until the peer judges by its rules, and proves that it does. Sets the time that this took.
pub(crate) async fn prove(peer: &mut Peer) -> Result<()> {
    let image = edits::deployment().review();
    let waiting = async {
        while judge(peer, &image).await.ok() != Some(!peer.refuses) {
            peer.still_runs()?;
            sleep(PAUSE).await;
        }
        anyhow::Ok(())
    };
    match timeout(READY, waiting).await {
        Ok(ready) => ready?,
        Err(_) => {
            let last = judge(peer, &image).await;
            anyhow::bail!("not ready after {READY:.0?}; to a changed image it answers {last:?}; {}", peer.last_words());
        }
    }
    peer.ready = peer.age();
    for (write, review, refused) in [
        ("a changed image", image, true),
        ("a changed label", edits::deployment_label().review(), false),
        ("a changed status label", record_review("status", "superseded")?, true),
        ("a new label of a record", record_review("team", "shop")?, false),
    ] {
        let allowed = judge(peer, &review).await.with_context(|| format!("{write} has no answer"))?;
        let right = allowed != (refused && peer.refuses);
        ensure!(right, "its rule does not work: {write} is {}", if allowed { "allowed" } else { "refused" });
    }
    Ok(())
}

/// Whether the peer allows it.
async fn judge(peer: &Peer, review: &[u8]) -> Result<bool> {
    let (status, body) = once(&peer.target, request(peer.path, Bytes::copy_from_slice(review))?).await?;
    ensure!(status == StatusCode::OK, "{status}: {}", String::from_utf8_lossy(&body));
    Ok(serde_json::from_slice::<Review>(&body)?.response.allowed)
}

/// A review as the API server sends it.
pub(crate) fn request(path: &str, review: Bytes) -> Result<Request<Full<Bytes>>> {
    let request = Request::post(path).header("host", "localhost").header("content-type", "application/json");
    Ok(request.body(Full::new(review))?)
}

/// An edit by a person of one label of the record of `web`.
fn record_review(label: &str, value: &str) -> Result<Vec<u8>> {
    let old = record("web", 6, &[edits::deployment().document])?;
    let mut new = old.clone();
    new["metadata"]["labels"][label] = value.into();
    let kind: Value = json!({"group": "", "version": "v1", "kind": "Secret"});
    Ok(json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "UPDATE", "name": old["metadata"]["name"], "namespace": "shop", "kind": kind,
            "resource": {"group": "", "version": "v1", "resource": "secrets"}, "userInfo": {"username": "alice"},
            "object": new, "oldObject": old,
        },
    })
    .to_string()
    .into_bytes())
}
