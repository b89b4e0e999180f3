//! Acts of those who want past the guards, and of those who must not be stopped.

#![expect(clippy::too_many_lines, reason = "lists of acts")]

use serde_json::{Value, json};

use super::{CONTROLLER, HPA, SWITCH, TENANT, cluster, image, kustomization, refused, web, with, without};
use crate::rules::tests::acts::{only, set};
use crate::rules::tests::scenario::{Cluster, Verdict};

const EDIT: &str = "manual-edit";
const ROBOT: &str = "system:serviceaccount:ci:robot";

#[track_caller]
fn act(what: &str, verdict: Verdict, expected: Verdict) {
    assert_eq!(verdict, expected, "{what}");
}

/// The verdict of the rule `protected-release`.
fn protecting(verdict: Verdict) -> Verdict {
    only("protected-release", verdict)
}

#[test]
fn objects() {
    let ignoring_images = || cluster(json!({"ignore": [{"paths": ["/spec/template/spec/containers"]}]}));
    let edit = |old: Value, new: Value| cluster(json!({})).update_objects("alice", old, new);
    let one = |pointer: &str, value: Value| edit(web(), set(web(), pointer, value));
    act("finalizer", one("/metadata/finalizers", json!(["a/b"])), refused(EDIT));
    act(
        "ownerReference",
        one(
            "/metadata/ownerReferences",
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "ghost", "uid": "1"}]),
        ),
        refused(EDIT),
    );
    act("labels null", one("/metadata/labels", Value::Null), refused(EDIT));
    act("label name empty", one("/metadata/labels/kustomize.toolkit.fluxcd.io~1name", "".into()), refused(EDIT));
    act(
        "label name to another",
        one("/metadata/labels/kustomize.toolkit.fluxcd.io~1name", "ghost".into()),
        refused(EDIT),
    );
    act("managedFields null", one("/metadata/managedFields", Value::Null), refused(EDIT));
    act(
        "managedFields shrunk",
        one("/metadata/managedFields/0/fieldsV1", json!({"f:spec": {"f:replicas": {}}})),
        refused(EDIT),
    );
    act(
        "managedFields of another version",
        one("/metadata/managedFields/0/apiVersion", "apps/v1beta2".into()),
        refused(EDIT),
    );
    act("managedFields of a subresource", one("/metadata/managedFields/0/subresource", "status".into()), refused(EDIT));
    let shrunk = set(web(), "/metadata/managedFields/0/fieldsV1", json!({"f:spec": {"f:replicas": {}}}));
    act("shrunk with a label", edit(web(), set(shrunk.clone(), "/metadata/labels/team", "blue".into())), refused(EDIT));
    let mut padded = shrunk;
    padded["metadata"]["annotations"] = (0..2_000).map(|n| (format!("a{n}"), json!("x"))).collect();
    padded["spec"]["template"]["metadata"] = json!({"annotations": {"note": "x"}});
    act("shrunk with 2,000 annotations", edit(web(), padded), refused(EDIT));
    // Of several fields, one whose value goes, and one whose value stays.
    let mut half = set(web(), "/metadata/managedFields/0/fieldsV1", json!({"f:spec": {"f:replicas": {}}}));
    half["spec"]["template"]["spec"]["containers"][0]["image"] = "evil".into();
    act(
        "image ignored, and the rest shrunk with it",
        ignoring_images().update_objects("alice", web(), half),
        refused(EDIT),
    );
    // As the API server does: the field goes with its value, and a co-owner keeps it.
    let mut forced = set(
        image("evil"),
        "/metadata/managedFields/0/fieldsV1/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"web\"}",
        json!({".": {}, "f:name": {}}),
    );
    act("forced image", edit(web(), forced.clone()), refused(EDIT));
    act("forced image, ignored", ignoring_images().update_objects("alice", web(), forced.clone()), Ok(()));
    let others = json!({"manager": "kubectl", "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": {"f:spec": {"f:replicas": {}}}});
    forced = web();
    forced["metadata"]["managedFields"].as_array_mut().unwrap().push(others);
    act("co-owned by force", edit(web(), forced.clone()), Ok(()));
    act("the co-owner leaves", edit(forced, web()), Ok(()));
    act("container removed", one("/spec/template/spec/containers", json!([])), refused(EDIT));
    act("containers null", one("/spec/template/spec/containers", Value::Null), refused(EDIT));
    act("spec null", one("/spec", Value::Null), refused(EDIT));
    act(
        "another container",
        one(
            "/spec/template/spec/containers",
            json!([{"name": "side", "image": "s"}, {"name": "web", "image": "nginx:1"}]),
        ),
        Ok(()),
    );
    act("container renamed", one("/spec/template/spec/containers/0/name", "x".into()), refused(EDIT));
    for (what, annotations) in [
        ("reconcile", json!({SWITCH: "Disabled"})),
        ("ssa", json!({"kustomize.toolkit.fluxcd.io/ssa": "Ignore"})),
        ("prune", json!({"kustomize.toolkit.fluxcd.io/prune": "disabled"})),
        ("force", json!({"kustomize.toolkit.fluxcd.io/force": "enabled"})),
    ] {
        act(&format!("{what} by hand"), one("/metadata/annotations", annotations.clone()), refused(EDIT));
        let switched = set(web(), "/metadata/annotations", annotations);
        // in place already, not of the source
        act(
            &format!("{what} by hand: delete"),
            cluster(json!({})).delete_object("alice", switched.clone()),
            refused("manual-delete"),
        );
        let mut c = cluster(json!({}));
        c.given(switched.clone());
        act(&format!("{what} by hand: scale"), c.scale("alice", &switched, 2, 5), refused("manual-scale"));
    }
    act(
        "status drops the labels",
        cluster(json!({})).update_through("status", "alice", web(), set(web(), "/metadata/labels", json!({}))),
        refused(EDIT),
    );
    // spec.ignore that covers the marks
    let ignoring = |path: &str| cluster(json!({"ignore": [{"paths": [path]}]}));
    for path in ["/metadata/labels", "/metadata", ""] {
        act(
            &format!("ignore {path:?}: label off"),
            ignoring(path).update_objects("alice", web(), without("name")),
            refused(EDIT),
        );
    }
    act(
        "ignore of metadata: managedFields",
        ignoring("/metadata").update_objects("alice", web(), set(web(), "/metadata/managedFields", json!([]))),
        refused(EDIT),
    );
    // another version
    let hpa = |version: &str, min: u64| {
        json!({"apiVersion": version, "kind": "HorizontalPodAutoscaler", "spec": {"minReplicas": min},
        "metadata": {"name": "web", "namespace": "shop", "labels": web()["metadata"]["labels"], "managedFields": [{"manager": "kustomize-controller", "operation": "Apply", "apiVersion": "autoscaling/v2", "fieldsV1": {"f:spec": {"f:minReplicas": {}}}}]}})
    };
    let mut k = kustomization(json!({}));
    k["status"]["inventory"]["entries"]
        .as_array_mut()
        .unwrap()
        .push(json!({"id": "shop_web_autoscaling_HorizontalPodAutoscaler", "v": "v2"}));
    for version in ["autoscaling/v2", "autoscaling/v1"] {
        let mut c = Cluster::new();
        c.given(k.clone());
        act(&format!("HPA by {version}"), c.update_objects("alice", hpa(version, 2), hpa(version, 0)), refused(EDIT));
    }
    // an admitted scale by HPA does not open anything
    act("HPA", cluster(json!({})).scale(HPA, &web(), 2, 9), Ok(()));
    for user in ["alice", ROBOT] {
        act(
            &format!("{user}: restart"),
            cluster(json!({})).update_objects(
                user,
                web(),
                with("/spec/template/metadata", json!({"annotations": {"kubectl.kubernetes.io/restartedAt": "x"}})),
            ),
            Ok(()),
        );
    }
    act("robot edit", cluster(json!({})).update_objects(ROBOT, web(), image("x")), Ok(()));
    act("robot delete", cluster(json!({})).delete_object(ROBOT, web()), Ok(()));
    let mut dying = web();
    dying["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z".into();
    dying["metadata"]["finalizers"] = json!(["x"]);
    act(
        "finalizer off while dying",
        cluster(json!({})).update_objects("alice", dying.clone(), set(dying, "/metadata/finalizers", json!([]))),
        Ok(()),
    );
    // terminating namespace
    let mut c = cluster(json!({}));
    c.given(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "deletionTimestamp": "2026-11-21T10:00:00Z"}, "status": {"phase": "Terminating"}}));
    act("terminating namespace", c.delete_object("alice", web()), Ok(()));
    act(
        "namespace controller",
        cluster(json!({})).delete_object("system:serviceaccount:kube-system:namespace-controller", web()),
        Ok(()),
    );
    // takeover by another Kustomization's account
    let other = with("/metadata/labels/kustomize.toolkit.fluxcd.io~1name", "other".into());
    act("controller moves it to another", cluster(json!({})).update_objects(CONTROLLER, web(), other), Ok(()));
    // ghost marks on it
    for (what, labels, annotations) in [
        (
            "helm+sveltos",
            json!({"app.kubernetes.io/managed-by": "Helm", "projectsveltos.io/reason": "x"}),
            json!({"meta.helm.sh/release-name": "ghost", "meta.helm.sh/release-namespace": "shop", "projectsveltos.io/owner-kind": "Profile", "projectsveltos.io/owner-name": "p"}),
        ),
        (
            "sveltos",
            json!({"projectsveltos.io/reason": "x"}),
            json!({"projectsveltos.io/owner-kind": "Profile", "projectsveltos.io/owner-name": "p"}),
        ),
        (
            "helm",
            json!({"app.kubernetes.io/managed-by": "Helm"}),
            json!({"meta.helm.sh/release-name": "ghost", "meta.helm.sh/release-namespace": "shop"}),
        ),
        ("argo", json!({}), json!({"argocd.argoproj.io/tracking-id": "ghost:apps/Deployment:shop/web"})),
    ] {
        let mut before = web();
        before["metadata"]["managedFields"][0]["time"] = "2026-11-20T10:00:00Z".into();
        let mut object = before.clone();
        object["metadata"]["labels"].as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
        object["metadata"]["annotations"] = annotations;
        let first = edit(before, object.clone());
        act(
            &format!("{what} marks ({first:?}), then edit"),
            edit(object.clone(), set(object.clone(), "/spec/template/spec/containers/0/image", "evil".into())),
            refused(EDIT),
        );
        act(
            &format!("{what} marks, then mark off"),
            edit(
                object.clone(),
                set(object.clone(), "/metadata/labels/kustomize.toolkit.fluxcd.io~1name", "ghost".into()),
            ),
            refused(EDIT),
        );
        act(
            &format!("{what} marks, then delete"),
            cluster(json!({})).delete_object("alice", object),
            refused("manual-delete"),
        );
    }
}

