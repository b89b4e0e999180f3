//! Deletions, and the checks of the runbook before the record of a stuck operation is deleted.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::scenario::{Cluster, Rec, rec};

pub(super) const STALE: i64 = 15 * 60;

pub(crate) fn deployment(updated: i64, available: i64, progressing: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "generation": 3},
        "spec": {"replicas": 10, "selector": {}, "template": {}},
        "status": {
            "observedGeneration": 3, "updatedReplicas": updated, "availableReplicas": available,
            "conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": progressing}],
        },
    })
}

/// An upgrade over a deployed revision that died long ago, with a healthy workload.
fn stuck() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.given_record(&rec(5, "deployed"));
    cluster.given_record(&rec(6, "pending-upgrade"));
    cluster.given(deployment(10, 10, "True"));
    cluster.later(STALE);
    cluster
}

#[test]
fn a_stuck_record_may_be_deleted_if_every_check_passes() {
    assert_eq!(stuck().delete("alice", &rec(6, "pending-upgrade")), Ok(()));
}

#[test]
fn each_failing_check_is_enough_for_a_refusal_that_names_it() {
    let pending = rec(6, "pending-upgrade");
    let says = |mut cluster: Cluster, record: &Rec, wanted: &str| {
        let message = cluster.refusal("DELETE", "alice", record);
        assert!(message.contains("[pending-recovery]") && message.contains(wanted), "{wanted}: {message}");
    };
    let mut fresh = stuck();
    fresh.later(-1);
    says(fresh, &pending, "may still be running: it is 14 min old");
    let mut unhealthy = stuck();
    unhealthy.given(deployment(10, 8, "True"));
    says(unhealthy, &pending, "Deployment shop/web has 10 updated and 8 available of 10 replicas");
    let mut stalled = stuck();
    stalled.given(deployment(10, 10, "False"));
    says(stalled, &pending, "Deployment shop/web is not Progressing");
    let stranger = Rec { manifest: "kind: StatefulSet\nmetadata: {name: db}\n", ..pending.clone() };
    says(stuck(), &stranger, "StatefulSet shop/db does not exist");
    says(stuck(), &Rec { status: "failed", ..pending.clone() }, "its body says failed, which is not pending");
    // Go reads the last of two keys, so the record is one that a client may read.
    let twice = pending.body().to_string().replacen('{', r#"{"name":"web","#, 1);
    let payload = Some(STANDARD.encode(STANDARD.encode(twice)));
    says(stuck(), &Rec { payload, ..pending }, "its body cannot be decoded");
}

#[test]
fn health_is_ignored_without_a_deployed_revision_below() {
    let pending = rec(6, "pending-upgrade");
    for below in [None, Some(rec(5, "superseded")), Some(rec(5, "failed"))] {
        let mut cluster = Cluster::new();
        below.iter().for_each(|below| cluster.given_record(below));
        cluster.given_record(&pending);
        assert_eq!(cluster.delete("bob", &pending), Err(vec!["pending-recovery"]), "it may still run");
        cluster.later(STALE);
        assert_eq!(cluster.delete("bob", &pending), Ok(()), "{below:?}");
    }
}

#[test]
fn a_recent_record_stays_even_if_its_body_is_unreadable() {
    let mut cluster = stuck();
    cluster.later(-STALE + 4);
    let odd = Rec { manifest: "kind: Deployment\nmetadata: {name: \"../x\"}\n", ..rec(6, "pending-upgrade") };
    assert_eq!(cluster.delete("alice", &odd), Err(vec!["pending-recovery"]));
    let chunked = Rec { payload: Some("%".into()), ..rec(6, "pending-upgrade") };
    assert_eq!(cluster.delete("alice", &chunked), Err(vec!["pending-recovery"]));
}

#[test]
fn the_record_of_a_dead_operation_is_pruned_from_the_middle() {
    let mut cluster = stuck();
    cluster.later(-STALE + 5);
    cluster.given_record(&rec(7, "deployed"));
    assert_eq!(cluster.delete("alice", &rec(6, "pending-upgrade")), Ok(()));
}

#[test]
fn only_service_accounts_may_delete_records_as_a_collection() {
    let record = rec(4, "superseded");
    let mut cluster = stuck();
    cluster.given_record(&record);
    assert_eq!(cluster.delete_among_others("alice", &record), Err(vec!["record-deletion"]));
    assert_eq!(cluster.delete_among_others("system:serviceaccount:olm:operator", &record), Ok(()));
    let live = rec(5, "deployed");
    let verdict = cluster.delete_among_others("system:serviceaccount:olm:operator", &live);
    assert_eq!(verdict, Err(vec!["record-deletion"]));
}

#[test]
fn a_purge_may_delete_all_records_after_the_mark() {
    let mut cluster = Cluster::new();
    let (older, newest) = (rec(4, "deployed"), rec(5, "failed"));
    cluster.given_record(&older);
    cluster.given_record(&newest);
    assert_eq!(cluster.delete("alice", &older), Err(vec!["record-deletion"]));
    assert_eq!(cluster.update("alice", &newest, &newest.to("uninstalling")), Ok(()));
    assert_eq!(cluster.delete("alice", &older), Ok(()));
    assert_eq!(cluster.delete("alice", &newest.to("uninstalling")), Ok(()));
}

#[test]
fn only_the_newest_of_two_deployed_records_is_kept() {
    let mut cluster = Cluster::new();
    cluster.given_record(&rec(4, "deployed"));
    cluster.given_record(&rec(6, "deployed"));
    assert_eq!(cluster.delete("alice", &rec(6, "deployed")), Err(vec!["record-deletion"]));
    assert_eq!(cluster.delete("alice", &rec(4, "deployed")), Ok(()));
}

#[test]
fn records_in_a_terminating_namespace_may_be_deleted() {
    let namespace = |terminating: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "deletionTimestamp": terminating}});
    let mut cluster = stuck();
    cluster.given(namespace(Value::Null));
    assert!(cluster.delete("alice", &rec(5, "deployed")).is_err());
    cluster.given(namespace("2026-11-21T10:00:00Z".into()));
    assert_eq!(cluster.delete("alice", &rec(5, "deployed")), Ok(()));
    assert_eq!(cluster.delete_among_others("alice", &rec(6, "pending-upgrade")), Ok(()));
}

#[test]
fn a_collection_delete_of_a_stuck_record_is_refused() {
    let verdict = stuck().delete_among_others("system:serviceaccount:ops:cleaner", &rec(6, "pending-upgrade"));
    assert_eq!(verdict, Err(vec!["pending-recovery"]));
}
