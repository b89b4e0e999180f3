//! `charts/shop`, a chart like a large public one: about 40 objects that use every feature of charts. Its own life
//! causes no finding, and every act by hand gets its verdict.

use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use serde_json::json;

use crate::harness::acts::{Act, Target, Verdict};
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::decisions::{Decision, decisions, findings_of_others};
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;
use crate::harness::records;

use Verdict::{Deletes, Edits, Passes, Scales};

/// How long a client or the API server may take to notice something.
const NOTICED: Duration = Duration::from_secs(60);

/// Acts of another user on the second revision.
const ACTS: &[Act] = &[
    (
        "an image",
        &["set", "image", "deployment/shop-web", "web=bob:1"],
        Edits("spec.template.spec.containers[web].image"),
    ),
    (
        "an image of what starts first",
        &["set", "image", "deployment/shop-web", "wait-for-db=bob:1"],
        Edits("spec.template.spec.initContainers[wait-for-db].image"),
    ),
    (
        "a declared limit",
        &["set", "resources", "deployment/shop-web", "-c=web", "--limits=cpu=2"],
        Edits("spec.template.spec.containers[web].resources.limits.cpu"),
    ),
    (
        "the same limit, spelled otherwise",
        &["set", "resources", "deployment/shop-web", "-c=web", "--limits=cpu=1,memory=1Gi"],
        Passes,
    ),
    ("limits that are left open", &["set", "resources", "deployment/shop-cache", "--limits=cpu=2"], Passes),
    (
        "a variable",
        &["set", "env", "deployment/shop-worker", "LOG_LEVEL=debug"],
        Edits("spec.template.spec.containers[worker].env[LOG_LEVEL].value"),
    ),
    ("another variable", &["set", "env", "deployment/shop-worker", "EXTRA=1"], Passes),
    ("a variable where there was none", &["set", "env", "deployment/shop-cache", "EXTRA=1"], Passes),
    (
        "a sidecar in front of all",
        &[
            "patch",
            "deployment/shop-web",
            "--type=json",
            "-p",
            r#"[{"op":"add","path":"/spec/template/spec/containers/0","value":{"name":"proxy","image":"registry.invalid/proxy:1"}}]"#,
        ],
        Passes,
    ),
    (
        "a volume of the chart",
        &[
            "patch",
            "deployment/shop-web",
            "-p",
            r#"{"spec":{"template":{"spec":{"volumes":[{"name":"tmp","emptyDir":{"sizeLimit":"2Gi"}}]}}}}"#,
        ],
        Edits("spec.template.spec.volumes[tmp].emptyDir.sizeLimit"),
    ),
    (
        "a probe",
        &[
            "patch",
            "deployment/shop-web",
            "-p",
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"web","readinessProbe":{"periodSeconds":60}}]}}}}"#,
        ],
        Edits("spec.template.spec.containers[web].readinessProbe.periodSeconds"),
    ),
    (
        "a default of a probe",
        &[
            "patch",
            "deployment/shop-web",
            "-p",
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"web","readinessProbe":{"failureThreshold":9}}]}}}}"#,
        ],
        Passes,
    ),
    ("a restart", &["rollout", "restart", "deployment/shop-frontend"], Passes),
    ("a restart of a StatefulSet", &["rollout", "restart", "statefulset/shop-db"], Passes),
    (
        "the revision before",
        &["rollout", "undo", "deployment/shop-frontend", "--to-revision=1"],
        Edits("spec.template.spec.containers[nginx].image"),
    ),
    ("replicas of the autoscaler", &["scale", "deployment/shop-web", "--replicas=3"], Passes),
    ("declared replicas", &["scale", "deployment/shop-worker", "--replicas=9"], Scales),
    ("declared replicas of a StatefulSet", &["scale", "statefulset/shop-db", "--replicas=5"], Scales),
    (
        "an image of a StatefulSet",
        &["set", "image", "statefulset/shop-db", "db=bob:1"],
        Edits("spec.template.spec.containers[db].image"),
    ),
    (
        "an image of a DaemonSet",
        &["set", "image", "daemonset/shop-agent", "agent=bob:1"],
        Edits("spec.template.spec.containers[agent].image"),
    ),
    (
        "a setting",
        &["patch", "configmap/shop-config", "--type=merge", "-p", r#"{"data":{"FEATURES":"false"}}"#],
        Edits("data.FEATURES"),
    ),
    (
        "a file",
        &["patch", "configmap/shop-config", "--type=merge", "-p", r#"{"data":{"app.yaml":"log: debug"}}"#],
        Edits("data[app.yaml]"),
    ),
    (
        "another file",
        &["patch", "configmap/shop-config", "--type=merge", "-p", r#"{"data":{"mine.yaml":"a: b"}}"#],
        Passes,
    ),
    (
        "a password",
        &["patch", "secret/shop-credentials", "--type=merge", "-p", r#"{"stringData":{"password":"hunter-two"}}"#],
        Edits("data.password"),
    ),
    (
        "the password as it is",
        &["patch", "secret/shop-credentials", "--type=merge", "-p", r#"{"stringData":{"password":"correct-horse"}}"#],
        Passes,
    ),
    (
        "another secret",
        &["patch", "secret/shop-tokens", "--type=merge", "-p", r#"{"stringData":{"mine":"1"}}"#],
        Passes,
    ),
    (
        "a port taken away",
        &["patch", "service/shop-web", "--type=json", "-p", r#"[{"op":"remove","path":"/spec/ports/1"}]"#],
        Edits("spec.ports[9090/TCP]"),
    ),
    (
        "another port",
        &[
            "patch",
            "service/shop-web",
            "--type=json",
            "-p",
            r#"[{"op":"add","path":"/spec/ports/0","value":{"name":"admin","port":81}}]"#,
        ],
        Passes,
    ),
    (
        "a target of a port",
        &["patch", "service/shop-web", "-p", r#"{"spec":{"ports":[{"port":80,"targetPort":8081}]}}"#],
        Edits("spec.ports[80/TCP].targetPort"),
    ),
    ("a type", &["patch", "service/shop-frontend", "-p", r#"{"spec":{"type":"LoadBalancer"}}"#], Edits("spec.type")),
    ("most replicas", &["patch", "hpa/shop-web", "-p", r#"{"spec":{"maxReplicas":99}}"#], Edits("spec.maxReplicas")),
    (
        "behaviour of the autoscaler",
        &["patch", "hpa/shop-web", "-p", r#"{"spec":{"behavior":{"scaleDown":{"stabilizationWindowSeconds":60}}}}"#],
        Passes,
    ),
    ("a budget", &["patch", "pdb/shop-web", "-p", r#"{"spec":{"minAvailable":0}}"#], Edits("spec.minAvailable")),
    (
        "a host",
        &[
            "patch",
            "ingress/shop",
            "--type=json",
            "-p",
            r#"[{"op":"replace","path":"/spec/rules/0/host","value":"bob.example.com"}]"#,
        ],
        Edits("spec.rules"),
    ),
    ("an issuer", &["annotate", "ingress/shop", "cert-manager.io/cluster-issuer=letsencrypt"], Passes),
    (
        "a declared annotation",
        &["annotate", "ingress/shop", "--overwrite", "nginx.ingress.kubernetes.io/proxy-body-size=0"],
        Edits("metadata.annotations[nginx.ingress.kubernetes.io/proxy-body-size]"),
    ),
    (
        "a policy",
        &["patch", "networkpolicy/shop-default", "--type=merge", "-p", r#"{"spec":{"policyTypes":["Egress"]}}"#],
        Edits("spec.policyTypes"),
    ),
    (
        "a right",
        &[
            "patch",
            "role/shop-worker",
            "--type=json",
            "-p",
            r#"[{"op":"add","path":"/rules/0/verbs/-","value":"delete"}]"#,
        ],
        Edits("rules"),
    ),
    (
        "a right in the cluster",
        &[
            "patch",
            "clusterrole/NAMESPACE-shop",
            "--type=json",
            "-p",
            r#"[{"op":"replace","path":"/rules/0/verbs","value":["*"]}]"#,
        ],
        Edits("rules"),
    ),
    (
        "a subject",
        &[
            "patch",
            "clusterrolebinding/NAMESPACE-shop",
            "--type=json",
            "-p",
            r#"[{"op":"add","path":"/subjects/-","value":{"kind":"User","name":"bob","apiGroup":"rbac.authorization.k8s.io"}}]"#,
        ],
        Edits("subjects"),
    ),
    (
        "a schedule",
        &["patch", "cronjob/shop-cleanup", "-p", r#"{"spec":{"schedule":"0 0 1 1 *"}}"#],
        Edits("spec.schedule"),
    ),
    ("a pause that is left open", &["patch", "cronjob/shop-cleanup", "-p", r#"{"spec":{"suspend":true}}"#], Passes),
    (
        "a declared pause",
        &["patch", "cronjob/shop-report", "-p", r#"{"spec":{"suspend":true}}"#],
        Edits("spec.suspend"),
    ),
    ("a job at once", &["create", "job", "now", "--from=cronjob/shop-cleanup"], Passes),
    (
        "a default",
        &[
            "patch",
            "limitrange/shop",
            "--type=json",
            "-p",
            r#"[{"op":"replace","path":"/spec/limits/0/default/cpu","value":"9"}]"#,
        ],
        Edits("spec.limits"),
    ),
    (
        "a quota",
        &[
            "patch",
            "resourcequota/shop",
            "--type=merge",
            "-p",
            r#"{"spec":{"hard":{"count/widgets.example.com":"99"}}}"#,
        ],
        Edits("spec.hard[count/widgets.example.com]"),
    ),
    (
        "a quota of another resource",
        &[
            "patch",
            "resourcequota/shop",
            "--type=merge",
            "-p",
            r#"{"spec":{"hard":{"count/gadgets.example.com":"9"}}}"#,
        ],
        Passes,
    ),
    (
        "the manager's label",
        &["label", "serviceaccount/shop-web", "app.kubernetes.io/managed-by-"],
        Edits("metadata.labels[app.kubernetes.io/managed-by]"),
    ),
    ("a label of one's own", &["label", "serviceaccount/shop-web", "team=blue"], Passes),
    ("a custom resource", &["patch", "cart/shop", "--type=merge", "-p", r#"{"spec":{"size":1}}"#], Edits("spec.size")),
    (
        "a default of a custom resource",
        &["patch", "cart/shop", "--type=merge", "-p", r#"{"spec":{"currency":"USD"}}"#],
        Passes,
    ),
    ("an ephemeral pod", &["delete", "pod", "shop-db-0", "--wait=false"], Passes),
    ("the claim of a StatefulSet", &["label", "pvc/data-shop-db-0", "team=blue"], Passes),
    ("deletion of data", &["delete", "pvc/shop-uploads", "--wait=false"], Deletes),
    ("deletion of a Service", &["delete", "service/shop-db"], Deletes),
    ("deletion of a Secret", &["delete", "secret/shop-credentials"], Deletes),
    ("deletion of a Job that is done", &["delete", "job/shop-seed"], Deletes),
    ("deletion of a hook", &["delete", "job/shop-migrate"], Passes),
    ("deletion of a custom resource", &["delete", "cart/shop"], Deletes),
    ("deletion of a cluster-scoped object", &["delete", "priorityclass/NAMESPACE-shop"], Deletes),
    ("deletion of everything", &["delete", "deployments,statefulsets", "--all"], Deletes),
];

#[test]
fn helm_3() {
    life(HelmVersion::V3);
}

#[test]
fn helm_4() {
    life(HelmVersion::V4);
}

fn life(version: HelmVersion) {
    let namespace = Namespace::new(Plane::shared(), "large");
    let alice = namespace.helm(version, Driver::Secret, "alice");
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/harness/charts/shop");
    let chart = chart.to_str().expect("the repository has a plain name");
    alice.ok(&["install", "shop", chart]);
    let (bob, target) = (namespace.kubectl("bob"), Target::deployed(&namespace, "shop", 2));
    let second = ["upgrade", "shop", chart, "--set=tag=2,logLevel=warn,campaign=true,autoscaling.maxReplicas=8"];
    alice.ok(&second);
    register_carts(&namespace);
    target.expect_all(&bob, ACTS);
    let message: Vec<_> = decisions(&namespace).into_iter().filter(|decision| decision.user == "bob").collect();
    assert!(message.iter().all(|decision| !decision.reason.contains("hunter")), "a decision shows a secret");

    alice.ok(&["rollback", "shop", "1"]);
    // Interrupted during its 40 writes, at the latest while it waits. Some writes may follow after the record says
    // `failed`.
    namespace.hang_pods();
    let interrupted = alice.spawn(&[&second[..], &["--wait"]].concat());
    namespace.await_status(Driver::Secret, "shop", 4, "pending-upgrade");
    interrupted.interrupt();
    let ended = interrupted.wait(NOTICED);
    assert!(!ended.success() && !ended.timed_out, "{ended}");
    let records = records::summary(&namespace.records(Driver::Secret, "shop"));
    assert_eq!(records, "1 superseded, 2 superseded, 3 deployed, 4 failed", "{ended}");
    namespace.ready_pods();
    alice.ok(&second);
    alice.fails(&["upgrade", "shop", chart, "--set=worker.replicas=-1", "--cleanup-on-fail"], &["shop-worker"]);
    alice.ok(&["upgrade", "shop", chart, "--set=tag=3,worker.replicas=1", "--history-max=4"]);
    alice.ok(&["test", "shop", "--timeout=90s"]);
    alice.ok(&["uninstall", "shop"]);
    assert_eq!(records::summary(&namespace.records(Driver::Secret, "shop")), "");
    let left = bob.get(&["deployments,statefulsets,daemonsets,services,ingresses,roles,carts"]);
    assert_eq!(left["items"], json!([]));
    // An interrupted helm writes its record from two threads at once. Now and then one write has the label of the one and the body of
    // the other, and must not be stored: the release would be pending for good.
    let torn = |decision: &Decision| {
        decision.name.ends_with(".v4")
            && decision.reason.contains("label status is failed, but its body says pending-upgrade")
    };
    let mut found = findings_of_others(&namespace, &["bob"]);
    found.retain(|decision| !torn(decision));
    assert!(found.is_empty(), "{found:?}");
}

/// Registers the chart's custom resource, as an operator of Interlock does for custom resources.
fn register_carts(namespace: &Namespace<'_>) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let kubectl = namespace.kubectl("admin");
        let registration = kubectl.get(&["validatingwebhookconfiguration", "interlock"]);
        let entries = registration["webhooks"].as_array().into_iter().flatten();
        let at = entries.enumerate().find(|(_, entry)| entry["name"] == "objects.interlock.dev");
        let (at, _) = at.expect("the objects of releases are registered");
        let rule = json!([{"op": "add", "path": format!("/webhooks/{at}/rules/-"), "value": {
            "operations": ["UPDATE", "DELETE"], "apiGroups": ["shop.test.interlock.dev"], "apiVersions": ["v1"],
            "resources": ["carts"], "scope": "Namespaced",
        }}]);
        let rule = rule.to_string();
        kubectl.ok(&["patch", "validatingwebhookconfiguration", "interlock", "--type=json", "-p", &rule]);
    });
    let bob = namespace.kubectl("bob");
    eventually(NOTICED, "the API server sends carts", || {
        let edit = bob.run(&["patch", "cart/shop", "--type=merge", "-p", r#"{"spec":{"size":1}}"#, "--dry-run=server"]);
        if edit.stderr.contains("[manual-edit]") { Ok(()) } else { Err(edit.to_string()) }
    });
}
