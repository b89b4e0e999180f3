//! Commits of what Kustomize builds, and bundles that stand for nothing.

use serde_json::json;

use super::*;

const REFUSED: &[&str] = &["dropped-bundles"];

/// A profile with a kustomization from a Git repository, which was delivered.
fn kustomized() -> Shop {
    let mut shop = Shop::new();
    let reference = json!({"kind": "GitRepository", "namespace": "flux", "name": "tenants", "path": "prod"});
    shop.change("/spec/clusterProfileSpec/kustomizationRefs", json!([reference]));
    let owner = json!({"kind": "GitRepository", "namespace": "flux", "name": "tenants"});
    shop.delivered(json!([{"featureID": "Kustomize", "resources": [{"owner": owner}]}]));
    shop
}

fn bundle(shop: &Shop) -> String {
    let spec = json!({"referencedObjectKind": "GitRepository", "referencedObjectNamespace": "flux", "referencedObjectName": "tenants"});
    shop.indexed("tenants", Some("GitRepository-flux-tenants"), spec)
}

fn commit(bundles: &[String]) -> Value {
    of_feature(group(bundles), "Kustomize")
}

#[test]
fn an_emptied_kustomization_is_refused() {
    let mut shop = kustomized();
    let complete = commit(&[bundle(&shop)]);
    shop.create(&complete).admitted();
    shop.create(&commit(&[])).refused(REFUSED, &["The Kustomize commit", "leaves out GitRepository flux/tenants"]);
    shop.update(&complete, &commit(&[])).refused(REFUSED, &["GitRepository flux/tenants"]);
    shop.change("/spec/clusterProfileSpec/kustomizationRefs", json!([]));
    shop.create(&commit(&[])).admitted();
}

#[test]
fn a_dangling_bundle_of_kustomize_is_refused() {
    let shop = kustomized();
    let complete = commit(&[bundle(&shop)]);
    shop.remove(LIB, "ConfigurationBundle", "config-tenants");
    shop.create(&complete).refused(&["dropped-bundles", "dangling-bundle"], &["config-tenants"]);
}

/// The agent acts on what the group is now. Sveltos never changes the feature of a group.
#[test]
fn a_group_of_charts_cannot_become_one_of_kustomize() {
    let shop = kustomized();
    let complete = shop.complete();
    shop.update(&complete, &commit(&[])).refused(&["dropped-bundles"; 2], &["shop/web", "GitRepository flux/tenants"]);
    let relabelled = of_feature(complete.clone(), "Kustomize");
    shop.update(&complete, &relabelled).refused(REFUSED, &["GitRepository flux/tenants"]);
}

#[test]
fn bundles_of_other_namespaces_do_not_count() {
    let shop = Shop::new();
    let mut group = shop.complete();
    let items = group["spec"]["configurationItem"].as_array_mut().unwrap();
    items[0]["contentRef"]["namespace"] = "other".into();
    let mut elsewhere = json!({"apiVersion": "lib.projectsveltos.io/v1beta1", "kind": "ConfigurationBundle"});
    elsewhere["metadata"] = json!({"name": "config-web-0", "namespace": "other"});
    elsewhere["spec"] = json!({
        "helmReleaseNamespace": "shop", "helmReleaseName": "web", "isLastHelmReleaseBundle": true,
    });
    shop.put(&elsewhere);
    let texts =
        ["leaves out release shop/web", "bundles of other namespaces, which the agent cannot read: other/config-web-0"];
    shop.create(&group).refused(&["dropped-bundles", "dangling-bundle"], &texts);
}

#[test]
fn without_a_report_of_the_agent_the_summary_says_what_was_deployed() {
    let mut shop = Shop::new();
    shop.change(
        "/spec/clusterProfileSpec/policyRefs",
        json!([{"kind": "GitRepository", "namespace": "flux", "name": "tenants"}]),
    );
    let empty = of_feature(group(&[]), "Resources");
    shop.create(&empty).admitted();
    let deployed = |feature: &str| json!([{"featureID": feature, "deployedGroupVersionKind": ["Role.v1.rbac.authorization.k8s.io"]}]);
    shop.change("/status/deployedGVKs", deployed("Helm"));
    shop.create(&empty).admitted();
    shop.change("/status/deployedGVKs", deployed("Resources"));
    shop.create(&empty).refused(REFUSED, &["leaves out GitRepository flux/tenants"]);
}
