//! What policies can match in each kind of request.

use serde_json::{Value, json};

use super::objects::web;
use super::scenario::rec;
use crate::effort::Effort;
use crate::facts::{Facts, RequestObjects};
use crate::owners::olm::rules::tests::index;
use crate::policy::Policy;
use crate::review::Review;

/// Namespace, release, kind, owner, and whether a record is created.
type Seen = (String, Option<String>, String, Option<String>, bool);

fn seen(namespace: &str, release: &str, kind: &str, owner: &str, creates: bool) -> Seen {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    (namespace.to_owned(), some(release), kind.to_owned(), some(owner), creates)
}

/// The scope of a write of an object, and of its Scale if `scale` is set.
fn scope(operation: &str, object: &Value, resource: &str, scale: bool) -> Seen {
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let sides = |replicas: u64| match scale {
        true => json!({"kind": "Scale", "spec": {"replicas": replicas}}),
        false => object.clone(),
    };
    let (old, new) = (if operation == "CREATE" { Value::Null } else { sides(1) }, sides(2));
    let kind = match scale {
        true => json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}),
        false => json!({"group": group, "version": version, "kind": object["kind"]}),
    };
    let request = json!({
        "uid": "u", "operation": operation, "name": object["metadata"]["name"], "namespace": "shop", "kind": kind,
        "subResource": scale.then_some("scale"), "resource": {"group": group, "version": version, "resource": resource},
        "userInfo": {"username": "alice"}, "object": new, "oldObject": old,
    });
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string();
    let review = Review::parse(body.as_bytes()).unwrap();
    let objects = RequestObjects::read(&review.request).unwrap();
    let effort = Effort::of_review();
    let bodies = objects.payloads(review.request.operation).inflate(&effort);
    let facts = Facts::of(&review.request, &objects, &bodies, &effort);
    let policy = Policy::shipped().unwrap();
    let scope = policy.scope(&facts);
    let owned = |text: &str| text.to_owned();
    (owned(scope.namespace), scope.release.map(owned), owned(scope.kind), scope.owner.map(owned), scope.creates_record)
}

#[test]
fn every_kind_of_request_has_its_own_scope() {
    let record = rec(5, "pending-upgrade");
    let part = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "operatorframework.io/chunk.v1",
        "metadata": {"name": "x", "namespace": "shop", "labels": {
            "owner": "operator-controller", "type": "chunk", "key": record.name(),
        }},
    });
    let helm_release = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"releaseName": "api", "chart": {"spec": {"chart": "web"}}},
    });
    let opened = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "ReleaseOverride", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"release": "web", "rules": ["manual-edit"], "reason": "x", "expiresAt": "2026-11-21T10:30:00Z"},
    });
    let plain = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop"}});
    for (operation, object, resource, scale, wanted) in [
        ("CREATE", record.object(), "secrets", false, seen("shop", "web", "Secret", "helm", true)),
        ("UPDATE", record.object(), "secrets", false, seen("shop", "web", "Secret", "helm", false)),
        ("CREATE", index(&record, &[]), "secrets", false, seen("shop", "web", "Secret", "operator-controller", true)),
        ("CREATE", part, "secrets", false, seen("shop", "web", "Secret", "operator-controller", false)),
        ("CREATE", helm_release, "helmreleases", false, seen("shop", "api", "HelmRelease", "", false)),
        ("UPDATE", web(), "deployments", false, seen("shop", "web", "Deployment", "", false)),
        ("UPDATE", web(), "deployments", true, seen("shop", "", "Deployment", "", false)),
        ("CREATE", opened, "releaseoverrides", false, seen("shop", "", "ReleaseOverride", "", false)),
        ("CREATE", plain, "configmaps", false, seen("", "", "", "", false)),
    ] {
        assert_eq!(scope(operation, &object, resource, scale), wanted, "{operation} {resource}");
    }
}
