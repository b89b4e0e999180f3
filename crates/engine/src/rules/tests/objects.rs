//! Edits, deletions and scaling of the objects of a release.

use std::sync::Arc;

use serde_json::{Value, json};

use super::scenario::{Cluster, Rec, Verdict, decided, rec, start};
use crate::effort::Effort;
use crate::evidence::{CandidateRecords, Freshness, Query, Question};
use crate::facts::{Facts, RecordBodies, RequestObjects};
use crate::policy::Policy;
use crate::release::manifest::{DocumentKey, document};
use crate::release::stamps::HOLDER;
use crate::release::{Entry, History, Stamps, Status, Storage};
use crate::review::Review;

pub(crate) const MANIFEST: &str = "---\n# Source: shop/templates/web.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  \
    name: web\n  labels:\n    app: web\nspec:\n  replicas: 2\n  template:\n    spec:\n      containers:\n      - name: \
    web\n        image: nginx:1\n---\napiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  ports:\n  - \
    port: 80\n";

/// A release with a deployed record, and a newest record with this status and holder.
fn release(status: &'static str, holder: &str) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.given_record(&record(5, "deployed", "alice"));
    cluster.later(100);
    let newest = Rec { created: cluster.now, ..record(6, status, holder) };
    cluster.given_record(&newest);
    cluster
}

pub(crate) fn record(revision: u64, status: &'static str, holder: &str) -> Rec {
    let record = Rec { manifest: MANIFEST, ..rec(revision, status) };
    if holder.is_empty() { record } else { record.annotated(HOLDER, holder) }
}

pub(crate) fn web() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "labels": {"app": "web", "app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"},
            "managedFields": [{"manager": "helm", "apiVersion": "apps/v1", "fieldsV1": {"f:spec": {
                "f:replicas": {}, "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {"f:image": {}}}}},
            }}}],
        },
        "spec": {
            "replicas": 2, "progressDeadlineSeconds": 600,
            "template": {"spec": {"containers": [{"name": "web", "image": "nginx:1"}]}},
        },
    })
}

fn with(pointer: &str, value: Value) -> Value {
    let mut object = web();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/");
    let parent = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    if value.is_null() {
        parent.remove(&key)
    } else {
        parent.insert(key, value)
    };
    object
}

pub(crate) fn image(tag: &str) -> Value {
    with("/spec/template/spec/containers", json!([{"name": "web", "image": format!("nginx:{tag}")}]))
}

/// An edit of the Deployment by this user.
fn edit(cluster: &mut Cluster, user: &str, new: Value) -> Verdict {
    cluster.update_objects(user, web(), new)
}

fn refused(rule: &'static str) -> Verdict {
    Err(vec![rule])
}

const ROBOT: &str = "system:serviceaccount:ci:deployer";
const FLUX: &str = "system:serviceaccount:flux-system:helm-controller";
const AUTOSCALER: &str = "system:serviceaccount:kube-system:horizontal-pod-autoscaler";
const MANAGED_BY: &str = "/metadata/labels/app.kubernetes.io~1managed-by";

#[test]
fn declared_fields_change_through_the_release_alone() {
    let mut cluster = release("deployed", "alice");
    for new in [
        image("evil"),
        with("/spec/replicas", json!(3)),
        with("/metadata/labels/app", json!("other")),
        with(MANAGED_BY, json!(null)),
        with("/metadata/annotations", json!(null)),
        with("/metadata/annotations/meta.helm.sh~1release-name", json!("other")),
        with("/metadata/managedFields", json!(null)),
        with("/metadata/managedFields", json!([{}])),
        with("/metadata/managedFields", json!([{"manager": "evil", "fieldsV1": {"f:spec": {"f:paused": {}}}}])),
    ] {
        assert_eq!(edit(&mut cluster, "alice", new.clone()), refused("manual-edit"), "{new}");
        assert_eq!(edit(&mut cluster, ROBOT, new), Ok(()));
    }
    let text = cluster.messages_for("bob", web(), image("evil"));
    assert_eq!(
        text,
        "Deployment shop/web is managed by release shop/web (revision 6, deployed): \
         spec.template.spec.containers[web].image is declared by the chart. Change it through `helm upgrade web CHART \
         -n shop`, or ask for a ReleaseOverride. [manual-edit]"
    );
}

