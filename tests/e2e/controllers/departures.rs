//! What a commit of Sveltos removes that the profile no longer wants, and commits of Kustomize.

use serde_json::{Value, json};

use crate::harness::addon_controller::{AddonController, chart_of, failed, managing, shared};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::process::Output;

/// The agent's report: it has delivered these releases of the profile.
fn delivered(namespace: &Namespace<'_>, feature: Value) {
    let kubectl = namespace.kubectl_as(shared());
    let object = json!({
        "apiVersion": "config.projectsveltos.io/v1beta1", "kind": "ClusterConfiguration",
        "metadata": {"name": "sveltos--prod", "namespace": namespace.name()},
    });
    kubectl.apply(&object, &[]).expect_success();
    let of_profile = json!({"clusterProfileName": namespace.name(), "Features": [feature]});
    let patch = json!({"status": {"clusterProfileResources": [of_profile]}}).to_string();
    kubectl.ok(&["patch", "clusterconfiguration/sveltos--prod", "--subresource=status", "--type=merge", "-p", &patch]);
}

fn charts(releases: &[&str]) -> Value {
    let charts: Vec<_> = releases
        .iter()
        .map(|name| json!({"releaseName": name, "namespace": "shop", "repoURL": "https://charts.example.com", "chartVersion": "1.0.0", "lastAppliedTime": "2026-11-01T00:00:00Z"}))
        .collect();
    json!({"featureID": "Helm", "charts": charts})
}

/// The command that a refusal prints for an annotation, as words.
#[track_caller]
fn printed(refused: &Output) -> Vec<String> {
    let (_, rest) = refused.stderr.split_once("(`kubectl ").expect("a command");
    let (command, _) = rest.split_once("`)").expect("its end");
    command.split_whitespace().map(|word| word.trim_matches('\'').to_owned()).collect()
}

#[test]
fn a_release_goes_only_once_its_replacement_is_staged() {
    let namespace = Namespace::new(Plane::shared(), "sveltos-renamed");
    let mut shop = AddonController::new(&namespace, shared(), &["web"]);
    shop.stage("web", 1);
    shop.report(&[managing("web")]);
    shop.commit().expect_success();
    shop.terminate();
    delivered(&namespace, charts(&["web"]));

    // The release is renamed in the profile, and the chart does not render.
    let new = || {
        let mut entry = failed("site", "no such chart");
        entry["valuesHash"] = json!(null);
        entry
    };
    shop.want(&json!({"helmCharts": [chart_of("site")]}));
    shop.report(&[new()]);
    shop.discard();
    let waiting = "no longer contains release shop/web, while release shop/site is not staged";
    let refused = shop.commit().expect_failure(&[waiting, "[dropped-bundles]"]);
    // The chart renders: the new release comes, and the old one goes.
    shop.stage("site", 1);
    shop.report(&[managing("site")]);
    shop.commit().expect_success();
    shop.terminate();

    // It does not render, and somebody says that the old one may go. The printed command says so, beside what is there.
    shop.report(&[new()]);
    shop.discard();
    let kubectl = namespace.kubectl("admin");
    let other = "interlock.dev/allow-removal=shop/other";
    kubectl.ok(&["annotate", "clusterprofile", namespace.name(), other]);
    let again = shop.commit().expect_failure(&[waiting]);
    assert!(printed(&refused).last().unwrap().ends_with("=shop/web"), "{refused}");
    let command = printed(&again);
    assert!(command.last().unwrap().ends_with("=shop/other,shop/web"), "{again}");
    kubectl.ok(&command.iter().map(String::as_str).collect::<Vec<_>>());
    shop.commit().expect_success();
    shop.terminate();
}

#[test]
fn a_commit_of_kustomize_is_judged() {
    let namespace = Namespace::new(Plane::shared(), "sveltos-kustomize");
    let shop = AddonController::new(&namespace, shared(), &[]);
    let source = json!({"kind": "GitRepository", "namespace": "flux", "name": "tenants", "path": "prod"});
    shop.want(&json!({"kustomizationRefs": [source]}));
    let owner = json!({"kind": "GitRepository", "namespace": "flux", "name": "tenants"});
    let resource = json!({"name": "a", "kind": "ConfigMap", "group": "", "version": "v1", "owner": owner});
    delivered(&namespace, json!({"featureID": "Kustomize", "resources": [resource]}));
    let mut kustomize = shop.of_feature("Kustomize");
    let bundle = json!({
        "resources": ["kind: A\n"], "referencedObjectKind": "GitRepository", "referencedObjectNamespace": "flux",
        "referencedObjectName": "tenants",
    });
    kustomize.stage_bundle("GitRepository-flux-tenants", &bundle);
    kustomize.commit().expect_success();
    kustomize.terminate();
    // Emptied, with a bundle that does not exist, and with one of another namespace.
    let lost = "leaves out GitRepository flux/tenants";
    kustomize.discard();
    kustomize.commit().expect_failure(&["The Kustomize commit", lost, "[dropped-bundles]"]);
    let missing = ["config-missing".to_owned()];
    kustomize.write_group(&missing, &json!({})).expect_failure(&[lost, "[dangling-bundle]"]);
    // The profile no longer refers to it.
    shop.want(&json!({"kustomizationRefs": []}));
    kustomize.commit().expect_success();
    kustomize.terminate();
}
