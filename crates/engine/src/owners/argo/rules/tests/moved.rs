//! A release that has moved to an Application: its records and marks stay, and Argo CD owns its objects.

use serde_json::{Value, json};

use super::{CONTROLLER, application, refused};
use crate::rules::tests::scenario::{Cluster, Rec, rec};

const MANIFEST: &str =
    "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {replicas: 2}\n";

/// A Deployment with both marks. The times are those of the last writes of helm and of Argo CD.
fn web(replicas: u64, [helm, argo]: [&str; 2]) -> Value {
    let entry = |manager: &str, time: &str| {
        json!({
            "manager": manager, "operation": "Update", "apiVersion": "apps/v1", "time": time,
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
        })
    };
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": replicas},
        "metadata": {
            "name": "web", "namespace": "shop", "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {
                "argocd.argoproj.io/tracking-id": "web:apps/Deployment:shop/web",
                "meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop",
            },
            "managedFields": [entry("helm", helm), entry("argocd-controller", argo)],
        },
    })
}

const MOVED: [&str; 2] = ["2026-11-01T10:00:00Z", "2026-11-20T10:00:00Z"];
const NOT_YET: [&str; 2] = ["2026-11-20T10:00:00Z", "2026-11-01T10:00:00Z"];

fn deployed() -> Rec {
    Rec { manifest: MANIFEST, ..rec(1, "deployed") }
}

fn cluster(written: [&str; 2], lists: bool) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.given_record(&deployed());
    cluster.given(web(2, written));
    let mut owner = application(json!({}), false);
    if !lists {
        owner["status"]["resources"] = json!([]);
    }
    cluster.given(owner);
    cluster
}

#[test]
fn the_owner_that_wrote_last_is_named() {
    let owner = |written: [&str; 2], lists: bool| {
        cluster(written, lists).findings("bob", Some(web(2, written)), Some(web(5, written))).concat()
    };
    assert!(owner(MOVED, true).contains("managed by Argo CD's Application argocd/web"), "{}", owner(MOVED, true));
    for (written, lists) in [(NOT_YET, true), (MOVED, false), (NOT_YET, false)] {
        let message = owner(written, lists);
        assert!(message.contains("managed by release shop/web"), "{lists}: {message}");
    }
    // Without records, the other owner is left.
    let mut forgotten = Cluster::new();
    forgotten.given(application(json!({}), false));
    let message = forgotten.findings("bob", Some(web(2, NOT_YET)), Some(web(5, NOT_YET))).concat();
    assert!(message.contains("managed by Argo CD's Application argocd/web"), "{message}");
}

#[test]
fn helm_uninstall_takes_nothing_from_the_new_owner() {
    let mut moved = cluster(MOVED, true);
    assert_eq!(moved.update("alice", &deployed(), &deployed().to("uninstalling")), Ok(()));
    assert_eq!(moved.delete_object("alice", web(2, MOVED)), refused("manual-delete"));
    assert_eq!(moved.update_objects(CONTROLLER, web(2, MOVED), web(3, MOVED)), Ok(()), "a sync goes on");
    let mut at_home = cluster(NOT_YET, true);
    assert_eq!(at_home.update("alice", &deployed(), &deployed().to("uninstalling")), Ok(()));
    assert_eq!(at_home.delete_object("alice", web(2, NOT_YET)), Ok(()));
}

#[test]
fn the_records_of_a_moved_release_may_be_deleted() {
    assert_eq!(cluster(MOVED, true).delete("alice", &deployed()), Ok(()));
    for (written, lists) in [(NOT_YET, true), (MOVED, false)] {
        assert_eq!(cluster(written, lists).delete("alice", &deployed()), refused("record-deletion"), "{lists}");
    }
}