#[test]
fn what_the_chart_does_not_declare_is_free() {
    let mut cluster = release("deployed", "alice");
    for new in [
        web(),
        with("/metadata/labels/team", json!("blue")),
        with("/spec/progressDeadlineSeconds", json!(60)),
        with("/spec/template/metadata", json!({"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}})),
        with("/status", json!({"replicas": 2})),
        with("/metadata/resourceVersion", json!("2")),
    ] {
        assert_eq!(edit(&mut cluster, "bob", new.clone()), Ok(()), "{new}");
    }
    assert_eq!(cluster.update_objects("bob", image("evil"), web()), Ok(()), "undoing a drift");
}

#[test]
fn fields_without_a_managed_fields_owner_are_still_declared() {
    let mut cluster = release("deployed", "alice");
    let taken = |tag: &str| {
        let mut object = image(tag);
        object["metadata"]["managedFields"] = json!([{"manager": "kubectl-set", "fieldsV1": {"f:spec": {}}}]);
        object
    };
    assert_eq!(cluster.update_objects("bob", taken("2"), taken("3")), refused("manual-edit"));
}

#[test]
fn managers_controllers_and_nodes_may_write_objects() {
    let mut cluster = release("deployed", "alice");
    for user in [FLUX, AUTOSCALER, "system:serviceaccount:keda:keda-operator", "system:node:worker-1 in system:nodes"] {
        assert_eq!(edit(&mut cluster, user, image("evil")), Ok(()), "{user}");
        assert_eq!(cluster.delete_object(user, web()), Ok(()), "{user}");
        cluster.given(web());
    }
}

#[test]
fn during_an_operation_only_its_holder_writes() {
    let mut cluster = release("pending-upgrade", "alice");
    assert_eq!(edit(&mut cluster, "alice", image("2")), Ok(()));
    assert_eq!(edit(&mut cluster, "bob", image("2")), refused("foreign-edit-in-transition"));
    assert_eq!(cluster.delete_object("bob", web()), refused("foreign-edit-in-transition"));
    assert_eq!(edit(&mut cluster, "bob", with("/metadata/labels/team", json!("blue"))), Ok(()));
    assert_eq!(edit(&mut cluster, ROBOT, image("2")), Ok(()), "watched first");
    cluster.later(12);
    let text = cluster.messages_for("bob", web(), image("2"));
    assert!(text.contains("(pending-upgrade, revision 6, held by alice for 12 s)"), "{text}");
    assert!(text.contains("Wait until the operation ends"), "{text}");
    cluster.later(900);
    assert_eq!(edit(&mut cluster, "bob", image("2")), refused("manual-edit"), "a stuck operation holds nothing");
    assert_eq!(edit(&mut cluster, "alice", image("2")), Ok(()));
}

#[test]
fn a_lost_stamp_is_no_reason_to_refuse() {
    let mut cluster = release("pending-upgrade", "");
    assert_eq!(edit(&mut cluster, "alice", image("2")), Ok(()));
    let text = cluster.messages_for("alice", web(), image("2"));
    assert!(text.contains("the user who holds it is not known. Wait until the operation ends."), "{text}");
    assert_eq!(cluster.messages_for("alice", web(), with("/metadata/labels/team", json!("x"))), "");
}

#[test]
fn a_cancelled_operation_ends_what_it_has_begun() {
    let mut cluster = release("failed", "alice");
    cluster.later(59);
    assert_eq!(edit(&mut cluster, "alice", image("2")), Ok(()));
    assert_eq!(edit(&mut cluster, "bob", image("2")), refused("manual-edit"));
    cluster.later(2);
    assert_eq!(edit(&mut cluster, "alice", image("2")), refused("manual-edit"));
}

#[test]
fn objects_are_deleted_through_the_release() {
    let mut cluster = release("deployed", "alice");
    assert_eq!(cluster.delete_object("bob", web()), refused("manual-delete"));
    let mut left_behind = web();
    left_behind["metadata"]["name"] = "old".into();
    assert_eq!(cluster.delete_object("bob", left_behind), Ok(()));
    let dying = with("/metadata/deletionTimestamp", json!("2026-11-21T10:00:00Z"));
    assert_eq!(cluster.delete_object("bob", dying.clone()), Ok(()));
    assert_eq!(cluster.update_objects("bob", dying, with("/spec/replicas", json!(0))), Ok(()));
    cluster.given(json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "deletionTimestamp": "2026-11-21T10:00:00Z"},
    }));
    assert_eq!(cluster.delete_object("bob", web()), Ok(()));
}

