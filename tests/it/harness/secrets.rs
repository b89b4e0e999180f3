//! Reviews with a secret wherever an object has room for one.

use serde_json::{Value, json};

use crate::harness::fixtures::{gzip, review, secret};
use crate::harness::standalone::Standalone;

pub(crate) const SECRET: &str = "hunter2-is-not-for-the-log";

/// The body of a record with secrets in its manifest, values and description.
fn body(status: &str) -> Vec<u8> {
    let manifest =
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: web}}\nstringData: {{password: {SECRET}}}\n");
    let body = json!({
        "name": "web", "version": 1, "namespace": "shop", "manifest": manifest, "config": {"password": SECRET},
        "info": {"status": status, "description": SECRET, "notes": SECRET},
        "chart": {"metadata": {"name": "shop", "version": "1.0.0"}, "values": {"password": SECRET}},
    });
    body.to_string().into_bytes()
}

pub(crate) fn record(status: &str) -> Value {
    secret(status, &gzip(&body(status)))
}

/// A Secret of a release, with this value.
fn managed(value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringData": {"password": value},
        "data": {"password": value},
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "2c0d", "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"},
        },
    })
}

/// A HelmRelease that cannot be parsed.
fn broken_declaration() -> Value {
    let spec = json!({"releaseName": {"password": SECRET}, "install": SECRET, "values": {"password": SECRET}});
    let mut review = review("CREATE", None, Some(&json!({"metadata": SECRET, "spec": spec})));
    review["request"]["kind"] = json!({"group": "helm.toolkit.fluxcd.io", "version": "v2", "kind": "HelmRelease"});
    review["request"]["resource"] =
        json!({"group": "helm.toolkit.fluxcd.io", "version": "v2", "resource": "helmreleases"});
    review
}

/// Sends healthy, refused and broken requests, each with a secret in its object, and expects no reply to contain it.
/// Returns how many are decided.
pub(crate) async fn tell_secrets(server: &Standalone, headers: &[(&'static str, &str)]) -> usize {
    let mut unlabelled = record("deployed");
    unlabelled["metadata"]["labels"] = json!(SECRET);
    let mut undecodable = record("deployed");
    undecodable["data"]["release"] = json!(SECRET);
    let reviews = [
        review("CREATE", None, Some(&record("pending-install"))),
        review("UPDATE", Some(&record("pending-install")), Some(&record("deployed"))),
        review("UPDATE", Some(&managed("before")), Some(&managed(SECRET))),
        review("UPDATE", Some(&managed(SECRET)), Some(&managed("after"))),
        review("DELETE", Some(&record("deployed")), None),
        review("UPDATE", Some(&record("deployed")), Some(&undecodable)),
        review("UPDATE", Some(&record("deployed")), Some(&unlabelled)),
        broken_declaration(),
        json!({"request": SECRET}),
    ];
    let mut decided = 0;
    for review in reviews {
        let stamped = server.post("/mutate", review.to_string(), headers).await;
        let answer = server.post("/validate", review.to_string(), headers).await;
        for reply in [&stamped, &answer] {
            let reply = String::from_utf8_lossy(reply);
            assert!(!reply.contains(SECRET), "{reply}");
        }
        decided += usize::from(serde_json::from_slice::<Value>(&answer).is_ok());
    }
    decided
}
