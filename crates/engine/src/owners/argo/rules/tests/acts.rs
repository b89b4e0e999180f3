//! Acts of those who want past the guards, and of those who must not be stopped.

#![expect(clippy::too_many_lines, reason = "lists of acts")]

use serde_json::{Value, json};

use super::{
    CONTROLLER, FRESH, LAST_APPLIED, OPTIONS, SERVER, STALE, TRACKING, application, cluster, config, operating,
    refused, sync, synced, web, with, without, written,
};
use crate::rules::tests::acts::{only, set};
use crate::rules::tests::scenario::{Cluster, Rec, Verdict, rec};

const ROBOT: &str = "system:serviceaccount:ci:robot";
const GC: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
const HPA: &str = "system:serviceaccount:kube-system:horizontal-pod-autoscaler";
const PROTECTED: &str = "interlock.dev/protected";

#[track_caller]
fn act(what: &str, verdict: Verdict, expected: Verdict) {
    assert_eq!(verdict, expected, "{what}");
}

fn removed(mut object: Value, pointer: &str, key: &str) -> Value {
    object.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(key);
    object
}
fn evil() -> Value {
    with(&["data", "mode"], "evil".into())
}
const EDIT: &str = "manual-edit";

#[test]
fn marks_and_detours() {
    let edit = |old: Value, new: Value| synced().update_objects("alice", old, new);
    // 1..: one write
    act("annotations null", edit(config(), set(config(), "/metadata/annotations", Value::Null)), refused(EDIT));
    act("annotations {}", edit(config(), set(config(), "/metadata/annotations", json!({}))), refused(EDIT));
    act("tracking empty", edit(config(), with(&["metadata", "annotations", TRACKING], "".into())), refused(EDIT));
    act(
        "tracking with a space",
        edit(config(), with(&["metadata", "annotations", TRACKING], " web:/ConfigMap:shop/web".into())),
        refused(EDIT),
    );
    act("data null", edit(config(), with(&["data"], Value::Null)), refused(EDIT));
    act("data.mode null", edit(config(), with(&["data", "mode"], Value::Null)), refused(EDIT));
    act("data.mode 1MB", edit(config(), with(&["data", "mode"], "x".repeat(1 << 20).into())), refused(EDIT));
    act("binaryData.mode new", edit(config(), with(&["binaryData"], json!({"other": "AA=="}))), Ok(()));
    act("immutable true", edit(config(), set(config(), "/immutable", true.into())), refused(EDIT));
    let full =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"mode": "declared"}});
    let full = with(&["metadata", "annotations", LAST_APPLIED], full.to_string().into());
    act("finalizer", edit(full.clone(), set(full.clone(), "/metadata/finalizers", json!(["a/b"]))), refused(EDIT));
    act(
        "ownerReference",
        edit(
            full.clone(),
            set(
                full,
                "/metadata/ownerReferences",
                json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "ghost", "uid": "1"}]),
            ),
        ),
        refused(EDIT),
    );
    let ssa = |o: Value| edit(web(2), o);
    act("SSA: finalizer", ssa(set(web(2), "/metadata/finalizers", json!(["a/b"]))), refused(EDIT));
    act(
        "SSA: ownerReference",
        ssa(set(
            web(2),
            "/metadata/ownerReferences",
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "ghost", "uid": "1"}]),
        )),
        refused(EDIT),
    );
    act("SSA: managedFields null", ssa(set(web(2), "/metadata/managedFields", Value::Null)), refused(EDIT));
    act("SSA: managedFields []", ssa(set(web(2), "/metadata/managedFields", json!([]))), refused(EDIT));
    act("SSA: managedFields [{}]", ssa(set(web(2), "/metadata/managedFields", json!([{}]))), refused(EDIT));
    act("SSA: manager renamed", ssa(set(web(2), "/metadata/managedFields/0/manager", "x".into())), refused(EDIT));
    act(
        "SSA: fieldsV1 emptied",
        ssa(set(web(2), "/metadata/managedFields/0/fieldsV1", json!({"f:metadata": {"f:labels": {}}}))),
        refused(EDIT),
    );
    act(
        "SSA: entry of another version",
        ssa(set(web(2), "/metadata/managedFields/0/apiVersion", "apps/v1beta1".into())),
        refused(EDIT),
    );
    act(
        "SSA: entry of a subresource",
        ssa(set(web(2), "/metadata/managedFields/0/subresource", "scale".into())),
        refused(EDIT),
    );
    // A rewritten basis, then the edit.
    for (what, basis) in [
        ("fields emptied", set(web(2), "/metadata/managedFields/0/fieldsV1", json!({}))),
        ("version", set(web(2), "/metadata/managedFields/0/apiVersion", "apps/v1beta1".into())),
    ] {
        let mut after = basis.clone();
        after["spec"]["replicas"] = 5.into();
        act(&format!("SSA second write: {what}"), edit(basis, after), refused(EDIT));
    }
    act(
        "last-applied rewritten",
        edit(config(), with(&["metadata", "annotations", LAST_APPLIED], "{}".into())),
        refused(EDIT),
    );
    act(
        "status subresource drops the mark",
        synced().update_through("status", "alice", config(), without(TRACKING)),
        refused(EDIT),
    );
    act(
        "hook annotation by hand",
        edit(config(), with(&["metadata", "annotations", "argocd.argoproj.io/hook"], "Sync".into())),
        refused(EDIT),
    );
    act(
        "compare-options by hand",
        edit(
            config(),
            with(&["metadata", "annotations", "argocd.argoproj.io/compare-options"], "IgnoreExtraneous".into()),
        ),
        refused(EDIT),
    );
    // copied marks
    for (what, labels, annotations) in [
        (
            "helm ghost",
            json!({"app.kubernetes.io/managed-by": "Helm"}),
            json!({"meta.helm.sh/release-name": "ghost", "meta.helm.sh/release-namespace": "shop"}),
        ),
        (
            "helm of interlock-system",
            json!({"app.kubernetes.io/managed-by": "Helm"}),
            json!({"meta.helm.sh/release-name": "ghost", "meta.helm.sh/release-namespace": "interlock-system"}),
        ),
        (
            "kustomize ghost",
            json!({"kustomize.toolkit.fluxcd.io/name": "g", "kustomize.toolkit.fluxcd.io/namespace": "g"}),
            json!({}),
        ),
        (
            "sveltos ghost",
            json!({"projectsveltos.io/reason": "x"}),
            json!({"projectsveltos.io/owner-kind": "Profile", "projectsveltos.io/owner-name": "p"}),
        ),
        (
            "helm+kustomize ghosts",
            json!({"app.kubernetes.io/managed-by": "Helm", "kustomize.toolkit.fluxcd.io/name": "g", "kustomize.toolkit.fluxcd.io/namespace": "g"}),
            json!({"meta.helm.sh/release-name": "ghost", "meta.helm.sh/release-namespace": "shop"}),
        ),
        (
            "helm+sveltos ghosts",
            json!({"app.kubernetes.io/managed-by": "Helm", "projectsveltos.io/reason": "x"}),
            json!({"meta.helm.sh/release-name": "ghost", "meta.helm.sh/release-namespace": "shop", "projectsveltos.io/owner-kind": "Profile", "projectsveltos.io/owner-name": "p"}),
        ),
        ("instance label ghost", json!({"argocd.argoproj.io/instance": "ghost"}), json!({})),
    ] {
        for object in [config(), web(2)] {
            let kind = object["kind"].as_str().unwrap().to_owned();
            let mut object = object;
            if kind == "Deployment" {
                object["metadata"]["managedFields"][0]["time"] = "2026-11-20T10:00:00Z".into();
            }
            let before = object.clone();
            object["metadata"]["labels"] = labels.clone();
            object["metadata"]["annotations"].as_object_mut().unwrap().extend(annotations.as_object().unwrap().clone());
            let first = edit(before, object.clone());
            let mut after = object.clone();
            if kind == "Deployment" {
                after["spec"]["replicas"] = 5.into()
            } else {
                after["data"]["mode"] = "evil".into()
            }
            let mut c = synced();
            c.given(object.clone());
            let second = c.update_objects("alice", object.clone(), after);
            let third = c.delete_object("alice", object.clone());
            assert_eq!(first, Ok(()), "{kind} + {what}: marks are undeclared");
            act(&format!("{kind} + {what}: edit"), second, refused(EDIT));
            act(&format!("{kind} + {what}: delete"), third, refused("manual-delete"));
            if kind == "Deployment" {
                act(&format!("{kind} + {what}: scale"), c.scale("alice", &object, 2, 5), refused("manual-scale"));
            }
        }
    }
}

