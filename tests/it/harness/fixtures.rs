//! Reviews of release records, as values.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

/// The name of the record of these reviews.
pub(crate) const NAME: &str = "sh.helm.release.v1.web.v1";

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// The JSON of the body of a record.
pub(crate) fn body(status: &str) -> String {
    json!({
        "name": "web", "version": 1, "namespace": "shop", "manifest": "", "info": {"status": status},
        "chart": {"metadata": {"name": "shop", "version": "1.0.0"}},
    })
    .to_string()
}

/// The Secret of a record, with `packed` in place of the gzip data.
pub(crate) fn secret(status: &str, packed: &[u8]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "data": {"release": STANDARD.encode(STANDARD.encode(packed))},
        "metadata": {
            "name": NAME, "namespace": "shop", "creationTimestamp": "2026-11-21T10:00:00Z",
            "labels": {"name": "web", "owner": "helm", "status": status, "version": "1"},
        },
    })
}

/// A review of a Secret.
pub(crate) fn review(operation: &str, old: Option<&Value>, new: Option<&Value>) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u1", "operation": operation, "name": NAME, "namespace": "shop", "object": new, "oldObject": old,
            "kind": {"group": "", "version": "v1", "kind": "Secret"},
            "resource": {"group": "", "version": "v1", "resource": "secrets"},
            "userInfo": {"username": "alice"},
        },
    })
}

/// The CREATE of a healthy record in a status.
pub(crate) fn creation(status: &str) -> Value {
    review("CREATE", None, Some(&secret(status, &gzip(body(status).as_bytes()))))
}