#[test]
fn objects_kept_by_an_uninstall_have_no_owner() {
    for status in ["uninstalled", ""] {
        let mut cluster = if status.is_empty() { Cluster::new() } else { release(status, "alice") };
        assert_eq!(edit(&mut cluster, "bob", image("2")), Ok(()), "{status}");
        assert_eq!(cluster.delete_object("bob", web()), Ok(()), "{status}");
    }
}

#[test]
fn a_scale_is_judged_by_its_parent() {
    let mut cluster = release("deployed", "alice");
    cluster.given(web());
    assert_eq!(cluster.scale("bob", &web(), 2, 7), refused("manual-scale"));
    assert_eq!(cluster.scale("bob", &web(), 7, 2), Ok(()), "undoing a drift");
    assert_eq!(cluster.scale(AUTOSCALER, &web(), 2, 7), Ok(()));
    assert_eq!(cluster.scale(ROBOT, &web(), 2, 7), Ok(()));
    let mut unmanaged = web();
    unmanaged["metadata"] = json!({"name": "free", "namespace": "shop"});
    cluster.given(unmanaged.clone());
    assert_eq!(cluster.scale("bob", &unmanaged, 2, 7), Ok(()));

    let mut cluster = Cluster::new();
    cluster.given(web());
    let undeclared = MANIFEST.replace("  replicas: 2\n", "");
    let manifest: &'static str = undeclared.leak();
    cluster.given_record(&Rec { manifest, ..record(1, "deployed", "alice") });
    assert_eq!(cluster.scale("bob", &web(), 2, 7), Ok(()));
    assert_eq!(edit(&mut cluster, "bob", image("2")), refused("manual-edit"));
}

#[test]
fn the_policy_names_the_scaled_field_of_a_custom_resource() {
    let listed = "rules:\n  manual-scale:\n    resources:\n    - {group: example.com, resource: widgets, kind: Widget, \
                  replicas: /spec/size}\n";
    let manifest = "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: web\nspec:\n  size: 2\n";
    let mut widget = web();
    widget["apiVersion"] = "example.com/v1".into();
    widget["kind"] = "Widget".into();
    for (policy, verdict) in [(listed, refused("manual-scale")), ("", Ok(()))] {
        let mut cluster = Cluster::with_policy(policy);
        cluster.given(widget.clone());
        cluster.given_record(&Rec { manifest, ..record(1, "deployed", "alice") });
        assert_eq!(cluster.scale("bob", &widget, 2, 7), verdict, "{policy}");
        assert_eq!(cluster.scale("bob", &widget, 7, 2), Ok(()));
    }
}

#[test]
fn managed_fields_are_ignored_if_the_api_version_is_the_same() {
    let mut cluster = release("deployed", "alice");
    let owned = |paused: bool| {
        let mut object = web();
        object["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:paused"] = json!({});
        object["spec"]["paused"] = paused.into();
        object
    };
    assert_eq!(cluster.update_objects("bob", owned(false), owned(true)), Ok(()));
}

