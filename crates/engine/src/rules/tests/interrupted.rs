//! What an interrupted upgrade leaves behind, and what completes it.

use serde_json::{Value, json};

use super::deletion::deployment;
use super::scenario::{Cluster, Rec, rec};
use crate::owners::olm::rules::tests::index;
use crate::release::stamps::{HOLDER, INTERRUPTED};

const ENFORCED: &str = "rules:\n  resume-interrupted: {mode: enforce}\n";
const FLUX: &str = "system:serviceaccount:flux-system:helm-controller";

fn chart(record: Rec, version: &'static str) -> Rec {
    Rec { chart_version: version, ..record }
}

/// Revision 1 is deployed, and alice has started an upgrade to chart version 2.0.0.
fn upgrading(policy: &str) -> (Cluster, Rec) {
    let mut cluster = Cluster::with_policy(policy);
    cluster.given_record(&rec(1, "deployed"));
    let second = chart(rec(2, "pending-upgrade"), "2.0.0");
    assert_eq!(cluster.create("alice", &second), Ok(()));
    cluster.given(deployment(10, 10, "True"));
    cluster.later(16 * 60);
    (cluster, second)
}

/// Like [`upgrading`], but the upgrade was killed, and its record deleted.
fn interrupted() -> Cluster {
    let (mut cluster, second) = upgrading(ENFORCED);
    assert_eq!(cluster.delete("alice", &second), Ok(()));
    cluster
}

fn third() -> Rec {
    chart(rec(2, "pending-upgrade"), "3.0.0")
}

#[test]
fn another_version_waits_until_the_interrupted_one_is_finished() {
    let mut cluster = interrupted();
    assert_eq!(cluster.create("alice", &third()), Err(vec!["resume-interrupted"]));
    let text = cluster.refusal("CREATE", "alice", &third());
    assert!(text.contains("the upgrade to shop-2.0.0 (revision 2) was interrupted and never finished"), "{text}");
    assert!(
        text.contains(
            "Upgrade to shop-2.0.0 again, then continue from there. Or roll back, then continue from there. If you will not \
             finish that upgrade, remove"
        ),
        "{text}"
    );
    let again = chart(rec(2, "pending-upgrade"), "2.0.0");
    assert_eq!(cluster.create("alice", &again), Ok(()));
    // The retry fails by itself, so the version is still incomplete.
    assert_eq!(cluster.update("alice", &again, &again.to("failed")), Ok(()));
    let third = chart(rec(3, "pending-upgrade"), "3.0.0");
    assert_eq!(cluster.create("alice", &third), Err(vec!["resume-interrupted"]));
    let again = chart(rec(3, "pending-upgrade"), "2.0.0");
    assert_eq!(cluster.create("alice", &again), Ok(()));
    assert_eq!(cluster.update("alice", &rec(1, "deployed"), &rec(1, "superseded")), Ok(()));
    assert_eq!(cluster.update("alice", &again, &again.to("deployed")), Ok(()));
    assert_eq!(cluster.create("alice", &chart(rec(4, "pending-upgrade"), "3.0.0")), Ok(()));
}

#[test]
fn a_rollback_completes_an_interrupted_upgrade_too() {
    let mut cluster = interrupted();
    let back = rec(2, "pending-rollback");
    assert_eq!(cluster.create("alice", &back), Ok(()));
    assert_eq!(cluster.update("alice", &rec(1, "deployed"), &rec(1, "superseded")), Ok(()));
    assert_eq!(cluster.update("alice", &back, &back.to("deployed")), Ok(()));
    assert_eq!(cluster.create("alice", &chart(rec(3, "pending-upgrade"), "3.0.0")), Ok(()));
}

