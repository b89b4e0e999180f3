//! What the hooks of an operation may do, and what other pods of their accounts may not.

use serde_json::{Value, json};

use super::objects::{image, record, web};
use super::scenario::{Cluster, Rec, start};

const CLEANER: &str = "system:serviceaccount:shop:cleaner";

/// An upgrade of `shop:ci` whose pre-upgrade hook is the Job `clean`, and the Pod `probe`.
fn upgrading(status: &'static str) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.given_record(&record(5, "deployed", "system:serviceaccount:shop:ci"));
    let newest = record(6, status, "system:serviceaccount:shop:ci");
    let mut body = newest.body();
    let hook = |kind: &str, name: &str| {
        let manifest = format!("kind: {kind}\nmetadata: {{name: {name}}}\n");
        json!({"name": name, "kind": kind, "path": "t", "manifest": manifest, "events": ["pre-upgrade"]})
    };
    body["hooks"] = json!([hook("Job", "clean"), hook("Pod", "probe")]);
    cluster.given_record(&Rec { payload: Some(newest.encoded(&body)), ..newest });
    cluster
}

/// An object with the uid `NAME-uid`, created some seconds after the operation started.
fn object(kind: &str, name: &str, seconds: i64, controller: Option<&str>) -> Value {
    let created = start() + jiff::SignedDuration::from_secs(seconds);
    let group = if kind == "Job" { "batch/v1" } else { "v1" };
    let owners: Vec<_> = controller.into_iter().collect();
    let owners = owners
        .iter()
        .map(|name| json!({"kind": "Job", "name": name, "uid": format!("{name}-uid"), "controller": true}));
    json!({
        "apiVersion": group, "kind": kind,
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("{name}-uid"), "creationTimestamp": created.to_string(),
            "ownerReferences": owners.collect::<Vec<_>>(),
        },
    })
}

fn with_job(status: &'static str, seconds: i64) -> Cluster {
    let mut cluster = upgrading(status);
    cluster.given(object("Job", "clean", seconds, None));
    cluster.given(object("Pod", "clean-abc", seconds, Some("clean")));
    cluster
}

#[test]
fn a_hook_of_the_operation_deletes_and_edits_what_is_declared() {
    let hook = format!("{CLEANER} on clean-abc:clean-abc-uid");
    assert_eq!(with_job("pending-upgrade", 0).delete_object(&hook, web()), Ok(()));
    assert_eq!(with_job("pending-upgrade", 5).update_objects(&hook, web(), image("nginx:2")), Ok(()));
    let mut pod = upgrading("pending-upgrade");
    pod.given(object("Pod", "probe", 1, None));
    assert_eq!(pod.delete_object(&format!("{CLEANER} on probe:probe-uid"), web()), Ok(()), "a hook that is a pod");
    assert_eq!(with_job("uninstalling", 5).delete_object(&hook, web()), Ok(()));
}

#[test]
fn other_pods_of_its_account_delete_nothing() {
    let refused = Err(vec!["foreign-edit-in-transition"]);
    let mut cluster = with_job("pending-upgrade", 5);
    cluster.given(object("Pod", "web-1", 5, None));
    cluster.given(object("Job", "nightly", 5, None));
    cluster.given(object("Pod", "nightly-abc", 5, Some("nightly")));
    cluster.given(object("Pod", "posing", 5, Some("gone")));
    for user in [
        // No token of a pod, or one of another pod, of another Job, of a pod that is gone or has another uid.
        CLEANER.to_owned(),
        format!("{CLEANER} on web-1:web-1-uid"),
        format!("{CLEANER} on nightly-abc:nightly-abc-uid"),
        format!("{CLEANER} on posing:posing-uid"),
        format!("{CLEANER} on clean-xyz:clean-xyz-uid"),
        format!("{CLEANER} on clean-abc:other-uid"),
        "system:serviceaccount:other:cleaner on clean-abc:clean-abc-uid".to_owned(),
        "bob on clean-abc:clean-abc-uid".to_owned(),
    ] {
        assert_eq!(cluster.delete_object(&user, web()), refused, "{user}");
    }
    let hook = format!("{CLEANER} on clean-abc:clean-abc-uid");
    assert_eq!(with_job("pending-upgrade", -5).delete_object(&hook, web()), refused, "older than the operation");
}

#[test]
fn a_hook_has_no_rights_once_its_operation_has_ended() {
    let hook = format!("{CLEANER} on clean-abc:clean-abc-uid");
    let mut cluster = Cluster::with_policy("rules:\n  manual-delete: {cases: {only: []}}\n");
    cluster.given_record(&record(6, "deployed", "system:serviceaccount:shop:ci"));
    cluster.given(object("Job", "clean", 5, None));
    cluster.given(object("Pod", "clean-abc", 5, Some("clean")));
    assert_eq!(cluster.delete_object(&hook, web()), Err(vec!["manual-delete"]));
}