/// marks of a live release of the attacker, which does not declare the object
#[test]
fn a_release_that_declares_nothing() {
    for helm_time in ["2026-11-19T10:00:00Z", "2026-11-21T10:00:00Z"] {
        let mut object = web(2);
        object["metadata"]["managedFields"][0]["time"] = "2026-11-20T10:00:00Z".into();
        object["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "Helm"});
        object["metadata"]["annotations"]["meta.helm.sh/release-name"] = "mine".into();
        object["metadata"]["annotations"]["meta.helm.sh/release-namespace"] = "shop".into();
        object["metadata"]["managedFields"].as_array_mut().unwrap().push(json!({"manager": "helm", "operation": "Update", "apiVersion": "apps/v1", "time": helm_time, "fieldsV1": {"f:metadata": {"f:labels": {"f:app.kubernetes.io/managed-by": {}}}}}));
        let mut c = synced();
        c.given(object.clone());
        c.given_record(&Rec {
            release: "mine",
            manifest: "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\n",
            ..rec(1, "deployed")
        });
        let after = set(object.clone(), "/spec/replicas", 5.into());
        act(
            &format!("other release, helm {helm_time}: edit"),
            c.update_objects("alice", object.clone(), after),
            refused(EDIT),
        );
        act(
            &format!("other release, helm {helm_time}: scale"),
            c.scale("alice", &object, 2, 5),
            refused("manual-scale"),
        );
        act(
            &format!("other release, helm {helm_time}: delete"),
            c.delete_object("alice", object),
            refused("manual-delete"),
        );
    }
}

/// An Application that its creator gave a status, in a namespace that Argo CD does not watch.
#[test]
fn a_forged_application() {
    let mut forged =
        application(json!({"ignoreDifferences": [{"group": "*", "kind": "*", "jsonPointers": [""]}]}), false);
    forged["metadata"] = json!({"name": "evil", "namespace": "mine"});
    act(
        "create an Application with a status",
        Cluster::new().create_object("alice", forged.clone()),
        refused("forged-status"),
    );
    let mut listing_nothing = forged.clone();
    listing_nothing["status"] = json!({"resources": [], "health": {"status": "Healthy"}});
    act("create an Application that lists nothing", Cluster::new().create_object("alice", listing_nothing), Ok(()));
    for user in ["system:serviceaccount:velero:velero", CONTROLLER, SERVER, ROBOT] {
        act(
            &format!("{user}: create an Application with a status"),
            Cluster::new().create_object(user, forged.clone()),
            Ok(()),
        );
    }
    let message = Cluster::new().findings("alice", None, Some(forged.clone())).concat();
    assert!(message.contains("Leave `status` out"), "{message}");
    // an object of a release
    let manifest =
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {replicas: 2}\n";
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2},
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"},
            "managedFields": [{"manager": "helm", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-11-20T10:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]},
    });
    let plain = object.clone();
    object["metadata"]["annotations"][TRACKING] = "mine_evil:apps/Deployment:shop/web".into();
    object["metadata"]["managedFields"].as_array_mut().unwrap().push(json!({"manager": "argocd-controller", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-11-21T09:00:00Z", "fieldsV1": {"f:metadata": {"f:annotations": {format!("f:{TRACKING}"): {}}}}}));
    let mut c = Cluster::new();
    c.given_record(&Rec { manifest, ..rec(1, "deployed") });
    c.given(forged);
    act("helm object: mark added", c.update_objects("alice", plain, object.clone()), Ok(()));
    act(
        "helm object: edit by forged app",
        c.update_objects("alice", object.clone(), set(object.clone(), "/spec/replicas", 5.into())),
        refused(EDIT),
    );
    act(
        "helm record deletion by forged app",
        c.delete("alice", &Rec { manifest, ..rec(1, "deployed") }),
        refused("record-deletion"),
    );
}

#[test]
fn left_to_others() {
    let edit =
        |spec: Value, old: Value, new: Value| cluster(application(spec, false)).update_objects("alice", old, new);
    let rule = |rest: Value| {
        let mut rule = json!({"group": "", "kind": "ConfigMap"});
        rule.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        json!({"ignoreDifferences": [rule]})
    };
    for (what, rest) in [
        ("jq one annotation", json!({"jqPathExpressions": [".metadata.annotations[\"x\"]"]})),
        ("jq quoted annotation", json!({"jqPathExpressions": [".metadata.annotations.\"x\""]})),
        ("pointer annotations", json!({"jsonPointers": ["/metadata/annotations"]})),
        ("pointer metadata", json!({"jsonPointers": ["/metadata"]})),
        ("pointer all", json!({"jsonPointers": [""]})),
        ("jq del", json!({"jqPathExpressions": ["del(.spec)"]})),
    ] {
        act(
            &format!("{what}: tracking-id removed"),
            edit(rule(rest.clone()), config(), without(TRACKING)),
            refused(EDIT),
        );
        act(&format!("{what}: last-applied removed"), edit(rule(rest), config(), without(LAST_APPLIED)), refused(EDIT));
    }
    act(
        "pointer all: managedFields cleared",
        cluster(application(
            json!({"ignoreDifferences": [{"group": "apps", "kind": "Deployment", "jsonPointers": ["/metadata"]}]}),
            false,
        ))
        .update_objects("alice", web(2), set(web(2), "/metadata/managedFields", json!([]))),
        refused(EDIT),
    );
    act(
        "delete of ignored",
        cluster(application(rule(json!({"jsonPointers": ["/data"]})), false)).delete_object("alice", config()),
        refused("manual-delete"),
    );
    act(
        "glob of another kind",
        edit(
            json!({"ignoreDifferences": [{"group": "*.example.com", "kind": "Foo*", "jsonPointers": ["/data"]}]}),
            config(),
            evil(),
        ),
        refused(EDIT),
    );
    act("broken pointer", edit(rule(json!({"jsonPointers": ["data"]})), config(), evil()), refused(EDIT));
    act("pointer of a longer key", edit(rule(json!({"jsonPointers": ["/data/mod"]})), config(), evil()), refused(EDIT));
    act("pointer escapes", edit(rule(json!({"jsonPointers": ["/data/mode~1x"]})), config(), evil()), refused(EDIT));
    let managers =
        |name: &str, object: Value, new: Value| edit(rule(json!({"managedFieldsManagers": [name]})), object, new);
    act("manager *", managers("*", config(), evil()), refused(EDIT));
    act("manager empty", managers("", config(), evil()), refused(EDIT));
    // alice co-owns the field under the name of the manager, without a change, and then edits it. Argo CD ignores such a field too.
    let mut shared = config();
    shared["metadata"]["managedFields"] = json!([
        {"manager": "argocd-controller", "operation": "Update", "apiVersion": "v1", "time": "2026-11-20T10:00:00Z", "fieldsV1": {"f:data": {"f:mode": {}}}},
        {"manager": "scaler", "operation": "Apply", "apiVersion": "v1", "time": "2026-11-21T09:00:00Z", "fieldsV1": {"f:data": {"f:mode": {}}}},
    ]);
    act(
        "name of the manager taken",
        managers("scaler", shared.clone(), set(shared, "/data/mode", "evil".into())),
        Ok(()),
    );
    // argocd-cm
    let cm = |namespace: &str, text: &str| {
        let mut c = synced();
        c.given(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": namespace}, "data": {"resource.customizations.ignoreDifferences.all": text}}));
        c.update_objects("alice", config(), evil())
    };
    act("cm of a tenant", cm("shop", "jsonPointers: [/data]"), refused(EDIT));
    act("cm", cm("argocd", "jsonPointers: [/data]"), Ok(()));
    act("cm json", cm("argocd", "{\"jsonPointers\": [\"/data\"]}"), Ok(()));
    act("cm broken", cm("argocd", "jsonPointers: [/data"), refused(EDIT));
    act("cm null", cm("argocd", "jsonPointers: ~"), refused(EDIT));
    let bomb = format!(
        "a: &a [x,x,x,x,x,x,x,x,x]\n{}jsonPointers: [/nothing]\n",
        (b'b'..b'k')
            .map(|l| {
                let (l, p) = (l as char, (l - 1) as char);
                format!("{l}: &{l} [{}]\n", vec![format!("*{p}"); 9].join(","))
            })
            .collect::<String>()
    );
    act("cm bomb", cm("argocd", &bomb), refused(EDIT));
    act("cm 1 MB", cm("argocd", &format!("jsonPointers: [{}]", "/nothing,".repeat(100_000))), refused(EDIT));
    act("cm 1 MB flow", cm("argocd", &"{a},".repeat(250_000)), refused(EDIT));
    act("cm anchor", cm("argocd", "x: &x /data\njsonPointers: [*x]"), Ok(()));
}

#[test]
fn elsewhere_and_other_versions() {
    // another version of the same object
    let hpa = |version: &str, min: u64, managed: bool| {
        let mut o = json!({"apiVersion": version, "kind": "HorizontalPodAutoscaler", "spec": {"minReplicas": min, "maxReplicas": 9},
        "metadata": {"name": "web", "namespace": "shop", "annotations": {TRACKING: "web:autoscaling/HorizontalPodAutoscaler:shop/web"},
            "managedFields": [{"manager": "argocd-controller", "operation": "Apply", "apiVersion": "autoscaling/v2", "fieldsV1": {"f:spec": {"f:minReplicas": {}, "f:maxReplicas": {}}}}]}});
        if managed {
            o["metadata"]["annotations"][LAST_APPLIED] = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": {"minReplicas": 2, "maxReplicas": 9}}).to_string().into();
        }
        o
    };
    let mut app = application(json!({}), false);
    app["status"]["resources"].as_array_mut().unwrap().push(json!({"group": "autoscaling", "kind": "HorizontalPodAutoscaler", "version": "v2", "namespace": "shop", "name": "web"}));
    for managed in [false, true] {
        for version in ["autoscaling/v2", "autoscaling/v1"] {
            act(
                &format!("HPA by {version}, last-applied {managed}"),
                cluster(app.clone()).update_objects("alice", hpa(version, 2, managed), hpa(version, 0, managed)),
                refused(EDIT),
            );
        }
    }
    // Application deploys to another cluster
    let remote = application(json!({"destination": {"server": "https://far", "namespace": "shop"}}), false);
    act("remote destination", cluster(remote.clone()).update_objects("alice", config(), evil()), Ok(()));
    let named = application(json!({"destination": {"name": "far", "namespace": "shop"}}), false);
    act("remote destination by name", cluster(named).update_objects("alice", config(), evil()), Ok(()));
    let mut r = remote;
    r["metadata"]["annotations"] = json!({PROTECTED: "true"});
    let ns = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    act("namespace of remote app", cluster(r).delete_cluster_scoped("alice", ns), Ok(()));
    // Secret with stringData
    let secret = |pw: &str, managed: bool| {
        let mut s = json!({"apiVersion": "v1", "kind": "Secret", "data": {"pw": pw}, "metadata": {"name": "web", "namespace": "shop", "annotations": {TRACKING: "web:/Secret:shop/web", LAST_APPLIED: json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"pw": "a"}}).to_string()}}});
        s["metadata"]["managedFields"] = if managed {
            json!([{"manager": "argocd-controller", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:pw": {}}}}])
        } else {
            json!([{"manager": "argocd-controller", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:metadata": {"f:annotations": {}}}}])
        };
        s
    };
    let mut app = application(json!({}), false);
    app["status"]["resources"]
        .as_array_mut()
        .unwrap()
        .push(json!({"kind": "Secret", "namespace": "shop", "name": "web"}));
    act(
        "secret, entry",
        cluster(app.clone()).update_objects("alice", secret("YQ==", true), secret("Yg==", true)),
        refused(EDIT),
    );
    act(
        "secret, stringData only",
        cluster(app).update_objects("alice", secret("YQ==", false), secret("Yg==", false)),
        refused(EDIT),
    );
    // cluster-scoped and Namespace
    let named = |kind: &str, api: &str, group: &str, label: &str| json!({"apiVersion": api, "kind": kind, "metadata": {"name": "shop", "labels": {"a": label}, "annotations": {TRACKING: format!("web:{group}/{kind}:shop/shop")}, "managedFields": [{"manager": "argocd-controller", "operation": "Apply", "apiVersion": api, "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}}}]}});
    for (kind, api, group) in
        [("ClusterRole", "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"), ("Namespace", "v1", "")]
    {
        let mut app = application(json!({}), false);
        app["status"]["resources"].as_array_mut().unwrap().push(json!({"group": group, "kind": kind, "name": "shop"}));
        let mut c = cluster(app.clone());
        let judged = c.update_cluster_scoped("alice", named(kind, api, group, "1"), named(kind, api, group, "2"));
        act(&format!("{kind} cluster-scoped"), if judged.allowed { Ok(()) } else { refused(EDIT) }, refused(EDIT));
        if kind == "Namespace" {
            act(
                "Namespace with request.namespace",
                cluster(app).update_objects("alice", named(kind, api, group, "1"), named(kind, api, group, "2")),
                refused(EDIT),
            );
        }
    }
    // scale: declared by last-applied, field owned by somebody else since
    let mut scaled = web(2);
    scaled["metadata"]["annotations"][LAST_APPLIED] =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2}}).to_string().into();
    scaled["metadata"]["managedFields"] = json!([
        {"manager": "argocd-controller", "operation": "Update", "apiVersion": "apps/v1", "fieldsV1": {"f:spec": {"f:template": {}}}},
        {"manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
    ]);
    let mut c = synced();
    c.given(scaled.clone());
    act("scale, declared by last-applied only", c.scale("alice", &scaled, 2, 5), refused("manual-scale"));
    act(
        "edit of the same",
        c.update_objects("alice", scaled.clone(), set(scaled.clone(), "/spec/replicas", 5.into())),
        refused(EDIT),
    );
    act("scale by HPA", synced().scale(HPA, &web(2), 2, 5), Ok(()));
    act(
        "scale of an unknown object",
        synced().scale("alice", &set(web(2), "/metadata/name", "other".into()), 2, 5),
        Ok(()),
    );
    act("scale to the same", synced().scale("alice", &web(2), 2, 2), Ok(()));
}

#[test]
fn who_must_not_be_stopped() {
    let restart = |o: Value| {
        let mut o = o;
        o["spec"]["template"] = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}});
        o
    };
    for user in ["alice", SERVER, ROBOT] {
        act(&format!("{user}: rollout restart"), synced().update_objects(user, web(2), restart(web(2))), Ok(()));
        act(
            &format!("{user}: pause"),
            synced().update_objects(user, web(2), set(web(2), "/spec/paused", true.into())),
            Ok(()),
        );
        act(&format!("{user}: no change"), synced().update_objects(user, web(2), web(2)), Ok(()));
    }
    for user in [SERVER, ROBOT, CONTROLLER, GC, HPA] {
        act(&format!("{user}: edit"), synced().update_objects(user, web(2), web(5)), Ok(()));
        act(&format!("{user}: delete"), synced().delete_object(user, web(2)), Ok(()));
    }
    let dying = |o: Value| {
        set(
            set(o, "/metadata/deletionTimestamp", "2026-11-21T10:00:00Z".into()),
            "/metadata/finalizers",
            json!(["foregroundDeletion"]),
        )
    };
    act(
        "finalizer off while dying",
        synced().update_objects("alice", dying(config()), set(dying(config()), "/metadata/finalizers", json!([]))),
        Ok(()),
    );
    act("delete again while dying", synced().delete_object("alice", dying(config())), Ok(()));
    act("set back to declared", synced().update_objects("alice", evil(), config()), Ok(()));
    act(
        "option taken off",
        synced().update_objects("alice", with(&["metadata", "annotations", OPTIONS], "Prune=false".into()), config()),
        Ok(()),
    );
    act(
        "quantity spelled differently",
        {
            let q = |m: &str| json!({"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"memory": m}}, "metadata": {"name": "web", "namespace": "shop", "annotations": {TRACKING: "web:/ResourceQuota:shop/web", LAST_APPLIED: json!({"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"memory": "1Gi"}}}).to_string()}}});
            let mut app = application(json!({}), false);
            app["status"]["resources"]
                .as_array_mut()
                .unwrap()
                .push(json!({"kind": "ResourceQuota", "namespace": "shop", "name": "web"}));
            cluster(app).update_objects("alice", q("1Gi"), q("1024Mi"))
        },
        Ok(()),
    );
    // argocd CLI
    let app = |spec: Value| application(spec, false);
    let at_rest = operating(Value::Null, "Succeeded", STALE);
    act(
        "server: refresh",
        written(
            SERVER,
            &at_rest,
            &set(at_rest.clone(), "/metadata/annotations", json!({"argocd.argoproj.io/refresh": "hard"})),
        )
        .0,
        Ok(()),
    );
    act(
        "server: app set",
        written(SERVER, &app(json!({"source": {"path": "a"}})), &app(json!({"source": {"path": "b"}}))).0,
        Ok(()),
    );
    act(
        "bob: spec",
        written("bob", &app(json!({"source": {"path": "a"}})), &app(json!({"source": {"path": "b"}}))).0,
        Ok(()),
    );
    act(
        "bob: CREATE with operation",
        Cluster::new().create_object("bob", set(removed(app(json!({})), "", "status"), "/operation", sync("a"))),
        Ok(()),
    );
    act(
        "bob: CREATE without status",
        Cluster::new().create_object("bob", removed(app(json!({})), "", "status")),
        Ok(()),
    );
    act("bob: delete app", Cluster::new().delete_object("bob", app(json!({}))), Ok(()));
    let kubectl_apply_status = |mut a: Value| {
        a["status"]["resources"][0]["status"] = "OutOfSync".into();
        a["status"]["resources"][0]["health"] = json!({"status": "Missing"});
        a
    };
    act(
        "bob: status of a resource only",
        written("bob", &app(json!({})), &kubectl_apply_status(app(json!({})))).0,
        Ok(()),
    );
}

