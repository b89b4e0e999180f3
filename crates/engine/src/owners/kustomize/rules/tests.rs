//! Objects of a Kustomization: who may change what.

mod acts;
mod dropped;

use serde_json::{Value, json};

use crate::rules::tests::scenario::{Cluster, Verdict};

const CONTROLLER: &str = "system:serviceaccount:flux-system:kustomize-controller";
const TENANT: &str = "system:serviceaccount:team:deployer";
const HPA: &str = "system:serviceaccount:kube-system:horizontal-pod-autoscaler";
const SWITCH: &str = "kustomize.toolkit.fluxcd.io/reconcile";

/// A Deployment as the controller has applied it.
fn web() -> Value {
    let labels = json!({"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "team"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "labels": labels,
            "managedFields": [{
                "manager": "kustomize-controller", "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": {
                    "f:metadata": {"f:labels": {
                        "f:kustomize.toolkit.fluxcd.io/name": {}, "f:kustomize.toolkit.fluxcd.io/namespace": {},
                    }},
                    "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {
                        "k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}},
                    }}}},
                },
            }],
        },
        "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "web", "image": "nginx:1"}]}}},
    })
}

fn kustomization(spec: Value) -> Value {
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "shop", "namespace": "team"}, "spec": spec,
        "status": {"inventory": {"entries": [{"id": "shop_web_apps_Deployment"}, {"id": "shop_other_apps_Deployment"}]}},
    })
}

fn with(pointer: &str, value: Value) -> Value {
    let mut object = web();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[key.replace("~1", "/")] = value;
    object
}

fn without(mark: &str) -> Value {
    let mut object = web();
    object["metadata"]["labels"].as_object_mut().unwrap().remove(&format!("kustomize.toolkit.fluxcd.io/{mark}"));
    object
}

fn image(image: &str) -> Value {
    with("/spec/template/spec/containers/0/image", image.into())
}

fn cluster(spec: Value) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.given(web());
    cluster.given(kustomization(spec));
    cluster
}

fn refused(rule: &'static str) -> Verdict {
    Err(vec![rule])
}

#[test]
fn people_change_what_is_applied_in_its_source() {
    let edit = |user: &str, new: Value| cluster(json!({})).update_objects(user, web(), new);
    assert_eq!(edit("alice", image("nginx:evil")), refused("manual-edit"));
    assert_eq!(cluster(json!({})).delete_object("alice", web()), refused("manual-delete"));
    assert_eq!(cluster(json!({})).scale("alice", &web(), 2, 5), refused("manual-scale"));
    for mark in ["name", "namespace"] {
        assert_eq!(edit("alice", without(mark)), refused("manual-edit"), "{mark}");
    }
    let cleared = with("/metadata/managedFields", json!([]));
    assert_eq!(edit("alice", cleared), refused("manual-edit"));
    // What the source does not declare, and who works for it.
    assert_eq!(edit("alice", with("/spec/minReadySeconds", json!(5))), Ok(()));
    assert_eq!(edit("alice", with("/metadata/labels/team", "blue".into())), Ok(()));
    assert_eq!(edit(CONTROLLER, image("nginx:2")), Ok(()));
    assert_eq!(cluster(json!({})).delete_object(CONTROLLER, web()), Ok(()));
    assert_eq!(cluster(json!({})).scale(HPA, &web(), 2, 5), Ok(()));
    let message = cluster(json!({})).findings("alice", Some(web()), Some(image("nginx:evil"))).concat();
    assert!(
        message.contains("is managed by Flux's Kustomization team/shop")
            && message.contains("Change it through the source of Kustomization team/shop"),
        "{message}"
    );
}