#[test]
fn protected_kustomizations() {
    let prot = || refused("protected-release");
    let annotated =
        |spec: Value| set(kustomization(spec), "/metadata/annotations", json!({"interlock.dev/protected": "true"}));
    let base = || json!({"prune": true, "path": "./shop", "sourceRef": {"kind": "GitRepository", "name": "shop"}});
    let edit = |after: Value| Cluster::new().update_objects("alice", annotated(base()), annotated(after));
    for (field, value) in [
        ("path", json!("./x")),
        ("targetNamespace", json!("x")),
        ("sourceRef", json!({"kind": "Bucket", "name": "shop"})),
        ("patches", json!([{"patch": "$patch: delete", "target": {"name": ".*"}}])),
        ("components", json!(["../x"])),
        ("namePrefix", json!("x-")),
        ("nameSuffix", json!("-x")),
        ("postBuild", json!({"substitute": {"name": "x"}})),
        ("kubeConfig", json!({"secretRef": {"name": "x"}})),
        ("serviceAccountName", json!("x")),
    ] {
        act(&format!("protected: {field} {value}"), edit(set(base(), &format!("/{field}"), value)), prot());
    }
    for (field, value) in
        [("interval", json!("1m")), ("suspend", json!(true)), ("wait", json!(true)), ("dependsOn", json!([]))]
    {
        act(&format!("protected: {field}"), edit(set(base(), &format!("/{field}"), value)), Ok(()));
    }
    let unpruned = set(base(), "/prune", false.into());
    act(
        "protected: prune on",
        Cluster::new().update_objects("alice", annotated(unpruned.clone()), annotated(base())),
        prot(),
    );
    act("protected: prune off", edit(unpruned), Ok(()));
    let dying = |spec: Value| set(annotated(spec), "/metadata/deletionTimestamp", "2026-11-21T10:00:00Z".into());
    act(
        "interval while dying with its objects",
        Cluster::new().update_objects("alice", dying(base()), dying(set(base(), "/interval", "1m".into()))),
        Ok(()),
    );
    let under = |spec: Value| {
        let mut c = Cluster::new();
        c.given(annotated(spec));
        c
    };
    for user in ["alice", ROBOT] {
        act(&format!("{user}: delete"), protecting(under(base()).delete_object(user, web())), prot());
        for mark in ["name", "namespace"] {
            act(
                &format!("{user}: label {mark} off"),
                protecting(under(base()).update_objects(user, web(), without(mark))),
                prot(),
            );
        }
        let kept = set(web(), "/metadata/annotations", json!({"kustomize.toolkit.fluxcd.io/prune": "Disabled"}));
        act(
            &format!("{user}: prune disabled off"),
            protecting(under(base()).update_objects(user, kept.clone(), web())),
            prot(),
        );
        act(
            &format!("{user}: prune disabled off with labels"),
            protecting(under(base()).update_objects(user, kept, without("name"))),
            prot(),
        );
        let left_alone = set(web(), "/metadata/annotations", json!({SWITCH: "disabled"}));
        act(
            &format!("{user}: reconcile disabled off, which keeps nothing"),
            protecting(under(base()).update_objects(user, left_alone, web())),
            Ok(()),
        );
        act(
            &format!("{user}: delete, reconcile disabled by hand"),
            protecting(
                under(base()).delete_object(user, set(web(), "/metadata/annotations", json!({SWITCH: "disabled"}))),
            ),
            prot(),
        );
    }
    act(
        "tenant of it: delete",
        under(set(base(), "/serviceAccountName", "deployer".into())).delete_object(TENANT, web()),
        Ok(()),
    );
    act("controller: delete", under(base()).delete_object(CONTROLLER, web()), Ok(()));
    let ns = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    act(
        "namespace of the objects, without targetNamespace",
        under(base()).delete_cluster_scoped("alice", ns("shop")),
        prot(),
    );
    act("namespace of nothing", under(base()).delete_cluster_scoped("alice", ns("other")), Ok(()));
    let mut p = Cluster::with_policy("protected: {namespaces: [shop]}");
    p.given(kustomization(base()));
    act("policy protects shop: namespace", p.delete_cluster_scoped("alice", ns("shop")), prot());
    act(
        "suspend then delete",
        Cluster::new().delete_object("alice", annotated(set(base(), "/suspend", true.into()))),
        Ok(()),
    );
    act(
        "unsuspend while dying",
        Cluster::new().update_objects("alice", dying(set(base(), "/suspend", true.into())), dying(base())),
        prot(),
    );
    for value in ["True", "", "false", "true "] {
        act(
            &format!("annotation {value:?}"),
            Cluster::new().update_objects(
                "alice",
                annotated(base()),
                set(annotated(base()), "/metadata/annotations", json!({"interlock.dev/protected": value})),
            ),
            prot(),
        );
    }
}