#[test]
fn a_release_may_take_over_an_object_in_its_own_operation() {
    let mut cluster = release("deployed", "alice");
    let theirs = with("/metadata/annotations/meta.helm.sh~1release-name", json!("other"));
    assert_eq!(edit(&mut cluster, "alice", theirs.clone()), refused("manual-edit"));
    cluster.given_record(&Rec { release: "other", ..record(1, "pending-install", "alice") });
    assert_eq!(edit(&mut cluster, "bob", theirs.clone()), refused("manual-edit"));
    let mut contradictory = theirs.clone();
    contradictory["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "nobody".into();
    assert_eq!(edit(&mut cluster, "alice", contradictory), refused("manual-edit"));
    assert_eq!(edit(&mut cluster, "alice", theirs), Ok(()));
}

#[test]
fn only_a_release_that_declares_an_object_may_take_it_over() {
    let theirs = with("/metadata/annotations/meta.helm.sh~1release-name", json!("other"));
    for (manifest, verdict) in [
        (MANIFEST, Ok(())),
        ("", refused("manual-edit")),
        ("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: bar\n", refused("manual-edit")),
        ("apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n", refused("manual-edit")),
    ] {
        let mut cluster = release("deployed", "alice");
        cluster.given_record(&Rec { release: "other", manifest, ..record(1, "pending-install", "alice") });
        assert_eq!(edit(&mut cluster, "alice", theirs.clone()), verdict, "{manifest}");
    }
}

#[test]
fn objects_in_typed_lists_or_moved_groups_are_declared() {
    let list = "apiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata: {name: web}\n  spec: {replicas: 2}\n";
    let moved = "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2}\n";
    for manifest in [list, moved] {
        let mut cluster = Cluster::new();
        cluster.given_record(&Rec { manifest, ..record(1, "deployed", "alice") });
        assert_eq!(edit(&mut cluster, "bob", with("/spec/replicas", json!(3))), refused("manual-edit"), "{manifest}");
        assert_eq!(cluster.update_objects("bob", with("/spec/replicas", json!(3)), web()), Ok(()), "{manifest}");
        assert_eq!(edit(&mut cluster, "bob", with("/metadata/labels/team", json!("x"))), Ok(()), "{manifest}");
        assert_eq!(cluster.delete_object("bob", web()), refused("manual-delete"), "{manifest}");
    }
}

#[test]
fn a_declared_object_is_protected_against_all_detours() {
    let mut cluster = release("deployed", "alice");
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "1"}]);
    let (owned, held) = (with("/metadata/ownerReferences", owner), with("/metadata/finalizers", json!(["x.io/y"])));
    for new in [&owned, &held] {
        assert_eq!(edit(&mut cluster, "bob", new.clone()), refused("manual-edit"), "{new}");
        assert_eq!(cluster.update_objects("bob", new.clone(), web()), Ok(()), "{new}");
        assert_eq!(edit(&mut cluster, AUTOSCALER, new.clone()), Ok(()), "{new}");
    }
}

#[test]
fn a_declared_mode_is_octal() {
    let manifest = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  template:\n    spec:\n      volumes:\n      - name: a\n        configMap: {name: a, defaultMode: 0644}\n";
    let mode = |mode: u32| {
        let volumes = json!([{"name": "a", "configMap": {"name": "a", "defaultMode": mode}}]);
        with("/spec/template/spec", json!({ "volumes": volumes }))
    };
    let mut cluster = Cluster::new();
    cluster.given_record(&Rec { manifest, ..record(1, "deployed", "alice") });
    assert_eq!(cluster.update_objects("bob", mode(420), mode(644)), refused("manual-edit"));
    assert_eq!(cluster.update_objects("bob", mode(420), mode(511)), refused("manual-edit"));
    assert_eq!(cluster.update_objects("bob", mode(511), mode(420)), Ok(()));
}

#[test]
fn contradictory_marks_leave_the_rules_undecided() {
    let mut cluster = release("deployed", "alice");
    let stripped = with(MANAGED_BY, json!(null));
    assert_eq!(cluster.update_objects("bob", stripped.clone(), image("2")), Ok(()));
    let text = cluster.messages_for("bob", stripped, image("2"));
    assert!(text.contains("app.kubernetes.io/managed-by is missing or contradicts its other"), "{text}");
    assert!(text.contains("Correct it"), "{text}");
    let argo = with("/metadata/annotations", json!(null));
    assert_eq!(cluster.messages_for("bob", argo, image("2")), "");
}