#[test]
fn operations() {
    let held = |phase: &str, by: &str, at: &str| {
        let op = json!({"sync": {"revision": "a"}, "info": [{"name": "interlock.dev/holder", "value": by}]});
        let mut a = operating(op.clone(), phase, at);
        a["status"]["operationState"]["operation"] = op;
        a
    };
    let bob = || held("Running", "bob", FRESH);
    let w = |user: &str, old: Value, new: Value| Cluster::new().update_objects(user, old, new);
    let refused = || refused("concurrent-operation");
    let off = |mut a: Value| {
        a["operation"] = Value::Null;
        a
    };
    act("alice: op null", w("alice", bob(), off(bob())), refused());
    act("alice: op {}", w("alice", bob(), set(bob(), "/operation", json!({}))), refused());
    act("alice: phase Failed", w("alice", bob(), held("Failed", "bob", FRESH)), refused());
    act("alice: phase Succeeded + null", w("alice", bob(), off(held("Succeeded", "bob", FRESH))), refused());
    act("alice: phase running (case)", w("alice", bob(), held("running", "bob", FRESH)), refused());
    act("alice: state null", w("alice", bob(), set(bob(), "/status/operationState", Value::Null)), refused());
    act(
        "alice: status null",
        only("concurrent-operation", w("alice", bob(), set(bob(), "/status", Value::Null))),
        refused(),
    );
    act(
        "alice: startedAt aged",
        w("alice", bob(), set(bob(), "/status/operationState/startedAt", STALE.into())),
        refused(),
    );
    act(
        "alice: startedAt null",
        w("alice", bob(), set(bob(), "/status/operationState/startedAt", Value::Null)),
        refused(),
    );
    act(
        "alice: holder of the copy",
        w(
            "alice",
            bob(),
            set(
                bob(),
                "/status/operationState/operation",
                json!({"info": [{"name": "interlock.dev/holder", "value": "alice"}]}),
            ),
        ),
        Ok(()),
    );
    // and then
    let stolen = set(
        bob(),
        "/status/operationState/operation",
        json!({"info": [{"name": "interlock.dev/holder", "value": "alice"}]}),
    );
    act(
        "alice ends what the copy says is hers",
        w("alice", stolen.clone(), set(stolen, "/status/operationState/phase", "Terminating".into())),
        refused(),
    );
    act("bob: op null", w("bob", bob(), off(bob())), refused());
    act("bob: op null + Terminating", w("bob", bob(), off(held("Terminating", "bob", FRESH))), refused());
    act("bob: op null + Failed", w("bob", bob(), off(held("Failed", "bob", FRESH))), refused());
    act(
        "bob: op null + state null",
        w("bob", bob(), off(set(bob(), "/status/operationState", Value::Null))),
        refused(),
    );
    act(
        "bob: Terminating, then op null",
        w("bob", held("Terminating", "bob", FRESH), off(held("Terminating", "bob", FRESH))),
        refused(),
    );
    act(
        "alice: Terminating, then op null",
        w("alice", held("Terminating", "bob", FRESH), off(held("Terminating", "bob", FRESH))),
        refused(),
    );
    act("alice: Terminating back to Running", w("alice", held("Terminating", "bob", FRESH), bob()), refused());
    act(
        "alice: Terminating to other op",
        w("alice", held("Terminating", "bob", FRESH), set(held("Terminating", "bob", FRESH), "/operation", sync("b"))),
        refused(),
    );
    act(
        "a service account named x-server",
        w("system:serviceaccount:team:x-server", bob(), held("Terminating", "bob", FRESH)),
        refused(),
    );
    act("argocd-server: Terminating", w(SERVER, bob(), held("Terminating", "bob", FRESH)), Ok(()));
    act("argocd-server: op null", w(SERVER, bob(), off(bob())), refused());
    act("bob: Terminating", w("bob", bob(), held("Terminating", "bob", FRESH)), Ok(()));
    act(
        "bob: Terminating, stale, op null",
        w("bob", held("Terminating", "bob", STALE), off(held("Terminating", "bob", STALE))),
        Ok(()),
    );
    act("alice: stale op null", w("alice", held("Running", "bob", STALE), off(held("Running", "bob", STALE))), Ok(()));
    act("controller: all", w(CONTROLLER, bob(), off(held("Succeeded", "bob", FRESH))), Ok(()));
    act(
        "alice: future startedAt",
        w("alice", held("Running", "bob", "2099-01-01T00:00:00Z"), off(held("Running", "bob", "2099-01-01T00:00:00Z"))),
        refused(),
    );
    act(
        "alice deletes the Application during bob's sync",
        Cluster::new().delete_object(
            "alice",
            set(bob(), "/metadata/finalizers", json!(["resources-finalizer.argocd.argoproj.io"])),
        ),
        Ok(()),
    );
    // freeze
    let frozen =
        "freezes: [{name: sale, reason: a sale, timeZone: UTC, from: 2026-01-01, to: 2099-01-01, namespaces: [shop]}]";
    let f = |user: &str, old: Value, new: Value| Cluster::with_policy(frozen).update_objects(user, old, new);
    let fr = || super::refused("freeze");
    act(
        "freeze: bob replaces his running sync and its state",
        f("bob", bob(), set(set(bob(), "/operation", sync("evil")), "/status/operationState", Value::Null)),
        fr(),
    );
    act(
        "freeze: bob replaces a stale one and its state",
        f(
            "bob",
            held("Running", "x", STALE),
            set(set(bob(), "/operation", sync("evil")), "/status/operationState", Value::Null),
        ),
        fr(),
    );
    act(
        "freeze: bob replaces a requested one",
        f("bob", operating(sync("a"), "Succeeded", STALE), operating(sync("evil"), "", "")),
        fr(),
    );
    act(
        "freeze: bob resumes an orphan",
        f("bob", operating(Value::Null, "Running", STALE), operating(sync("a"), "", "")),
        fr(),
    );
    act(
        "freeze: CREATE with an operation",
        Cluster::with_policy(frozen).create_object("bob", removed(operating(sync("a"), "", ""), "", "status")),
        fr(),
    );
    act(
        "freeze: operation {}",
        f("bob", operating(Value::Null, "Succeeded", STALE), operating(json!({}), "", "")),
        fr(),
    );
    let mut home = operating(Value::Null, "Succeeded", STALE);
    home["spec"]["destination"] = json!({});
    act(
        "freeze: no destination namespace, objects in shop",
        f("bob", home.clone(), set(set(home, "/operation", sync("a")), "/status/operationState", Value::Null)),
        fr(),
    );
    let appset = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "shops", "namespace": "argocd"}, "spec": {"template": {"spec": {"destination": {"namespace": "shop"}}}}});
    act("freeze: bob deletes the ApplicationSet", Cluster::with_policy(frozen).delete_object("bob", appset), fr());
    let cascade = |s: Value| {
        set(
            set(s, "/metadata/finalizers", json!(["resources-finalizer.argocd.argoproj.io"])),
            "/operation",
            Value::Null,
        )
    };
    act(
        "freeze: server deletes with objects",
        Cluster::with_policy(frozen).delete_object(SERVER, cascade(bob())),
        Ok(()),
    );
}

