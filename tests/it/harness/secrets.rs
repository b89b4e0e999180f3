//! Reviews with a secret wherever an object has room for one.

use serde_json::{Value, json};

use crate::harness::fixtures::{gzip, review, secret};
use crate::harness::standalone::Standalone;

pub(crate) const SECRET: &str = "hunter2-is-not-for-the-log";

/// The body of a record with secrets in its manifest, values and description.
fn body(status: &str) -> Vec<u8> {
    let documents = [secret_of_the_release(SECRET), widget(SECRET), deployment(SECRET)];
    let manifest = documents.map(|document| format!("---\n{document}\n")).concat();
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

/// The metadata of an object of the release, with this value in an annotation. Its fields are those of helm.
fn metadata(api_version: &str, value: &str, fields: Value) -> Value {
    json!({
        "name": "web", "namespace": "shop", "uid": "2c0d", "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {
            "meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop", "example.com/note": value,
        },
        "managedFields": [{
            "manager": "helm", "operation": "Apply", "apiVersion": api_version, "fieldsType": "FieldsV1", "fieldsV1": fields,
        }],
    })
}

/// A Secret of the release, with this value.
fn secret_of_the_release(value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringData": {"password": value},
        "data": {"password": value}, "metadata": metadata("v1", value, json!({"f:data": {"f:password": {}}})),
    })
}

/// A custom resource with this value as an item of a set, as a key of a list, and as a value.
fn widget(value: &str) -> Value {
    let tokens = json!({".": {}, (format!("v:\"{value}\"")): {}});
    let items = json!({".": {}, (format!("k:{{\"token\":\"{value}\"}}")): {".": {}, "f:token": {}, "f:size": {}}});
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": metadata("example.com/v1", value, json!({"f:spec": {"f:tokens": tokens, "f:items": items}})),
        "spec": {"tokens": [value], "items": [{"token": value, "size": value.len()}], "map": {"key": value}},
    })
}

fn deployment(value: &str) -> Value {
    let env = json!([{"name": "PASSWORD", "value": value}]);
    let container = json!({"name": "web", "image": "web:1", "args": [value], "command": ["run", value], "env": env});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("apps/v1", value, json!({"f:spec": {"f:template": {}}})),
        "spec": {"template": {"metadata": {"annotations": {"note": value}}, "spec": {"containers": [container]}}},
    })
}

/// The edit of an object that is called `web`.
fn edit(before: &Value, after: &Value) -> Value {
    of_kind(review("UPDATE", Some(before), Some(after)), after["kind"].as_str().unwrap())
}

/// The same review, of an object of this kind that is called `web`.
fn of_kind(mut review: Value, kind: &str) -> Value {
    let (group, version) = match kind {
        "Secret" | "Namespace" => ("", "v1"),
        "Deployment" => ("apps", "v1"),
        "Widget" => ("example.com", "v1"),
        "HelmRelease" => ("helm.toolkit.fluxcd.io", "v2"),
        "ClusterExtension" => ("olm.operatorframework.io", "v1"),
        "ReleaseOverride" => ("interlock.dev", "v1alpha1"),
        other => panic!("{other}"),
    };
    review["request"]["name"] = json!("web");
    review["request"]["kind"] = json!({"group": group, "version": version, "kind": kind});
    let resource = format!("{}s", kind.to_lowercase());
    review["request"]["resource"] = json!({"group": group, "version": version, "resource": resource});
    review
}

/// The edit of a HelmRelease, with this value wherever there is room for one.
fn helm_release(value: &str) -> Value {
    let target = json!({"kind": value, "name": format!("{value}\\pL"), "labelSelector": value});
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {"note": value}},
        "spec": {
            "releaseName": "web", "interval": value, "timeout": value, "values": {"password": value},
            "chart": {"spec": {"chart": "shop", "version": value, "sourceRef": {"kind": value, "name": "charts"}}},
            "upgrade": {"remediation": {"strategy": value, "retries": -1}, "force": true},
            "driftDetection": {"mode": "enabled", "ignore": [{"paths": [format!("/spec/{value}")], "target": target}]},
            "postRenderers": [{"kustomize": {"patches": [{"patch": value}]}}],
        },
    })
}

