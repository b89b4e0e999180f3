//! All writes that end another user's operation use the same check: the same users may, and the same may not.

use serde_json::json;

use super::deletion::deployment;
use super::objects::{image, record, web};
use super::scenario::{Cluster, Rec, Verdict, rec};

pub(crate) const STALE: i64 = 15 * 60;
const CI: &str = "system:serviceaccount:ci:deployer";
const OTHER_CI: &str = "system:serviceaccount:ci:other";
const FLUX: &str = "system:serviceaccount:flux-system:helm-controller";
const FLEET: &str = "system:serviceaccount:cattle-fleet-system:fleet-agent";

/// A write that ends an operation.
pub(crate) struct Door {
    pub(crate) name: &'static str,
    /// The status of the operation's record before the write.
    pub(crate) over: &'static str,
    /// Whether even the holder must wait if it is a person: the same person may run helm in two terminals.
    pub(crate) closed_to_its_own_person: bool,
    pub(crate) write: fn(&mut Cluster, &str, &Rec) -> Verdict,
}

pub(crate) const DOORS: [Door; 12] = [
    door("unlock", "pending-upgrade", |cluster, user, it| cluster.update(user, it, &it.to("failed"))),
    // Over an upgrade, a promotion is also refused while the previous revision is still deployed.
    door("promote", "pending-install", |cluster, user, it| cluster.update(user, it, &it.to("deployed"))),
    door("uninstall over", "pending-upgrade", |cluster, user, it| cluster.update(user, it, &it.to("uninstalling"))),
    door("mark uninstalled", "uninstalling", |cluster, user, it| cluster.update(user, it, &it.to("uninstalled"))),
    door("fail the uninstall", "uninstalling", |cluster, user, it| cluster.update(user, it, &it.to("failed"))),
    door("uninstall again", "uninstalling", |cluster, user, it| {
        cluster.update(user, it, &Rec { hooks_run: 1, ..it.clone() })
    }),
    door("delete the record of an uninstall", "uninstalling", |cluster, user, it| cluster.delete(user, it)),
    door("delete the record below an uninstall", "uninstalling", |cluster, user, _| {
        cluster.delete(user, &rec(5, "deployed"))
    }),
    door("delete the record it goes on from", "pending-install", |cluster, user, _| {
        cluster.delete(user, &rec(5, "superseded"))
    }),
    patient("delete the pending record", "pending-upgrade", |cluster, user, it| cluster.delete(user, it)),
    patient("roll back over", "pending-upgrade", |cluster, user, _| cluster.create(user, &rec(7, "pending-rollback"))),
    patient("use the other driver", "pending-install", |cluster, user, _| {
        cluster.create(user, &Rec { kind: "ConfigMap", ..rec(1, "pending-upgrade") })
    }),
];

const fn door(name: &'static str, over: &'static str, write: fn(&mut Cluster, &str, &Rec) -> Verdict) -> Door {
    Door { name, over, closed_to_its_own_person: false, write }
}

const fn patient(name: &'static str, over: &'static str, write: fn(&mut Cluster, &str, &Rec) -> Verdict) -> Door {
    Door { name, over, closed_to_its_own_person: true, write }
}

/// The operation of a holder over revision 5, with its age in seconds.
fn operation(holder: &str, status: &'static str, seconds: i64) -> (Cluster, Rec) {
    operation_in(Cluster::new(), holder, status, seconds)
}

/// Like [`operation`], in a cluster without the release.
pub(crate) fn operation_in(mut cluster: Cluster, holder: &str, status: &'static str, seconds: i64) -> (Cluster, Rec) {
    cluster.given(deployment(10, 10, "True"));
    cluster.given_record(&rec(5, if status == "pending-install" { "superseded" } else { "deployed" }));
    let record = record(6, status, "");
    let made = match status {
        "uninstalling" => {
            let before = record.to("failed");
            cluster.given_record(&before);
            cluster.update(holder, &before, &record)
        }
        _ => cluster.create(holder, &record),
    };
    assert_eq!(made, Ok(()), "{holder} {status}");
    cluster.later(seconds);
    (cluster, record)
}

