//! Ordinary writers of a cluster next to a guarded release: none is disturbed.

use std::time::Duration;

use serde_json::json;

use crate::harness::acts::{Act, Target, Verdict};
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion, Kubectl};
use crate::harness::decisions::{decisions, expect_findings_only_of};
use crate::harness::eventually::eventually;
use crate::harness::origins::Origin;

use Verdict::{Edits, Passes};

const CONTROLLERS: Duration = Duration::from_secs(90);

const IMAGE: &str = "spec.template.spec.containers[app].image";

/// The order matters: a restart leaves a rollout to pause.
const UNDECLARED: &[Act] = &[
    ("a restart", &["rollout", "restart", "deployment/demo"], Passes),
    ("a pause", &["rollout", "pause", "deployment/demo"], Passes),
    ("a resume", &["rollout", "resume", "deployment/demo"], Passes),
    ("a label", &["label", "deployment/demo", "team=blue"], Passes),
    ("its change", &["label", "deployment/demo", "--overwrite", "team=red"], Passes),
    ("its removal", &["label", "deployment/demo", "team-"], Passes),
    ("an annotation", &["annotate", "configmap/demo", "note=hello"], Passes),
    ("a variable", &["set", "env", "deployment/demo", "EXTRA=1"], Passes),
    ("its removal", &["set", "env", "deployment/demo", "EXTRA-"], Passes),
    ("resources", &["set", "resources", "deployment/demo", "--limits=cpu=1"], Passes),
    (
        "a sidecar in front",
        &[
            "patch",
            "deployment/demo",
            "--type=json",
            "-p",
            r#"[{"op":"add","path":"/spec/template/spec/containers/0","value":{"name":"proxy","image":"registry.invalid/proxy:1"}}]"#,
        ],
        Passes,
    ),
    ("its image", &["set", "image", "deployment/demo", "proxy=registry.invalid/proxy:2"], Passes),
    ("every image", &["set", "image", "deployment/demo", "*=bob:1"], Edits(IMAGE)),
    (
        "a container that starts first",
        &[
            "patch",
            "deployment/demo",
            "-p",
            r#"{"spec":{"template":{"spec":{"initContainers":[{"name":"init","image":"registry.invalid/init:1"}]}}}}"#,
        ],
        Passes,
    ),
    (
        "a toleration",
        &[
            "patch",
            "deployment/demo",
            "-p",
            r#"{"spec":{"template":{"spec":{"tolerations":[{"key":"spot","operator":"Exists"}]}}}}"#,
        ],
        Passes,
    ),
    ("another port", &["patch", "service/demo", "-p", r#"{"spec":{"ports":[{"name":"admin","port":81}]}}"#], Passes),
    (
        "the status",
        &[
            "patch",
            "deployment/demo",
            "--subresource=status",
            "--type=merge",
            "-p",
            r#"{"status":{"collisionCount":3}}"#,
        ],
        Passes,
    ),
    ("a dry run", &["label", "deployment/demo", "team=blue", "--dry-run=server"], Passes),
    (
        "a dry run of a declared field",
        &["set", "image", "deployment/demo", "app=bob:1", "--dry-run=server"],
        Edits(IMAGE),
    ),
];

const UNMANAGED: &[Act] = &[
    ("a Deployment", &["create", "deployment", "own", "--image=registry.invalid/app:1"], Passes),
    ("its image", &["set", "image", "deployment/own", "*=bob:1"], Passes),
    ("its label", &["label", "deployment/own", "app.kubernetes.io/managed-by=bob"], Passes),
    ("its scale", &["scale", "deployment/own", "--replicas=2"], Passes),
    // As with Argo CD and many charts: Helm's label, but no release.
    ("a label like Helm's", &["label", "deployment/own", "--overwrite", "app.kubernetes.io/managed-by=Helm"], Passes),
    ("the image of that", &["set", "image", "deployment/own", "*=bob:2"], Passes),
    ("the label", &["label", "deployment/own", "app.kubernetes.io/managed-by-"], Passes),
    ("a deletion", &["delete", "deployment/own"], Passes),
];

#[test]
fn undeclared_fields_are_free_whichever_helm_wrote_the_rest() {
    Origin::everywhere(|origin| {
        let (namespace, revision) = origin.release("free");
        let target = Target::deployed(&namespace, "demo", revision);
        let kubectl = namespace.kubectl("bob");
        target.expect_all(&kubectl, UNDECLARED);
        target.expect_all(&kubectl, UNMANAGED);
        expect_findings_only_of(&namespace, &["bob"]);
        let dry: Vec<_> = decisions(&namespace).into_iter().filter(|decision| decision.dry_run).collect();
        // The API server may repeat a review, so there may be more than two.
        for rules in ["", "manual-edit=enforce"] {
            assert!(dry.iter().any(|decision| decision.rules == rules), "{origin:?} {dry:#?}");
        }
        // The next upgrade works as without these edits.
        let helm = namespace.helm(HelmVersion::V4, Driver::Secret, "alice");
        helm.ok(&["upgrade", "demo", Chart::new("demo").path(), "--set=image=two"]);
    });
}

#[test]
fn the_garbage_collector_deletes_a_guarded_object_whose_owner_is_gone() {
    let (namespace, _) = Origin::Helm4.release("garbage");
    let (kubectl, bot) = (namespace.kubectl("admin"), namespace.service_account("bot"));
    kubectl.ok(&["create", "configmap", "owner"]);
    let owner = kubectl.get(&["configmap", "owner"]);
    let patch = json!({"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    ]}});
    let patch = ["patch", "configmap", "demo", "--type=merge", "-p", &patch.to_string()];
    // Otherwise a person could let the garbage collector delete it.
    kubectl.fails(&patch, &["metadata.ownerReferences would take it out of the release's hands", "[manual-edit]"]);
    namespace.kubectl_as(&bot).ok(&patch);
    kubectl.fails(&["delete", "configmap", "demo"], &["[manual-delete]"]);
    kubectl.ok(&["delete", "configmap", "owner"]);
    gone(&kubectl, &["configmap", "demo"]);
    expect_findings_only_of(&namespace, &["admin", bot.user()]);
}

#[test]
fn a_namespace_is_deleted_with_the_objects_of_its_releases() {
    let (namespace, _) = Origin::Helm3.release("namespace-goes");
    let kubectl = namespace.plane().kubectl(&namespace.plane().person("bob"));
    kubectl.ok(&["delete", "namespace", namespace.name(), "--wait=false"]);
    gone(&kubectl, &["namespace", namespace.name()]);
    expect_findings_only_of(&namespace, &[]);
}

#[test]
fn a_finalizer_can_be_removed_from_an_object_that_is_being_deleted() {
    let (namespace, revision) = Origin::Helm3.release("finalizer");
    let bot = namespace.service_account("bot");
    let kubectl = namespace.kubectl("bob");
    let finalizers = |list: &str| format!(r#"{{"metadata":{{"finalizers":{list}}}}}"#);
    let held = finalizers(r#"["example.com/wait"]"#);
    let hold = ["patch", "configmap", "demo", "--type=merge", "-p", &held];
    kubectl.fails(&hold, &["metadata.finalizers would take it out of the release's hands", "[manual-edit]"]);
    namespace.kubectl_as(&bot).ok(&hold);
    namespace.kubectl_as(&bot).ok(&["delete", "configmap", "demo", "--wait=false"]);
    assert_ne!(kubectl.get(&["configmap", "demo"])["metadata"]["deletionTimestamp"], json!(null));
    // An object that is being deleted may be deleted again and edited. Its neighbour may not.
    kubectl.ok(&["delete", "configmap", "demo", "--wait=false"]);
    kubectl.ok(&["patch", "configmap", "demo", "--type=merge", "-p", &finalizers("null")]);
    gone(&kubectl, &["configmap", "demo"]);
    Target::deployed(&namespace, "demo", revision)
        .expect_all(&kubectl, &[("the neighbour", &["delete", "service", "demo"], Verdict::Deletes)]);
}

fn gone(kubectl: &Kubectl, object: &[&str]) {
    eventually(CONTROLLERS, &format!("{object:?} is gone"), || match kubectl.find(object) {
        None => Ok(()),
        Some(object) => Err(object["metadata"].to_string() + &object["status"].to_string()),
    });
}
