//! Stored records for tests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::release::Storage;

/// The manifest of a revision, with one object: the `A` with the name `a`.
#[must_use]
pub fn manifest(revision: u64) -> String {
    format!("apiVersion: v1\nkind: A\nmetadata:\n  name: a\nrevision: {revision}\n")
}

/// The object of a deployed record of the release `web`, for objects in the namespace `shop`.
#[must_use]
pub fn stored(
    storage: Storage,
    namespace: &str,
    revision: u64,
    target_namespace: Option<&str>,
    manifest: &str,
) -> Value {
    let body = json!({
        "name": "web", "version": revision, "namespace": "shop", "info": {"status": "deployed"}, "manifest": manifest,
    });
    let encoded = STANDARD.encode(body.to_string());
    let data = match storage {
        Storage::Secret => json!({"release": STANDARD.encode(encoded)}),
        Storage::ConfigMap => json!({"release": encoded}),
        Storage::Index => json!({"chunk": encoded}),
    };
    json!({
        "apiVersion": "v1", "kind": storage.kind(),
        "metadata": {
            "name": format!("sh.helm.release.v1.web.v{revision}"), "namespace": namespace,
            "uid": "u", "resourceVersion": "7",
            "labels": {
                "owner": storage.owner(), "type": "index", "name": "web", "version": revision.to_string(),
                "status": "deployed",
            },
            "annotations": target_namespace.map(|target| json!({"interlock.dev/target-namespace": target})),
        },
        "data": data,
    })
}
