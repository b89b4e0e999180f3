//! Objects that a Kustomization applies: what its source declares changes there, and everybody else goes on.

use std::time::Duration;

use serde_json::json;

use crate::harness::clients::Kubectl;
use crate::harness::controllers::{Kustomize, failed, reached};
use crate::harness::eventually::eventually;
use crate::harness::kustomizations::{Kustomization, deployment, kustomize_controller, shared};
use crate::harness::namespace::Namespace;

const DEADLINE: Duration = Duration::from_secs(60);

const LISTED: [(&str, &str, &str); 2] = [("apps", "Deployment", "demo"), ("", "ConfigMap", "web")];

fn config(mode: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"mode": mode}})
}

fn merge(patch: &str) -> [&str; 5] {
    ["patch", "configmap/web", "--type=merge", "-p", patch]
}

#[test]
fn fields_of_a_source_change_only_there() {
    let namespace = Namespace::new(shared(), "kustomized");
    let shop = Kustomization::new(&namespace, json!({}));
    let bob = namespace.kubectl("bob");
    shop.apply(&deployment("one", 2)).expect_success();
    shop.apply(&config("declared")).expect_success();
    // The labels alone prove nothing, until the first apply has ended.
    bob.ok(&merge(r#"{"data":{"mode":"bob"}}"#));
    shop.apply(&config("declared")).expect_success();
    shop.list(&LISTED);

    let owner = format!("is managed by Flux's Kustomization {}/shop", namespace.name());
    let declared = [owner.as_str(), "declared by its source", "Change it through the source of", "[manual-edit]"];
    bob.fails(&merge(r#"{"data":{"mode":"bob"}}"#), &declared);
    bob.fails(&["set", "image", "deployment/demo", "app=evil"], &declared);
    bob.fails(&["scale", "deployment/demo", "--replicas=5"], &[&owner, "spec.replicas", "[manual-scale]"]);
    for object in ["deployment/demo", "configmap/web"] {
        bob.fails(&["delete", object], &[&owner, "[manual-delete]"]);
        bob.fails(&["label", object, "kustomize.toolkit.fluxcd.io/name-"], &["[manual-edit]"]);
        bob.fails(&["label", object, "--overwrite", "kustomize.toolkit.fluxcd.io/name=ghost"], &["[manual-edit]"]);
        for switch in ["reconcile=disabled", "ssa=Ignore", "prune=disabled", "force=enabled"] {
            bob.fails(&["annotate", object, &format!("kustomize.toolkit.fluxcd.io/{switch}")], &["[manual-edit]"]);
        }
    }
    // What the source does not declare, and what others do.
    bob.ok(&merge(r#"{"data":{"free":"bob"}}"#));
    bob.ok(&["label", "configmap/web", "team=blue"]);
    bob.ok(&["rollout", "restart", "deployment/demo"]);
    let operator = namespace.kubectl_as(&namespace.service_account("operator"));
    // The field is then the operator's. Who has written later is known by the second.
    let mut edits = 0;
    eventually(DEADLINE, "a further edit is warned about", || {
        edits += 1;
        operator.ok(&merge(&json!({"data": {"mode": edits.to_string()}}).to_string()));
        let edit =
            bob.run(&[&merge(r#"{"data":{"mode":"bob"}}"#)[..], &["--dry-run=server"]].concat()).expect_success();
        if edit.stderr.contains("[manual-edit]") { Ok(()) } else { Err(edit.to_string()) }
    });
    shop.apply(&config("declared")).expect_success();
    shop.apply(&deployment("two", 3)).expect_success();
    let controller = namespace.kubectl_as(&kustomize_controller(namespace.plane()));
    controller.ok(&["delete", "configmap/web"]);
}

#[test]
fn a_copied_label_guards_nothing_and_a_tenant_works_for_its_own() {
    let namespace = Namespace::new(shared(), "kustomized-tenant");
    let tenant = namespace.service_account("deployer");
    let shop = Kustomization::new(&namespace, json!({"serviceAccountName": "deployer"})).under(&tenant);
    let bob = namespace.kubectl("bob");
    shop.apply(&config("declared")).expect_success();
    shop.list(&LISTED);
    bob.fails(&merge(r#"{"data":{"mode":"bob"}}"#), &["[manual-edit]"]);
    let applied = shop.apply(&config("next")).expect_success();
    assert!(!applied.stderr.contains("manual-edit"), "{applied}");
    let mut copy = shop.labelled(config("free"));
    copy["metadata"]["name"] = "copy".into();
    bob.with_file("create", &copy, &[]).expect_success();
    bob.ok(&["patch", "configmap/copy", "--type=merge", "-p", r#"{"data":{"mode":"bob"}}"#]);
    bob.ok(&["delete", "configmap/copy"]);
    // Its owner leaves the number to people.
    let ignore = json!({"spec": {"ignore": [{"paths": ["/data/mode"], "target": {"kind": "ConfigMap"}}]}}).to_string();
    bob.ok(&["patch", "kustomization/shop", "--type=merge", "-p", &ignore]);
    bob.ok(&merge(r#"{"data":{"mode":"bob"}}"#));
}

/// What the inventory lists is guarded: whoever writes it takes over the objects of others, or frees its own.
#[test]
fn only_flux_writes_the_inventory() {
    let namespace = Namespace::new(shared(), "kustomized-forged");
    let shop = Kustomization::new(&namespace, json!({}));
    shop.list(&LISTED);
    let forge = |kubectl: &Kubectl| {
        let patch = r#"{"status":{"inventory":{"entries":[]}}}"#;
        kubectl.run(&["patch", "kustomization/shop", "--subresource=status", "--type=merge", "-p", patch])
    };
    let bob = namespace.kubectl("bob");
    forge(&bob).expect_failure(&["[forged-status]", "what Flux did", "only its controller writes it, not bob"]);
    forge(&namespace.kubectl_as(&namespace.service_account("robot"))).expect_failure(&["[forged-status]"]);
    shop.list(&LISTED[..1]);
    bob.ok(&["patch", "kustomization/shop", "--type=merge", "-p", r#"{"spec":{"interval":"7m"}}"#]);
}

/// A source that renders to nothing is no error for Flux. Here with the library that kustomize-controller applies with.
#[test]
fn a_source_that_renders_to_nothing_prunes_half() {
    let namespace = Namespace::new(shared(), "kustomized-nothing");
    let shop = Kustomization::new(&namespace, json!({}));
    let flux = Kustomize::new(&kustomize_controller(namespace.plane()), &namespace, "shop");
    let named = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let all = ["a", "b", "c", "d"].map(named);
    reached(flux.reconcile("v1", &all), "apply");
    shop.changed_long_ago();
    let bob = namespace.kubectl("bob");
    bob.fails(&["delete", "configmap/a"], &["[manual-delete]"]);
    let left = || {
        let listed = bob.get(&["configmaps", "-l", "kustomize.toolkit.fluxcd.io/name=shop"]);
        let names = listed["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let place = namespace.name();
    let sentence = format!("Kustomization {place}/shop would prune ConfigMap {place}/");
    let refused = ["[dropped-inventory]", &sentence, "have 1 of 4 objects left", "flux reconcile kustomization shop"];
    // It goes on after a refusal, and tries again.
    for _ in 0..2 {
        failed(flux.reconcile("v2", &[]), "apply, prune", &refused);
        assert_eq!(left().len(), 2);
    }
    // Once the source is repaired, everything is back.
    reached(flux.reconcile("v3", &all), "apply");
    assert_eq!(left(), ["a", "b", "c", "d"]);
    let ids = ["a", "b", "c", "d"].map(|name| format!("{place}_{name}__ConfigMap")).join(",");
    bob.ok(&["annotate", "kustomization/shop", &format!("interlock.dev/allow-removal={ids}")]);
    reached(flux.reconcile("v4", &[]), "apply, prune");
    assert_eq!(left(), [""; 0]);
}

/// A dry run of each object comes first, so a refusal applies nothing, and the next reconcile heals.
#[test]
fn kustomize_controller_applies_for_a_tenant_and_takes_edits_back() {
    let namespace = Namespace::new(shared(), "kustomized-applier");
    let tenant = namespace.service_account("deployer");
    Kustomization::new(&namespace, json!({"serviceAccountName": "deployer"}));
    let flux = Kustomize::new(&kustomize_controller(namespace.plane()), &namespace, "shop").impersonating(&tenant);
    reached(flux.reconcile("v1", &[config("declared"), deployment("one", 2)]), "apply");
    let bob = namespace.kubectl("bob");
    bob.fails(&merge(r#"{"data":{"mode":"bob"}}"#), &["[manual-edit]"]);
    bob.ok(&merge(r#"{"data":{"free":"bob"}}"#));
    reached(flux.reconcile("v2", &[config("next"), deployment("two", 3)]), "apply");
    let data = bob.get(&["configmap/web"])["data"].clone();
    assert_eq!(data, json!({"mode": "next"}), "what kubectl added is taken back");
    bob.fails(&["scale", "deployment/demo", "--replicas=5"], &["[manual-scale]"]);
}

#[test]
fn a_protected_kustomization_keeps_its_objects() {
    let namespace = Namespace::new(shared(), "kustomized-protected");
    let place = namespace.name();
    let shop = Kustomization::new(&namespace, json!({"targetNamespace": place}));
    shop.apply(&config("declared")).expect_success();
    shop.list(&LISTED);
    shared().define("tests/e2e/harness/crds/upstreams.yaml");
    let bob = namespace.kubectl("bob");
    let repository = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "shop"},
        "spec": {"url": "https://example.com/shop"},
    });
    bob.with_file("create", &repository, &[]).expect_success();
    for object in ["kustomization/shop", "gitrepository/shop"] {
        bob.ok(&["annotate", object, "interlock.dev/protected=true"]);
        bob.fails(&["delete", object], &["[protected-release]"]);
        bob.fails(&["annotate", object, "interlock.dev/protected-"], &["[protected-release]"]);
    }
    let edit = |spec: &str| bob.run(&["patch", "kustomization/shop", "--type=merge", "-p", spec]);
    edit(r#"{"spec":{"path":"./other"}}"#).expect_failure(&["[protected-release]", "with this spec.path, Flux may"]);
    edit(r#"{"spec":{"targetNamespace":"other"}}"#).expect_failure(&["[protected-release]"]);
    edit(r#"{"spec":{"patches":[{"patch":"$patch: delete"}]}}"#)
        .expect_failure(&["[protected-release]", "spec.patches"]);
    edit(r#"{"spec":{"interval":"7m"}}"#).expect_success();
    edit(r#"{"spec":{"prune":false}}"#).expect_success();
    edit(r#"{"spec":{"path":"./other"}}"#).expect_success();
    edit(r#"{"spec":{"kubeConfig":{"secretRef":{"name":"spoke"}}}}"#)
        .expect_failure(&["[protected-release]", "spec.kubeConfig"]);
    edit(r#"{"spec":{"prune":true}}"#).expect_failure(&["[protected-release]", "with this spec.prune"]);
}