/// helm supersedes the old record before it promotes the new one. In between, no record is deployed.
#[test]
fn death_between_the_last_two_writes_leaves_a_note() {
    let (mut cluster, second) = upgrading(ENFORCED);
    let (first, superseded) = (rec(1, "deployed"), rec(1, "superseded"));
    assert_eq!(cluster.update("alice", &first, &superseded), Ok(()));
    assert_eq!(cluster.delete("bob", &second), Ok(()));
    assert_eq!(cluster.create("alice", &third()), Err(vec!["resume-interrupted"]));
    // The retry fails by itself, so the version is still incomplete.
    assert_eq!(cluster.create("alice", &second), Ok(()));
    assert_eq!(cluster.update("alice", &second, &second.to("failed")), Ok(()));
    let next = |version| chart(rec(3, "pending-upgrade"), version);
    assert_eq!(cluster.create("alice", &next("3.0.0")), Err(vec!["resume-interrupted"]));
    assert_eq!(cluster.create("alice", &next("2.0.0")), Ok(()));
    let third = next("2.0.0");
    assert_eq!(cluster.update("alice", &third, &third.to("deployed")), Ok(()));
    let fourth = chart(rec(4, "pending-upgrade"), "3.0.0");
    assert_eq!(cluster.create("alice", &fourth), Ok(()));
    // This upgrade dies at the same point. The old note does not apply to it.
    assert_eq!(cluster.update("alice", &third.to("deployed"), &third.to("superseded")), Ok(()));
    cluster.later(16 * 60);
    assert_eq!(cluster.update("alice", &fourth, &fourth.to("failed")), Ok(()));
    assert_eq!(cluster.create("alice", &chart(rec(5, "pending-upgrade"), "4.0.0")), Ok(()));
}

/// The note stays on the old record until the new one is promoted, because the retry may die too.
#[test]
fn the_note_survives_a_retry_that_dies_before_its_promotion() {
    let mut cluster = interrupted();
    let again = chart(rec(2, "pending-upgrade"), "2.0.0");
    assert_eq!(cluster.create("alice", &again), Ok(()));
    assert_eq!(cluster.update("alice", &rec(1, "deployed"), &rec(1, "superseded")), Ok(()));
    assert_eq!(cluster.update("alice", &again, &again.to("failed")), Ok(()));
    assert_eq!(cluster.create("alice", &chart(rec(3, "pending-upgrade"), "3.0.0")), Err(vec!["resume-interrupted"]));
}

#[test]
fn an_interrupted_first_install_leaves_no_note() {
    for operator in [None, Some("system:serviceaccount:olmv1-system:operator-controller-controller-manager")] {
        let mut cluster = Cluster::new();
        let object = |record: &Rec| if operator.is_some() { index(record, &[]) } else { record.object() };
        let first = chart(rec(1, "pending-install"), "1.0.0");
        let holder = operator.unwrap_or("alice");
        assert_eq!(cluster.create_object(holder, object(&first)), Ok(()));
        assert_eq!(cluster.delete_object("bob", object(&first)), Err(vec!["pending-recovery"]), "it may still run");
        cluster.later(16 * 60);
        assert_eq!(cluster.delete_object("bob", object(&first)), Ok(()), "{operator:?}");
        // Another version may be the fix.
        assert_eq!(cluster.create_object(holder, object(&chart(first, "1.0.1"))), Ok(()));
    }
}

#[test]
fn an_unlock_interrupts_an_upgrade_but_a_failure_does_not() {
    let (mut cluster, second) = upgrading(ENFORCED);
    assert_eq!(cluster.update("bob", &second, &second.to("failed")), Ok(()));
    let next = |version| chart(rec(3, "pending-upgrade"), version);
    assert_eq!(cluster.create("bob", &next("3.0.0")), Err(vec!["resume-interrupted"]));
    assert_eq!(cluster.create("bob", &next("2.0.0")), Ok(()));

    let (mut cluster, second) = upgrading(ENFORCED);
    assert_eq!(cluster.update("alice", &second, &second.to("failed")), Ok(()));
    assert_eq!(cluster.create("bob", &next("3.0.0")), Ok(()));

    // A promotion by another user completes it.
    let (mut cluster, second) = upgrading(ENFORCED);
    assert_eq!(cluster.update("alice", &rec(1, "deployed"), &rec(1, "superseded")), Ok(()));
    assert_eq!(cluster.update("bob", &second, &second.to("deployed")), Ok(()));
    assert_eq!(cluster.create("bob", &next("3.0.0")), Ok(()));
}

