//! Objects of an Application: who may change what.

use serde_json::{Value, json};

use super::start_of;
use crate::rules::tests::scenario::{Cluster, Verdict};

const CONTROLLER: &str = "system:serviceaccount:argocd:argocd-application-controller";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const TRACKING: &str = "argocd.argoproj.io/tracking-id";
const OPTIONS: &str = "argocd.argoproj.io/sync-options";

/// A ConfigMap as the controller has applied it on the side of the client.
fn config() -> Value {
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"mode": "declared"}}).to_string();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"mode": "declared", "free": "x"},
        "metadata": {
            "name": "web", "namespace": "shop",
            "annotations": {TRACKING: "web:/ConfigMap:shop/web", LAST_APPLIED: applied},
        },
    })
}

/// A Deployment that it has applied on the side of the server.
fn web(replicas: u64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": replicas},
        "metadata": {
            "name": "web", "namespace": "shop", "annotations": {TRACKING: "web:apps/Deployment:shop/web"},
            "managedFields": [{
                "manager": "argocd-controller", "operation": "Apply", "apiVersion": "apps/v1",
                "fieldsV1": {"f:spec": {"f:replicas": {}}},
            }],
        },
    })
}

fn application(spec: Value, requires_pruning: bool) -> Value {
    let listed = |group: &str, kind: &str| {
        json!({
            "group": group, "kind": kind, "namespace": "shop", "name": "web", "status": "Synced",
            "requiresPruning": requires_pruning,
        })
    };
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "web", "namespace": "argocd"},
        "spec": spec, "status": {"resources": [listed("", "ConfigMap"), listed("apps", "Deployment")]},
    })
}

fn cluster(application: Value) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.given(web(2));
    cluster.given(application);
    cluster
}

fn synced() -> Cluster {
    cluster(application(json!({}), false))
}

fn with(path: &[&str], value: Value) -> Value {
    let mut object = config();
    path.iter().fold(&mut object, |part, key| &mut part[*key]).clone_from(&value);
    object
}

fn without(annotation: &str) -> Value {
    let mut object = config();
    object["metadata"]["annotations"].as_object_mut().unwrap().remove(annotation);
    object
}

fn refused(rule: &'static str) -> Verdict {
    Err(vec![rule])
}

#[test]
fn people_change_what_is_synced_in_its_source() {
    let edit = |user: &str, new: Value| synced().update_objects(user, config(), new);
    assert_eq!(edit("alice", with(&["data", "mode"], "evil".into())), refused("manual-edit"));
    assert_eq!(synced().delete_object("alice", config()), refused("manual-delete"));
    assert_eq!(synced().update_objects("alice", web(2), web(5)), refused("manual-edit"));
    assert_eq!(synced().scale("alice", &web(2), 2, 5), refused("manual-scale"));
    assert_eq!(edit("alice", without(TRACKING)), refused("manual-edit"));
    let ghost = with(&["metadata", "annotations", TRACKING], "ghost:/ConfigMap:shop/web".into());
    assert_eq!(edit("alice", ghost), refused("manual-edit"));
    // What was applied last is the basis of the next comparison.
    assert_eq!(edit("alice", without(LAST_APPLIED)), refused("manual-edit"));
    assert_eq!(
        edit("alice", with(&["metadata", "annotations", OPTIONS], "Prune=false".into())),
        refused("manual-edit")
    );

    assert_eq!(edit("alice", with(&["data", "free"], "y".into())), Ok(()));
    assert_eq!(edit("alice", with(&["metadata", "labels"], json!({"team": "blue"}))), Ok(()));
    assert_eq!(edit(CONTROLLER, with(&["data", "mode"], "next".into())), Ok(()));
    assert_eq!(synced().delete_object(CONTROLLER, config()), Ok(()));
    let message = synced().findings("alice", Some(config()), None).concat();
    assert!(message.contains("managed by Argo CD's Application argocd/web"), "{message}");
}

#[test]
fn a_mark_without_a_status_guards_nothing() {
    let edited = || with(&["data", "mode"], "other".into());
    assert_eq!(Cluster::new().update_objects("alice", config(), edited()), Ok(()), "there is no such Application");
    let mut stray = cluster(application(json!({}), true));
    assert_eq!(stray.update_objects("alice", config(), edited()), Ok(()), "no source declares it");
    // A copy names another object.
    let copy = |mut object: Value| {
        object["metadata"]["name"] = "copy".into();
        object
    };
    assert_eq!(synced().update_objects("alice", copy(config()), copy(edited())), Ok(()));
    let odd = |mut object: Value| {
        object["metadata"]["annotations"][TRACKING] = ":::".into();
        object
    };
    assert_eq!(synced().update_objects("alice", odd(config()), odd(edited())), Ok(()));
}

#[test]
fn an_application_in_another_namespace_is_named_by_the_mark() {
    let marked = |mut object: Value| {
        object["metadata"]["annotations"][TRACKING] = "team_web:/ConfigMap:shop/web".into();
        object
    };
    let edit = |cluster: &mut Cluster| {
        cluster.update_objects("alice", marked(config()), marked(with(&["data", "mode"], "evil".into())))
    };
    assert_eq!(edit(&mut synced()), Ok(()));
    let mut elsewhere = application(json!({}), false);
    elsewhere["metadata"]["namespace"] = "team".into();
    assert_eq!(edit(&mut cluster(elsewhere)), refused("manual-edit"));
}

#[test]
fn what_an_application_does_not_compare_is_left_to_people() {
    let ignoring = |rule: Value| cluster(application(json!({"ignoreDifferences": [rule]}), false));
    let of_deployments = |rest: Value| {
        let mut rule = json!({"group": "apps", "kind": "Deployment"});
        rule.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        rule
    };
    for rest in [json!({"jsonPointers": ["/spec/replicas"]}), json!({"jqPathExpressions": [".spec.replicas"]})] {
        assert_eq!(ignoring(of_deployments(rest.clone())).scale("alice", &web(2), 2, 5), Ok(()), "{rest}");
    }
    let of_another = of_deployments(json!({"name": "other", "jsonPointers": ["/spec/replicas"]}));
    assert_eq!(ignoring(of_another).scale("alice", &web(2), 2, 5), refused("manual-scale"));
    let everywhere = json!({"group": "*", "kind": "*", "jsonPointers": ["/data"]});
    let edited = with(&["data", "mode"], "other".into());
    assert_eq!(ignoring(everywhere).update_objects("alice", config(), edited), Ok(()));
}

#[test]
fn an_expression_starts_from_a_field() {
    for (expression, start) in [
        (".spec.replicas", "/spec/replicas"),
        (".spec.template.spec.containers[] | select(.name == \"a\")", "/spec/template/spec/containers"),
        (".webhooks[]?.clientConfig.caBundle", "/webhooks"),
        ("..", ""),
        ("del(.spec)", ""),
    ] {
        assert_eq!(start_of(expression).to_string(), start, "{expression}");
    }
}