#[test]
fn a_sveltos_profile_owns_what_its_agent_wrote() {
    let mut cluster = Cluster::new();
    let object = |mark: &str, value: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"mode": mark, "free": value},
            "metadata": {
                "name": "web", "namespace": "shop", "labels": {"projectsveltos.io/reason": "Helm"},
                "annotations": {
                    "projectsveltos.io/owner-name": "prod", "projectsveltos.io/owner-kind": "ClusterProfile",
                },
                "managedFields": [{
                    "manager": "application/apply-patch", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:mode": {}}},
                }],
            },
        })
    };
    assert_eq!(cluster.update_objects("bob", object("a", "x"), object("a", "y")), Ok(()));
    assert_eq!(cluster.update_objects("bob", object("a", "x"), object("b", "x")), refused("manual-edit"));
    assert_eq!(cluster.delete_object("bob", object("a", "x")), refused("manual-delete"));
    let text = cluster.messages_for("bob", object("a", "x"), object("b", "x"));
    assert!(text.starts_with("ConfigMap shop/web is managed by the Sveltos ClusterProfile prod: data.mode"), "{text}");
    let agent = "system:serviceaccount:projectsveltos:sveltos-applier-manager";
    assert_eq!(cluster.update_objects(agent, object("a", "x"), object("b", "x")), Ok(()));
}

#[test]
fn a_scale_of_what_a_profile_declares_is_an_edit_of_it() {
    let declared = json!({"f:spec": {"f:replicas": {}}});
    let whole_spec = json!({"f:spec": {}});
    let free = json!({"f:spec": {"f:template": {}}});
    for (written, manager, verdict) in [
        (&declared, "application/apply-patch", refused("manual-scale")),
        (&whole_spec, "application/apply-patch", refused("manual-scale")),
        (&free, "application/apply-patch", Ok(())),
        (&declared, "kubectl", Ok(())),
    ] {
        let mut cluster = Cluster::new();
        let mut object = web();
        object["metadata"]["labels"] = json!({"projectsveltos.io/reason": "Helm"});
        object["metadata"]["annotations"] =
            json!({"projectsveltos.io/owner-name": "prod", "projectsveltos.io/owner-kind": "ClusterProfile"});
        object["metadata"]["managedFields"] =
            json!([{"manager": manager, "apiVersion": "apps/v1", "fieldsV1": written}]);
        cluster.given(object.clone());
        assert_eq!(cluster.scale("bob", &object, 2, 7), verdict, "{manager}: {written}");
        assert_eq!(cluster.scale(AUTOSCALER, &object, 2, 7), Ok(()));
    }
}

#[test]
fn values_of_secrets_are_never_shown() {
    let mut cluster = Cluster::new();
    let manifest = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: key\nstringData:\n  password: hunter2\n";
    cluster.given_record(&Rec { manifest, ..record(1, "deployed", "alice") });
    let object = |value: &str| {
        let mut object = json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": value}});
        object["metadata"] = web()["metadata"].clone();
        object["metadata"]["name"] = "key".into();
        object
    };
    let text = cluster.messages_for("bob", object("aHVudGVyMg=="), object("aHVudGVyMw=="));
    assert!(text.contains("data.password is declared by the chart"), "{text}");
    assert!(!text.contains("hunter") && !text.contains("aHVu"), "{text}");
}

/// The queries of the rules about an edit, in a cluster where caches have everything.
fn asked(status: Status, holder: &str, user: &str, new: &Value) -> Vec<&'static str> {
    let request = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "UPDATE", "name": "web", "namespace": "shop", "userInfo": {"username": user},
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "oldObject": web(), "object": new,
        },
    });
    let body = serde_json::to_vec(&request).unwrap();
    let review = Review::parse(&body).unwrap();
    let (objects, bodies) = (RequestObjects::read(&review.request).unwrap(), RecordBodies::default());
    let effort = Effort::of_review();
    let facts = Facts::of(&review.request, &objects, &bodies, &effort);
    let mut stamps = Stamps::default();
    stamps.set(HOLDER, holder.to_owned());
    let entry = Entry {
        uid: "u".into(),
        resource_version: "1".into(),
        created: Some(start()),
        stamps,
        ..Entry::of_web(5, status)
    };
    let history = History::new(vec![entry]);
    let candidate =
        vec![CandidateRecords { storage: Storage::Secret, namespace: "shop".into(), history, held_for_origin: false }];
    let document = document(
        MANIFEST,
        &DocumentKey {
            group: "apps".into(),
            kind: "Deployment".into(),
            namespace: "shop".into(),
            name: "web".into(),
            default_namespace: "shop".into(),
        },
        &Effort::of_review(),
    );
    let document = Arc::new(document.unwrap().unwrap());
    let mut asked = Vec::new();
    _ = decided(&facts, &Policy::shipped().unwrap(), |query| {
        let (name, answer) = match query {
            Query::Release(it) => {
                (if it.freshness == Freshness::Cached { "cache" } else { "live" }, it.answered(candidate.clone()))
            }
            Query::Document(it) => ("document", it.answered(Ok(Some(document.clone())))),
            Query::Overrides(it) => {
                let name = if it.freshness == Freshness::Cached { "known overrides" } else { "overrides" };
                (name, it.answered(Vec::new()))
            }
            Query::HelmReleases(it) => ("drivers", it.answered(Ok(Vec::new()))),
            query => panic!("{query:?}"),
        };
        asked.push(name);
        answer
    });
    asked
}