#[test]
fn every_door_asks_who_and_how_old() {
    for Door { name, over, closed_to_its_own_person, write } in DOORS {
        for (holder, user, open_while_fresh) in [
            ("alice", "alice", !closed_to_its_own_person),
            ("alice", "bob", false),
            ("alice", CI, false),
            ("alice", FLUX, false),
            (CI, CI, true),
            (CI, OTHER_CI, false),
            (CI, "alice", false),
            (FLUX, FLUX, true),
            (FLUX, FLEET, true),
            (FLUX, CI, false),
        ] {
            for (seconds, open) in [(0, open_while_fresh), (STALE - 1, open_while_fresh), (STALE, true)] {
                let (mut cluster, record) = operation(holder, over, seconds);
                let verdict = write(&mut cluster, user, &record);
                let case = format!("{name}: {user} over {holder}'s of {seconds} s: {verdict:?}");
                assert_eq!(verdict.is_ok(), open, "{case}");
            }
        }
    }
}

#[test]
fn a_lost_stamp_is_no_reason_to_refuse_an_update() {
    for Door { name, over, write, .. } in DOORS.iter().filter(|door| !door.closed_to_its_own_person) {
        let mut cluster = Cluster::new();
        let record = rec(6, over);
        cluster.given_record(&rec(5, "deployed"));
        cluster.given_record(&record);
        assert_eq!(write(&mut cluster, "bob", &record), Ok(()), "{name}");
    }
}

#[test]
fn a_second_person_who_finishes_a_dead_uninstall_holds_it() {
    let (mut cluster, record) = operation("alice", "uninstalling", STALE);
    let refused = Err(vec!["manual-delete"]);
    assert_eq!(cluster.delete_object("bob", web()), refused, "bob has not taken it over");
    let again = Rec { hooks_run: 1, ..record.clone() };
    assert_eq!(cluster.update("bob", &record, &again), Ok(()));
    assert_eq!(cluster.delete_object("bob", web()), Ok(()));
    assert_eq!(cluster.delete_object("alice", web()), Err(vec!["foreign-edit-in-transition"]), "it is bob's now");
    assert!(cluster.update("alice", &again, &again.to("uninstalled")).is_err());
    assert_eq!(cluster.delete("bob", &rec(5, "deployed")), Ok(()));
    assert_eq!(cluster.delete("bob", &again), Ok(()));
}

#[test]
fn an_unchanged_write_does_not_take_an_operation_over() {
    for status in ["uninstalling", "pending-upgrade"] {
        let (mut cluster, record) = operation("alice", status, 60);
        assert_eq!(cluster.update("admin", &record, &record), Ok(()), "{status}");
        assert!(cluster.update("bob", &record, &record.to("failed")).is_err(), "it is still alice's");
        assert_eq!(cluster.update("alice", &record, &record.to("failed")), Ok(()), "{status}");
    }
}

#[test]
fn after_a_refused_uninstall_deletions_are_refused_too() {
    let (mut cluster, record) = operation("alice", "pending-upgrade", 60);
    for user in ["bob", CI] {
        assert!(cluster.update(user, &record, &record.to("uninstalling")).is_err(), "{user}");
        assert_eq!(cluster.delete_object(user, web()), Err(vec!["foreign-edit-in-transition"]), "{user}");
    }
    assert_eq!(cluster.delete_object("alice", web()), Ok(()));
}

#[test]
fn after_a_managers_refused_uninstall_deletions_are_refused() {
    let (mut cluster, record) = operation("alice", "pending-upgrade", 60);
    assert_eq!(cluster.update(FLUX, &record, &record.to("uninstalling")), Err(vec!["pending-recovery"]));
    assert_eq!(cluster.delete_object(FLUX, web()), Err(vec!["foreign-edit-in-transition"]));
    let edited = image("drifted");
    assert_eq!(cluster.update_objects(FLUX, edited, web()), Ok(()), "drift is corrected at any time");
    // A manager may delete the objects of every release that it may uninstall.
    for (holder, seconds) in [(FLUX, 0), (FLEET, 60), ("alice", STALE)] {
        let (mut cluster, record) = operation(holder, "pending-upgrade", seconds);
        assert_eq!(cluster.delete_object(FLUX, web()), Ok(()), "{holder}");
        assert_eq!(cluster.update(FLUX, &record, &record.to("uninstalling")), Ok(()), "{holder}");
        assert_eq!(cluster.delete_object(FLUX, web()), Ok(()), "{holder}");
    }
}