fn extension(value: &str) -> Value {
    let catalog =
        json!({"packageName": "web", "version": value, "channels": [value], "upgradeConstraintPolicy": value});
    json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": "web", "annotations": {"note": value}},
        "spec": {"namespace": "shop", "source": {"sourceType": "Catalog", "catalog": catalog}, "config": {"inline": {"a": value}}},
    })
}

/// An override that cannot be parsed.
fn broken_override() -> Value {
    let spec = json!({"release": "web", "rules": [SECRET], "reason": {"a": SECRET}, "expiresAt": SECRET});
    let object = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "ReleaseOverride", "spec": spec,
        "metadata": {"name": "web", "namespace": "shop"},
    });
    of_kind(review("CREATE", None, Some(&object)), "ReleaseOverride")
}

/// Records whose parts do not agree, or cannot be read.
fn broken_records() -> Vec<Value> {
    let with = |pointer: &str, value: &str| {
        let mut record = record("deployed");
        *record.pointer_mut(pointer).unwrap() = json!(value);
        review("UPDATE", Some(&self::record("deployed")), Some(&record))
    };
    let mut reviews: Vec<_> = ["/metadata/labels/status", "/metadata/labels/version", "/metadata/labels/name", "/type"]
        .map(|pointer| with(pointer, SECRET))
        .into();
    let unread = |member: &str, value: Value| {
        let mut body: Value = serde_json::from_slice(&body("deployed")).unwrap();
        body[member] = value;
        let record = secret("deployed", &gzip(body.to_string().as_bytes()));
        [review("UPDATE", Some(&self::record("deployed")), Some(&record)), review("CREATE", None, Some(&record))]
    };
    for (member, value) in [
        ("info", json!({"status": SECRET})),
        ("manifest", json!(format!("a: [{SECRET}\nb: {SECRET}: {SECRET}\n"))),
        ("manifest", json!({SECRET: SECRET})),
        ("hooks", json!(SECRET)),
        ("hooks", json!([{"manifest": format!("{SECRET}: {SECRET}: ["), "kind": "Job", "name": {"a": SECRET}}])),
        ("version", json!(SECRET)),
    ] {
        reviews.extend(unread(member, value));
    }
    let mut forged = record("pending-upgrade");
    forged["metadata"]["annotations"] =
        json!({"interlock.dev/holder": SECRET, "interlock.dev/started": SECRET, "interlock.dev/chart": SECRET});
    reviews.push(review("UPDATE", Some(&record("deployed")), Some(&forged)));
    reviews
}

/// Edits of what the release declares. All are refused once the record is deployed.
pub(crate) fn refused_edits() -> Vec<Value> {
    [secret_of_the_release as fn(&str) -> Value, widget, deployment]
        .into_iter()
        .flat_map(|object| {
            ["after".to_owned(), format!("new-{SECRET}")].map(|new| edit(&object(SECRET), &object(&new)))
        })
        .collect()
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
        review("DELETE", Some(&record("deployed")), None),
        review("UPDATE", Some(&record("deployed")), Some(&undecodable)),
        review("UPDATE", Some(&record("deployed")), Some(&unlabelled)),
        broken_declaration(),
        json!({"request": SECRET}),
    ];
    let namespace = |value: &str| json!({"kind": "Namespace", "metadata": {"name": "web", "annotations": {"interlock.dev/protected": value}}});
    let declarations = [
        edit(&helm_release("before"), &helm_release(SECRET)),
        edit(&helm_release(SECRET), &helm_release("after")),
        edit(&extension("1.0.0"), &extension(SECRET)),
        edit(&namespace(SECRET), &namespace("no")),
        broken_override(),
    ];
    let mut decided = 0;
    for review in reviews.into_iter().chain(refused_edits()).chain(broken_records()).chain(declarations) {
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
