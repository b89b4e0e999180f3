//! Objects with the marks of a Sveltos profile. A profile has no record in the cluster, so managedFields decide.

use serde_json::json;

use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;

#[test]
fn fields_of_a_profile_change_only_through_the_profile() {
    let namespace = Namespace::new(Plane::shared(), "profile");
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"mode": "declared"},
        "metadata": {
            "name": "web", "labels": {"projectsveltos.io/reason": "Resources"},
            "annotations": {
                "projectsveltos.io/owner-kind": "ClusterProfile", "projectsveltos.io/owner-name": "prod",
                "projectsveltos.io/owner-tier": "100",
            },
        },
    });
    let agent = ["--server-side", "--field-manager=application/apply-patch"];
    namespace.kubectl("admin").apply(&object, &agent).expect_success();
    let bob = namespace.kubectl("bob");
    let owner = format!("ConfigMap {}/web is managed by the Sveltos ClusterProfile prod", namespace.name());
    let patch = |patch| ["patch", "configmap/web", "--type=merge", "-p", patch];
    bob.fails(&patch(r#"{"data":{"mode":"bob"}}"#), &[&owner, "data.mode is declared by the profile", "[manual-edit]"]);
    bob.fails(&["label", "configmap/web", "projectsveltos.io/reason-"], &[&owner, "[manual-edit]"]);
    bob.fails(&["delete", "configmap/web"], &[&owner, "declared by the profile", "[manual-delete]"]);
    bob.ok(&patch(r#"{"data":{"free":"bob"}}"#));
    bob.ok(&["label", "configmap/web", "team=blue"]);
    assert_eq!(bob.get(&["configmap/web"])["data"], json!({"mode": "declared", "free": "bob"}));
}

#[test]
fn replicas_of_a_profile_are_scaled_only_through_the_profile() {
    let namespace = Namespace::new(Plane::shared(), "profile-scale");
    let deployment = |name: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]},
                },
            },
            "metadata": {
                "name": name, "labels": {"projectsveltos.io/reason": "Resources"},
                "annotations": {
                    "projectsveltos.io/owner-kind": "ClusterProfile", "projectsveltos.io/owner-name": "prod",
                    "projectsveltos.io/owner-tier": "100",
                },
            },
        })
    };
    let agent = ["--server-side", "--field-manager=application/apply-patch"];
    let mut fixed = deployment("fixed");
    fixed["spec"]["replicas"] = 1.into();
    for object in [fixed, deployment("free")] {
        namespace.kubectl("admin").apply(&object, &agent).expect_success();
    }
    let bob = namespace.kubectl("bob");
    let owner = format!("Deployment {}/fixed is managed by the Sveltos ClusterProfile prod", namespace.name());
    let refused = [owner.as_str(), "spec.replicas is declared by the profile", "[manual-scale]"];
    bob.fails(&["scale", "deployment/fixed", "--replicas=2"], &refused);
    bob.fails(&["patch", "deployment/fixed", "--type=merge", "-p", r#"{"spec":{"replicas":2}}"#], &["[manual-edit]"]);
    bob.ok(&["scale", "deployment/free", "--replicas=2"]);
    assert_eq!(bob.get(&["deployment/fixed"])["spec"]["replicas"], 1);
}