#[test]
fn started_by_managers_covers_deletions_of_declared_objects() {
    let mut cluster = Cluster::with_policy("rules:\n  unusual-create: {startedBy: managers}\n");
    let record = record(5, "deployed", "");
    cluster.given_record(&record);
    for user in ["alice", CI] {
        assert_eq!(cluster.update(user, &record, &record.to("uninstalling")), Err(vec!["unusual-create"]), "{user}");
        assert_eq!(cluster.delete_object(user, web()), Err(vec!["unusual-create", "manual-delete"]), "{user}");
    }
    assert_eq!(cluster.update(FLUX, &record, &record.to("uninstalling")), Ok(()));
    assert_eq!(cluster.delete_object(FLUX, web()), Ok(()));
}

#[test]
fn an_uninstall_of_an_older_record_waits_for_the_newest() {
    let (mut cluster, _) = operation("alice", "pending-upgrade", 60);
    let below = rec(5, "deployed");
    assert_eq!(cluster.update("bob", &below, &below.to("uninstalling")), Err(vec!["concurrent-operation"]));
}

#[test]
fn only_its_controller_resumes_a_superseded_record() {
    let superseded = |holder: &str| match holder {
        "" => rec(5, "superseded"),
        holder => rec(5, "superseded").annotated("interlock.dev/holder", holder),
    };
    for to in ["deployed", "failed"] {
        for (holder, user, above, open) in [
            (FLEET, FLEET, None, true),
            (CI, CI, None, true),
            (FLEET, CI, None, false),
            ("alice", "alice", None, false),
            // The stamp is lost, or the record is older than Interlock.
            ("", CI, None, true),
            ("", "alice", None, false),
            (FLEET, FLEET, Some(rec(6, "deployed")), false),
            (FLEET, FLEET, Some(rec(6, "failed")), false),
        ] {
            let mut cluster = Cluster::new();
            let record = superseded(holder);
            cluster.given_record(&record);
            above.iter().for_each(|above| cluster.given_record(above));
            let verdict = cluster.update(user, &record, &record.to(to));
            let wanted = if open { Ok(()) } else { Err(vec!["illegal-transition"]) };
            assert_eq!(verdict, wanted, "{to}: {user} over {holder}'s under {above:?}");
        }
    }
}

#[test]
fn what_is_refused_in_one_write_is_refused_in_two() {
    // Superseding a record by hand, which helm-mapkubeapis also does, and then deleting it.
    let deployed = rec(5, "deployed");
    let mut cluster = Cluster::new();
    cluster.given_record(&deployed);
    assert_eq!(cluster.update("alice", &deployed, &deployed.to("superseded")), Ok(()));
    assert_eq!(cluster.delete("alice", &deployed.to("superseded")), Err(vec!["record-deletion"]));
    // Marking it as failed.
    let mut cluster = Cluster::new();
    assert_eq!(cluster.create("alice", &rec(1, "pending-install")), Ok(()));
    assert_eq!(cluster.update("alice", &rec(1, "pending-install"), &rec(1, "deployed")), Ok(()));
    let (deployed, failed) = (rec(1, "deployed"), rec(1, "failed"));
    assert_eq!(cluster.update("bob", &deployed, &failed), Err(vec!["illegal-transition"]), "it is not his");
    cluster.later(60);
    assert_eq!(cluster.update("alice", &deployed, &failed), Err(vec!["illegal-transition"]), "it has ended long ago");
    // A cancelled install marks the record as failed that it has just promoted.
    cluster.later(-59);
    assert_eq!(cluster.update("alice", &deployed, &failed), Ok(()));
}

#[test]
fn owners_finalizers_and_immutable_cannot_be_added_to_records() {
    let record = rec(5, "deployed");
    let with = |pointer: &str, value: serde_json::Value| {
        let mut object = record.object();
        match pointer {
            "immutable" => object["immutable"] = value,
            member => object["metadata"][member] = value,
        }
        object
    };
    let nobody = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "0"}]);
    for (pointer, value, text) in [
        ("ownerReferences", nobody, "an owner reference"),
        ("finalizers", json!(["example.com/keep"]), "a finalizer"),
        ("immutable", json!(true), "immutable: true"),
    ] {
        let bound = with(pointer, value);
        let mut cluster = Cluster::new();
        cluster.given_record(&record);
        for user in ["alice", CI] {
            let found = cluster.messages_for(user, record.object(), bound.clone());
            assert!(found.contains(text) && found.contains("[record-tampering]"), "{user}: {found}");
        }
        assert_eq!(cluster.messages_for("alice", bound.clone(), bound.clone()), "", "it is there already");
        assert_eq!(cluster.messages_for("alice", bound, record.object()), "", "helm drops it");
    }
}