#[test]
fn only_refusals_query_the_api_server() {
    use Status::{Deployed, PendingUpgrade};
    let nothing: [&str; 0] = [];
    assert_eq!(asked(PendingUpgrade, "alice", "alice", &image("2")), ["cache"]);
    assert_eq!(asked(Deployed, "alice", "bob", &with("/metadata/labels/team", json!("x"))), ["cache", "document"]);
    let refused = ["cache", "document", "live", "drivers", "known overrides", "overrides"];
    assert_eq!(asked(Deployed, "alice", "bob", &image("2")), refused);
    let audited = asked(Deployed, "alice", ROBOT, &image("2"));
    assert!(!audited.iter().any(|query| query.contains("overrides")), "audit refuses nothing: {audited:?}");
    assert_eq!(asked(Deployed, "alice", "bob", &with("/status", json!(1))), nothing);
    assert_eq!(asked(Deployed, "alice", FLUX, &image("2")), nothing);
    assert_eq!(asked(Deployed, "alice", AUTOSCALER, &image("2")), nothing);
}

#[test]
fn a_pod_is_resized_as_it_is_edited() {
    let manifest = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: one}\nspec:\n  containers:\n  - name: a\n    resources: \
                    {limits: {cpu: 1}}\n";
    let pod = |cpu: &str| {
        let mut pod = web();
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        pod["metadata"]["name"] = "one".into();
        pod["spec"] = json!({"containers": [{"name": "a", "resources": {"limits": {"cpu": cpu}}}]});
        pod
    };
    let mut cluster = Cluster::new();
    cluster.given_record(&Rec { manifest, ..rec(5, "deployed") });
    let refused = Err(vec!["manual-edit"]);
    assert_eq!(cluster.update_through("resize", "bob", pod("1"), pod("2")), refused);
    assert_eq!(cluster.update_through("resize", "bob", pod("1"), pod("1000m")), Ok(()));
}

#[test]
fn a_refused_deletion_says_how_to_recreate_what_cannot_be_changed() {
    let manifest = "kind: StatefulSet\napiVersion: apps/v1\nmetadata: {name: web}\nspec: {serviceName: web}\n";
    let stateful = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "shop", "labels": web()["metadata"]["labels"], "annotations": web()["metadata"]["annotations"]},
        "spec": {"serviceName": "web"},
    });
    let deleted = |rules: &str, object: &Value| {
        let mut cluster = Cluster::with_policy(rules);
        let deployed = record(5, "deployed", "alice");
        cluster.given_record(&Rec {
            manifest: if object["kind"] == "StatefulSet" { manifest } else { MANIFEST },
            ..deployed
        });
        (cluster.findings("bob", Some(object.clone()), None).concat(), cluster.delete_object("bob", object.clone()))
    };
    let (text, verdict) = deleted("", &stateful);
    assert_eq!(verdict, refused("manual-delete"));
    assert!(text.contains("delete the StatefulSet with --cascade=orphan under such an override"), "{text}");
    assert!(!deleted("", &web()).0.contains("--cascade"));
    let case = "rules:\n  manual-delete: {cases: [{when: {kinds: [StatefulSet], users: [bob]}, mode: audit}]}\n";
    assert_eq!(deleted(case, &stateful).1, Ok(()));
    assert_eq!(deleted(case, &web()).1, refused("manual-delete"));
}