#[test]
fn protected_applications() {
    let annotated = |spec: Value| set(application(spec, false), "/metadata/annotations", json!({PROTECTED: "true"}));
    let prot = || refused("protected-release");
    let edit = |before: Value, after: Value| Cluster::new().update_objects("bob", annotated(before), annotated(after));
    let base = || json!({"destination": {"namespace": "shop"}, "source": {"repoURL": "g", "path": "web", "targetRevision": "v1"}, "syncPolicy": {"automated": {"prune": true}}});
    let changed = |pointer: &str, value: Value| set(base(), pointer, value);
    for (pointer, value) in [
        ("/source/path", json!("x")),
        ("/source/repoURL", json!("x")),
        ("/source/chart", json!("x")),
        ("/destination/namespace", json!("x")),
        ("/destination/server", json!("x")),
        ("/destination/name", json!("x")),
        ("/source", json!(null)),
        ("/sources", json!([{"repoURL": "g", "path": "x"}])),
        ("/source/directory", json!({"exclude": "*"})),
        ("/source/helm", json!({"releaseName": "x"})),
        ("/source/kustomize", json!({"namePrefix": "x-"})),
        ("/source/kustomize", json!({"patches": [{"patch": "$patch: delete"}]})),
        ("/sourceHydrator", json!({"syncSource": {"path": "x"}})),
    ] {
        act(&format!("protected: {pointer} {value}"), edit(base(), changed(pointer, value)), prot());
    }
    act(
        "protected: allowEmpty",
        edit(base(), changed("/syncPolicy/automated", json!({"prune": true, "allowEmpty": true}))),
        prot(),
    );
    act("protected: revision", edit(base(), changed("/source/targetRevision", json!("v2"))), Ok(()));
    act("protected: prune off", edit(base(), changed("/syncPolicy/automated", json!({}))), Ok(()));
    act("protected: automated null", edit(base(), changed("/syncPolicy", Value::Null)), Ok(()));
    act("protected: automated back", edit(changed("/syncPolicy", Value::Null), base()), prot());
    // a manual sync that prunes
    let manual = || json!({"destination": {"namespace": "shop"}, "source": {"repoURL": "g", "path": "web"}});
    act("protected: source without automation", edit(manual(), set(manual(), "/source/path", "empty".into())), prot());
    let op = |operation: Value| {
        Cluster::new().update_objects("bob", annotated(manual()), set(annotated(manual()), "/operation", operation))
    };
    act("protected: sync with prune after that", op(json!({"sync": {"prune": true}})), Ok(()));
    act(
        "protected: sync with prune and its own source",
        op(json!({"sync": {"prune": true, "source": {"repoURL": "g", "path": "empty"}}})),
        prot(),
    );
    act("protected: sync with prune and manifests", op(json!({"sync": {"prune": true, "manifests": []}})), prot());
    // options
    let options = |a: &[&str], b: &[&str]| {
        edit(json!({"syncPolicy": {"syncOptions": a}}), json!({"syncPolicy": {"syncOptions": b}}))
    };
    act("options: spaces", options(&[" Prune=confirm "], &[]), prot());
    act("options: case", options(&["prune=Confirm"], &[]), Ok(()));
    let optional = |options: &str| with(&["metadata", "annotations", OPTIONS], options.into());
    let robot = |before: &str, after: Value| {
        only("protected-release", cluster(annotated(json!({}))).update_objects(ROBOT, optional(before), after))
    };
    act("robot: both to one", robot("Delete=confirm,Prune=confirm", optional("Prune=confirm")), prot());
    act("robot: Delete=confirm to Prune=confirm", robot("Delete=confirm", optional("Prune=confirm")), prot());
    act("robot: spaces", robot(" Prune=confirm , Replace=true", optional("Replace=true")), prot());
    act("robot: option off with the mark", robot("Prune=confirm", without(TRACKING)), prot());
    act(
        "robot: mark off",
        only("protected-release", cluster(annotated(json!({}))).update_objects(ROBOT, config(), without(TRACKING))),
        prot(),
    );
    act(
        "robot: mark to a ghost",
        only(
            "protected-release",
            cluster(annotated(json!({}))).update_objects(
                ROBOT,
                config(),
                with(&["metadata", "annotations", TRACKING], "ghost:/ConfigMap:shop/web".into()),
            ),
        ),
        prot(),
    );
    {
        let mut two = web(2);
        two["metadata"]["managedFields"][0]["time"] = "2026-11-20T10:00:00Z".into();
        let before = two.clone();
        two["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "Helm"});
        two["metadata"]["annotations"]["meta.helm.sh/release-name"] = "ghost".into();
        two["metadata"]["annotations"]["meta.helm.sh/release-namespace"] = "shop".into();
        two["metadata"]["managedFields"].as_array_mut().unwrap().push(json!({"manager": "helm", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-11-21T09:00:00Z", "fieldsV1": {"f:metadata": {"f:labels": {}}}}));
        act(
            "robot: ghost marks of helm added",
            only("protected-release", cluster(annotated(json!({}))).update_objects(ROBOT, before, two.clone())),
            Ok(()),
        );
        act(
            "robot: with ghost marks: delete",
            only("protected-release", cluster(annotated(json!({}))).delete_object(ROBOT, two.clone())),
            prot(),
        );
        let off = removed(two.clone(), "/metadata/annotations", TRACKING);
        act(
            "robot: with ghost marks: mark off",
            only("protected-release", cluster(annotated(json!({}))).update_objects(ROBOT, two, off)),
            prot(),
        );
    }
    act(
        "robot: delete",
        only("protected-release", cluster(annotated(json!({}))).delete_object(ROBOT, config())),
        prot(),
    );
    act(
        "server: delete of an object",
        only("protected-release", cluster(annotated(json!({}))).delete_object(SERVER, config())),
        prot(),
    );
    act("GC: delete", cluster(annotated(json!({}))).delete_object(GC, config()), Ok(()));
    let odd = |started: &str| {
        let state = json!({"phase": "Succeeded", "startedAt": started, "finishedAt": started});
        set(annotated(json!({})), "/status/operationState", state)
    };
    for started in ["", "2026-11-21 10:00:00", "2026-11-21T10:00"] {
        act(
            &format!("startedAt {started:?}: delete"),
            Cluster::new().delete_object(
                "bob",
                set(odd(started), "/metadata/finalizers", json!(["resources-finalizer.argocd.argoproj.io"])),
            ),
            prot(),
        );
        act(
            &format!("startedAt {started:?}: objects"),
            cluster(odd(started)).update_objects("alice", config(), evil()),
            refused(EDIT),
        );
        act(
            &format!("startedAt {started:?}: written"),
            Cluster::new().update_objects("alice", annotated(json!({})), odd(started)),
            Ok(()),
        );
    }
    // annotation
    let unprotect = |user: &str, value: Value| {
        Cluster::new().update_objects(
            user,
            annotated(json!({})),
            set(annotated(json!({})), "/metadata/annotations", json!({PROTECTED: value})),
        )
    };
    for value in [json!("True"), json!(""), json!("false"), json!(" true")] {
        act(&format!("bob: annotation {value}"), unprotect("bob", value), prot());
    }
    act(
        "set controller: annotation",
        unprotect("system:serviceaccount:argocd:argocd-applicationset-controller", json!("false")),
        Ok(()),
    );
    act("server: annotation", unprotect(SERVER, json!("false")), prot());
    // namespaces: objects in one that the destination does not name
    let ns = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    for (what, spec) in
        [("no destination", json!({})), ("another destination", json!({"destination": {"namespace": "other"}}))]
    {
        act(
            &format!("namespace of listed objects, {what}"),
            cluster(annotated(spec)).delete_cluster_scoped("alice", ns("shop")),
            prot(),
        );
    }
    let cascading =
        set(annotated(json!({})), "/metadata/finalizers", json!(["resources-finalizer.argocd.argoproj.io"]));
    for (what, application, expected) in
        [("with its objects", cascading, prot()), ("alone", annotated(json!({})), Ok(()))]
    {
        act(
            &format!("namespace of an Application that goes {what}"),
            cluster(application).delete_cluster_scoped("alice", ns("argocd")),
            expected,
        );
    }
    act(
        "empty list and delete in two writes",
        Cluster::new().update_objects(
            "bob",
            annotated(json!({})),
            set(annotated(json!({})), "/status/resources", json!([])),
        ),
        refused("forged-status"),
    );
    act(
        "status null",
        Cluster::new().update_objects("bob", annotated(json!({})), set(annotated(json!({})), "/status", Value::Null)),
        refused("forged-status"),
    );
}

#[test]
fn padding() {
    // keys that alice adds, one write each limited; the basis must still count.
    for keys in [1_000, 20_000, 50_000] {
        let mut object = config();
        let mut fields = serde_json::Map::new();
        for n in 0..keys {
            object["data"][format!("k{n}")] = "".into();
            fields.insert(format!("f:k{n}"), json!({}));
        }
        object["metadata"]["managedFields"] = json!([
            {"manager": "argocd-controller", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:mode": {}}}},
            {"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": fields}}]);
        let v = synced().update_objects("alice", object.clone(), set(object.clone(), "/data/mode", "evil".into()));
        act(&format!("{keys} keys"), v, refused(EDIT));
        let v = synced().delete_object("alice", object);
        act(&format!("{keys} keys: delete"), v, refused("manual-delete"));
    }
    let many: Vec<_> =
        (0..50_000).map(|n| json!({"group": "x", "kind": "y", "name": n.to_string(), "namespace": "shop"})).collect();
    let mut app = application(json!({}), false);
    let own = app["status"]["resources"].clone();
    let mut all = many;
    all.extend(own.as_array().unwrap().clone());
    app["status"]["resources"] = all.into();
    act("50000 resources", cluster(app).update_objects("alice", config(), evil()), refused(EDIT));
    let rules: Vec<_> = (0..20_000).map(|n| json!({"group": "*", "kind": "*", "jsonPointers": [format!("/x{n}")], "managedFieldsManagers": [format!("m{n}")]})).collect();
    act(
        "20000 rules",
        cluster(application(json!({"ignoreDifferences": rules}), false)).update_objects("alice", config(), evil()),
        refused(EDIT),
    );
}