#[test]
fn labels_without_an_inventory_guard_nothing() {
    let edit = |cluster: &mut Cluster| cluster.update_objects("alice", web(), image("nginx:2"));
    let mut gone = Cluster::new();
    assert_eq!(edit(&mut gone), Ok(()), "there is no such Kustomization");
    let mut copied = kustomization(json!({}));
    copied["status"]["inventory"]["entries"][0]["id"] = "shop_other_apps_Deployment".into();
    let mut ended = kustomization(json!({}));
    ended["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z".into();
    let mut new = kustomization(json!({}));
    new["status"] = Value::Null;
    for other in [copied, ended, new, kustomization(json!({"kubeConfig": {"secretRef": {"name": "spoke"}}}))] {
        let mut cluster = Cluster::new();
        cluster.given(other.clone());
        assert_eq!(edit(&mut cluster), Ok(()), "{other}");
    }
    assert_eq!(cluster(json!({})).delete_object("alice", without("namespace")), Ok(()));
}

#[test]
fn the_last_of_very_many_objects_in_an_inventory_is_guarded() {
    let others = (0..100_000).map(|number| json!({"id": format!("shop_web-{number}_apps_Deployment"), "v": "v1"}));
    let mut kustomization = kustomization(json!({}));
    let own = kustomization["status"]["inventory"]["entries"][0].clone();
    kustomization["status"]["inventory"]["entries"] = others.chain([own]).collect();
    let mut cluster = Cluster::new();
    cluster.given(web());
    cluster.given(kustomization);
    assert_eq!(cluster.update_objects("alice", web(), image("nginx:evil")), refused("manual-edit"));
}

#[test]
fn names_with_colons_are_found_in_the_inventory() {
    let role = |verbs: Value| {
        let mut role = web();
        role["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
        role["kind"] = "ClusterRole".into();
        role["metadata"]["name"] = "shop:web".into();
        role["metadata"]["namespace"] = Value::Null;
        role["metadata"]["managedFields"][0]["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
        role["metadata"]["managedFields"][0]["fieldsV1"] = json!({"f:rules": {}});
        role["rules"] = verbs;
        role
    };
    let mut listed = kustomization(json!({}));
    listed["status"]["inventory"]["entries"][0]["id"] = "_shop__web_rbac.authorization.k8s.io_ClusterRole".into();
    let mut cluster = Cluster::new();
    cluster.given(listed);
    let (old, new) = (role(json!([])), role(json!([{"verbs": ["*"]}])));
    assert!(!cluster.update_cluster_scoped("alice", old, new).allowed);
}

#[test]
fn the_account_of_a_tenant_works_for_its_own_kustomization() {
    let mut of_tenant = cluster(json!({"serviceAccountName": "deployer"}));
    assert_eq!(of_tenant.update_objects(TENANT, web(), image("nginx:2")), Ok(()));
    assert!(of_tenant.findings(TENANT, Some(web()), Some(image("nginx:2"))).is_empty());
    // Service accounts are audited as shipped.
    let other = cluster(json!({})).findings(TENANT, Some(web()), Some(image("nginx:2")));
    assert_eq!(other.len(), 1, "{other:?}");
}

/// A person who sets one opens nothing, and may take it off again.
#[test]
fn only_switches_of_the_source_turn_the_controller_off() {
    let switched = || {
        let mut object = web();
        object["metadata"]["annotations"] = json!({SWITCH: "disabled"});
        object
    };
    let edited = |mut object: Value| {
        object["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:evil".into();
        object
    };
    let mut cluster = cluster(json!({}));
    assert_eq!(cluster.update_objects("alice", web(), switched()), refused("manual-edit"));
    assert_eq!(cluster.update_objects("alice", switched(), edited(switched())), refused("manual-edit"));
    assert_eq!(cluster.update_objects("alice", switched(), web()), Ok(()));
    let mut other = switched();
    other["metadata"]["annotations"][SWITCH] = "enabled".into();
    assert_eq!(cluster.update_objects("alice", switched(), other), refused("manual-edit"));
    let mut of_source = switched();
    of_source["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"]["f:annotations"] =
        json!({format!("f:{SWITCH}"): {}});
    assert_eq!(cluster.update_objects("alice", of_source.clone(), edited(of_source)), Ok(()));
}

#[test]
fn what_a_kustomization_ignores_or_does_not_do_now_is_left_to_people() {
    let ignore = json!({"ignore": [{"paths": ["/spec/replicas"], "target": {"kind": "Deployment", "name": "web"}}]});
    assert_eq!(cluster(ignore.clone()).scale("alice", &web(), 2, 5), Ok(()));
    assert_eq!(cluster(ignore).update_objects("alice", web(), image("nginx:2")), refused("manual-edit"));
    let other = json!({"ignore": [{"paths": ["/spec/replicas"], "target": {"kind": "StatefulSet"}}]});
    assert_eq!(cluster(other).scale("alice", &web(), 2, 5), refused("manual-scale"));
    // As for a suspended HelmRelease.
    let suspended = cluster(json!({"suspend": true})).update_objects("alice", web(), image("nginx:2"));
    let mut policy = Cluster::with_policy("rules:\n  manual-edit: {whenSuspended: warn}\n");
    policy.given(kustomization(json!({"suspend": true})));
    assert_eq!(policy.update_objects("alice", web(), image("nginx:2")), Ok(()));
    assert_eq!(suspended, refused("manual-edit"));
    assert_eq!(policy.update_objects("alice", web(), without("name")), refused("manual-edit"), "that lasts");
}

/// `flux bootstrap` upgrades it under the account of a person.
#[test]
fn the_installation_of_flux_itself_is_left_to_people() {
    let of_flux = |kustomization: &str, place: &str| {
        let mut object = web();
        object["metadata"]["namespace"] = place.into();
        object["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/name"] = kustomization.into();
        object["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/namespace"] = "flux-system".into();
        object
    };
    for (name, place, verdict) in [
        ("flux-system", "flux-system", Ok(())),
        ("flux-system", "shop", refused("manual-delete")),
        ("apps", "flux-system", refused("manual-delete")),
    ] {
        let mut listing = kustomization(json!({}));
        listing["metadata"] = json!({"name": name, "namespace": "flux-system"});
        listing["status"]["inventory"]["entries"][0]["id"] = format!("{place}_web_apps_Deployment").into();
        let mut cluster = Cluster::new();
        cluster.given(listing);
        assert_eq!(cluster.delete_object("alice", of_flux(name, place)), verdict, "{name} {place}");
    }
}

#[test]
fn a_protected_kustomization_is_not_deleted_with_its_objects() {
    let annotated = |spec: Value, is_protected: bool| {
        let mut object = kustomization(spec);
        object["metadata"]["annotations"] = json!({"interlock.dev/protected": is_protected.to_string()});
        object
    };
    let delete = |object: Value| Cluster::new().delete_object("alice", object);
    let pruning = || json!({"prune": true});
    assert_eq!(delete(annotated(pruning(), true)), refused("protected-release"));
    assert_eq!(delete(annotated(pruning(), false)), Ok(()));
    assert_eq!(delete(annotated(json!({"deletionPolicy": "Delete"}), true)), refused("protected-release"));
    for keeps in
        [json!({}), json!({"prune": true, "suspend": true}), json!({"prune": true, "deletionPolicy": "Orphan"})]
    {
        assert_eq!(delete(annotated(keeps.clone(), true)), Ok(()), "{keeps}");
    }
    let target = json!({"prune": true, "targetNamespace": "shop"});
    let mut covered = Cluster::with_policy("protected: {namespaces: [shop]}");
    assert_eq!(covered.delete_object(CONTROLLER, annotated(target, false)), refused("protected-release"));
    let unprotect =
        |user: &str| Cluster::new().update_objects(user, annotated(pruning(), true), annotated(pruning(), false));
    assert_eq!(unprotect("alice"), refused("protected-release"));
    assert_eq!(unprotect(CONTROLLER), Ok(()));
    let message = Cluster::new().findings("alice", Some(annotated(pruning(), true)), None).concat();
    assert!(message.contains("suspend it first (`kubectl patch kustomization shop -n team"), "{message}");
}

#[test]
fn a_protected_kustomization_is_not_edited_so_that_it_prunes() {
    let annotated = |spec: Value| {
        let mut object = kustomization(spec);
        object["metadata"]["annotations"] = json!({"interlock.dev/protected": "true"});
        object
    };
    let source = |name: &str| json!({"kind": "GitRepository", "name": name});
    let before = || json!({"prune": true, "path": "./shop", "targetNamespace": "shop", "sourceRef": source("shop")});
    let edit = |user: &str, before: Value, after: Value| {
        Cluster::new().update_objects(user, annotated(before), annotated(after))
    };
    let with = |field: &str, value: Value| {
        let mut spec = before();
        spec[field] = value;
        spec
    };
    for (field, value) in
        [("path", json!("./shops")), ("targetNamespace", json!("shops")), ("sourceRef", source("other"))]
    {
        assert_eq!(edit("alice", before(), with(field, value.clone())), refused("protected-release"), "{field}");
        assert_eq!(edit(CONTROLLER, before(), with(field, value.clone())), Ok(()), "it writes what is in Git");
        let without_prune = |mut spec: Value| {
            spec["prune"] = false.into();
            spec
        };
        let (old, new) = (without_prune(before()), without_prune(with(field, value)));
        assert_eq!(edit("alice", old, new.clone()), Ok(()), "{field}: nothing is pruned");
        assert_eq!(edit("alice", new, before()), refused("protected-release"), "and it stays so");
    }
    assert_eq!(edit("alice", before(), with("interval", json!("5m"))), Ok(()));
    assert_eq!(edit("alice", before(), with("prune", json!(false))), Ok(()));
    let (old, new) = (kustomization(before()), kustomization(with("path", json!("./shops"))));
    assert_eq!(Cluster::new().update_objects("alice", old, new), Ok(()), "it is not protected");
}

#[test]
fn a_namespace_stays_for_a_protected_kustomization() {
    let delete = |policy: &str, namespace: &str, spec: Value, protected: &str| {
        let mut object = kustomization(spec);
        object["metadata"]["annotations"] = json!({"interlock.dev/protected": protected});
        let mut cluster = Cluster::with_policy(policy);
        cluster.given(object);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        cluster.delete_cluster_scoped("alice", namespace)
    };
    let to_shop = |prune: bool| json!({"prune": prune, "targetNamespace": "shop"});
    assert_eq!(delete("", "shop", to_shop(false), "true"), refused("protected-release"), "its objects are there");
    assert_eq!(delete("", "team", to_shop(true), "true"), refused("protected-release"), "it is there, and prunes");
    assert_eq!(delete("", "team", to_shop(false), "true"), Ok(()), "its objects stay");
    assert_eq!(delete("", "shop", to_shop(true), "false"), Ok(()));
    assert_eq!(delete("", "other", to_shop(true), "true"), Ok(()));
    let policy = "protected: {namespaces: [shop]}";
    assert_eq!(delete(policy, "shop", to_shop(true), "false"), refused("protected-release"));
    assert_eq!(delete(policy, "team", to_shop(true), "false"), refused("protected-release"));
}

/// An edit takes a field out of the controller's entry, until the controller writes again.
#[test]
fn a_field_that_somebody_else_has_written_since_is_warned_about() {
    let taken = |time: &str, image: &str| {
        let mut object = web();
        let template = "/metadata/managedFields/0/fieldsV1/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"web\"}";
        object.pointer_mut(template).unwrap().as_object_mut().unwrap().remove("f:image");
        object["metadata"]["managedFields"][0]["time"] = "2026-11-20T10:00:00Z".into();
        let theirs = json!({
            "manager": "kubectl-set", "operation": "Update", "apiVersion": "apps/v1", "time": time,
            "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:containers": {
                "k:{\"name\":\"web\"}": {"f:image": {}},
            }}}}},
        });
        object["metadata"]["managedFields"].as_array_mut().unwrap().push(theirs);
        object["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
        object
    };
    let (later, earlier) = ("2026-11-20T11:00:00Z", "2026-11-20T09:00:00Z");
    let edit = |user: &str, time: &str| {
        let judged = cluster(json!({})).judged(user, Some(taken(time, "nginx:audited")), taken(time, "nginx:evil"));
        assert!(judged.allowed, "{:?}", judged.findings);
        judged.warnings.concat()
    };
    assert!(edit("alice", later).contains("somebody else has written"), "{}", edit("alice", later));
    assert_eq!((edit("alice", earlier), edit(CONTROLLER, later)), (String::new(), String::new()));
    let mut unlisted = Cluster::new();
    let judged = unlisted.judged("alice", Some(taken(later, "nginx:a")), taken(later, "nginx:b"));
    assert!(judged.allowed && judged.warnings.is_empty());
}