#[test]
fn an_unlock_by_flux_is_known_by_its_description() {
    let unlock = |description: &str| {
        let mut cluster = Cluster::with_policy(ENFORCED);
        cluster.given_record(&rec(1, "deployed"));
        let second = chart(rec(2, "pending-upgrade"), "2.0.0");
        assert_eq!(cluster.create(FLUX, &second), Ok(()));
        let failed = Rec { description: description.to_owned(), ..second.to("failed") };
        assert_eq!(cluster.update(FLUX, &second, &failed), Ok(()));
        cluster.create(FLUX, &chart(rec(3, "pending-upgrade"), "3.0.0"))
    };
    assert_eq!(unlock("Release unlocked from stale 'pending-upgrade' state"), Err(vec!["resume-interrupted"]));
    assert_eq!(unlock("Upgrade \"web\" failed: timed out"), Ok(()));
}

#[test]
fn pruning_an_old_pending_record_leaves_no_note() {
    let mut cluster = Cluster::with_policy(ENFORCED);
    let stuck = rec(1, "pending-upgrade").annotated("interlock.dev/chart", "shop-0.9.0");
    cluster.given_record(&stuck);
    cluster.given_record(&rec(2, "deployed"));
    assert_eq!(cluster.delete("alice", &stuck), Ok(()));
    assert_eq!(cluster.create("alice", &chart(rec(3, "pending-upgrade"), "3.0.0")), Ok(()));
}

#[test]
fn the_shipped_policy_warns_helm_and_refuses_olm() {
    let (mut cluster, second) = upgrading("");
    assert_eq!(cluster.delete("alice", &second), Ok(()));
    let text = cluster.refusal("CREATE", "alice", &third());
    assert!(text.contains("[resume-interrupted]"), "{text}");

    let olm = |record: &Rec| -> Value {
        let mut object = record.object();
        object["type"] = "operatorframework.io/index.v1".into();
        object["metadata"]["labels"]["owner"] = "operator-controller".into();
        object["metadata"]["labels"]["type"] = "index".into();
        let data = object["data"].take();
        let inner =
            base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data["release"].as_str().unwrap());
        object["data"] = json!({"chunk": String::from_utf8(inner.unwrap()).unwrap()});
        object
    };
    let mut cluster = Cluster::new();
    cluster.given(olm(&rec(1, "deployed").annotated(INTERRUPTED, "shop-2.0.0@2")));
    let operator = "system:serviceaccount:olmv1-system:operator-controller-controller-manager";
    assert_eq!(cluster.create_object(operator, olm(&third())), Err(vec!["resume-interrupted"]));
    let again = chart(rec(2, "pending-upgrade"), "2.0.0");
    assert_eq!(cluster.create_object(operator, olm(&again)), Ok(()));
}

#[test]
fn clients_cannot_write_the_note() {
    let mut cluster = interrupted();
    let noted = |note: &str| rec(1, "deployed").annotated(INTERRUPTED, note).object();
    // The mutating half restores the note, whatever the client sends.
    assert_eq!(cluster.update_objects(FLUX, noted("shop-2.0.0@2"), rec(1, "deployed").object()), Ok(()));
    assert_eq!(cluster.create("alice", &third()), Err(vec!["resume-interrupted"]));
    assert_eq!(cluster.update_objects("alice", noted("shop-2.0.0@2"), noted("shop-3.0.0@2")), Ok(()));
    assert_eq!(cluster.create("alice", &third()), Err(vec!["resume-interrupted"]));
}

#[test]
fn only_a_person_can_remove_the_note() {
    let noted = || rec(1, "deployed").annotated(INTERRUPTED, "shop-2.0.0@2").annotated(HOLDER, "alice");
    let without = || rec(1, "deployed").annotated(HOLDER, "alice");
    let after = |user: &str, write: Rec| {
        let mut cluster = Cluster::with_policy(ENFORCED);
        cluster.given_record(&noted());
        assert_eq!(cluster.update_objects(user, noted().object(), write.object()), Ok(()));
        cluster.create("alice", &third())
    };
    assert_eq!(after("alice", without()), Ok(()));
    let mut unstamped = interrupted();
    let bare = rec(1, "deployed").annotated(INTERRUPTED, "shop-2.0.0@2").object();
    assert_eq!(unstamped.update_objects("alice", bare, rec(1, "deployed").object()), Ok(()));
    assert_eq!(unstamped.create("alice", &third()), Ok(()), "the other stamps were lost, and the body is the same");
    assert_eq!(
        after("alice", rec(1, "deployed")),
        Err(vec!["resume-interrupted"]),
        "a PUT of helm drops every annotation"
    );
    assert_eq!(after(FLUX, without()), Err(vec!["resume-interrupted"]));
}
