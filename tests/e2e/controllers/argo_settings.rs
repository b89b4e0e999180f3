//! What the settings of Argo CD itself change: the mark on its objects, and the fields that it compares nowhere.

use serde_json::{Value, json};

use crate::harness::applications::{Application, Sync, shared};
use crate::harness::clients::Kubectl;
use crate::harness::controllers::account;
use crate::harness::namespace::Namespace;

fn argo_cd() -> Kubectl {
    let plane = shared();
    plane.kubectl(&account(plane, "argocd", "argocd-application-controller"))
}

fn config(mode: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"mode": mode}})
}

#[test]
fn a_label_in_place_of_the_annotation_guards_what_the_application_lists() {
    let namespace = Namespace::new(shared(), "synced-by-label");
    let shop = Application::new(&namespace, json!({}), Sync::Client);
    let instance = format!("{}_shop", namespace.name());
    let sync = |mode: &str| {
        let mut object = config(mode);
        object["metadata"]["namespace"] = namespace.name().into();
        object["metadata"]["labels"] = json!({"argocd.argoproj.io/instance": instance});
        argo_cd().apply(&object, &["--field-manager=argocd-controller"]).expect_success();
    };
    let bob = namespace.kubectl("bob");
    let edit = ["patch", "configmap/web", "--type=merge", "-p", r#"{"data":{"mode":"bob"}}"#];
    sync("declared");
    // The label alone proves nothing.
    bob.ok(&edit);
    sync("declared");
    shop.list(&[("", "ConfigMap", "web")]);
    let owner = format!("is managed by Argo CD's Application {}/shop", namespace.name());
    bob.fails(&edit, &[&owner, "declared by its source", "[manual-edit]"]);
    bob.fails(&["label", "configmap/web", "argocd.argoproj.io/instance-"], &["[manual-edit]"]);
    bob.fails(&["delete", "configmap/web"], &[&owner, "[manual-delete]"]);
    bob.ok(&["label", "configmap/web", "team=blue"]);
    sync("next");
}

#[test]
fn what_argo_cd_compares_nowhere_is_left_to_people() {
    let plane = shared();
    let namespace = Namespace::new(plane, "synced-settings");
    let shop = Application::new(&namespace, json!({}), Sync::Client);
    // No other test syncs an object of this kind, so the settings concern this one alone.
    let quota = |pods: &str, services: &str| {
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "web"},
            "spec": {"hard": {"pods": pods, "services": services}},
        })
    };
    shop.apply(&quota("5", "5")).expect_success();
    shop.list(&[("", "ResourceQuota", "web")]);
    let bob = namespace.kubectl("bob");
    let edit = |field: &str| {
        let patch = json!({"spec": {"hard": {field: "7"}}}).to_string();
        bob.run(&["patch", "resourcequota/web", "--type=merge", "-p", &patch])
    };
    edit("pods").expect_failure(&["spec.hard.pods is declared by its source", "[manual-edit]"]);
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "argocd"},
        "data": {"resource.customizations.ignoreDifferences.ResourceQuota": "jsonPointers: [/spec/hard/pods]"},
    });
    plane.kubectl(&plane.admin()).apply(&settings, &[]).expect_success();
    edit("pods").expect_success();
    edit("services").expect_failure(&["spec.hard.services is declared by its source", "[manual-edit]"]);
}

#[test]
fn what_waits_for_a_confirmation_goes_on_waiting_for_it() {
    let plane = shared();
    let namespace = Namespace::new(plane, "synced-confirmed");
    let bob = namespace.kubectl("bob");
    let robot = namespace.kubectl_as(&account(plane, "default", "robot"));
    let shop = Application::new(&namespace, json!({"syncPolicy": {"syncOptions": ["Prune=confirm"]}}), Sync::Client);
    let mut object = config("declared");
    object["metadata"]["annotations"] = json!({"argocd.argoproj.io/sync-options": "Delete=confirm,Prune=confirm"});
    let sync = || shop.apply(&object).expect_success();
    sync();
    shop.list(&[("", "ConfigMap", "web")]);
    robot.ok(&["delete", "configmap/web"]);
    sync();

    bob.ok(&["annotate", "applications.argoproj.io/shop", "interlock.dev/protected=true"]);
    let without = ["patch", "applications.argoproj.io/shop", "--type=merge", "-p", r#"{"spec":{"syncPolicy":null}}"#];
    bob.fails(&without, &["[protected-release]"]);
    let owner = format!("Application {}/shop", namespace.name());
    robot.fails(&["annotate", "configmap/web", "argocd.argoproj.io/sync-options-"], &[&owner, "[protected-release]"]);
    robot.fails(&["delete", "configmap/web"], &[&owner, "[protected-release]"]);
    robot.ok(&["annotate", "configmap/web", "team=blue"]);
    argo_cd().ok(&["delete", "configmap/web", "--namespace", namespace.name()]);
}
