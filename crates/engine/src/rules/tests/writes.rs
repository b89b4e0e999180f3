//! Creations and updates: each refusal is next to a similar write that is allowed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::objects::{record, web};
use super::scenario::{Cluster, Rec, rec, start};
use crate::release::stamps::HOLDER;

const VELERO: &str = "system:serviceaccount:velero:velero";

fn with(records: &[Rec]) -> Cluster {
    let mut cluster = Cluster::new();
    for record in records {
        cluster.given_record(record);
    }
    cluster
}

#[test]
fn a_new_revision_must_be_the_highest_but_may_leave_a_gap() {
    let history = [rec(3, "superseded"), rec(6, "deployed")];
    for revision in [1, 3, 5, 6] {
        let verdict = with(&history).create("alice", &rec(revision, "pending-upgrade"));
        assert_eq!(verdict, Err(vec!["revision-order"]), "{revision}");
    }
    for revision in [7, 9] {
        assert_eq!(with(&history).create("alice", &rec(revision, "pending-upgrade")), Ok(()), "{revision}");
    }
}

#[test]
fn a_release_has_one_operation_across_helms_drivers() {
    let mut cluster = with(&[rec(5, "pending-upgrade")]);
    assert_eq!(cluster.create("bob", &Rec { release: "web.v1", ..rec(1, "pending-install") }), Ok(()));
    let other_driver = Rec { kind: "ConfigMap", ..rec(1, "pending-install") };
    assert_eq!(cluster.create("bob", &other_driver), Err(vec!["concurrent-operation"]));
    assert_eq!(cluster.create("bob", &rec(6, "pending-upgrade")), Err(vec!["concurrent-operation"]));
    // The same objects are deployed, with records in Secrets.
    let live = || {
        let mut cluster = with(&[rec(5, "deployed")]);
        cluster.given(web());
        cluster
    };
    assert_eq!(live().create("bob", &other_driver), Err(vec!["unusual-create"]));
    let text = live().refusal("CREATE", "bob", &other_driver);
    assert!(text.contains("`HELM_DRIVER=secret helm upgrade web CHART -n shop`"), "{text}");
    let upgrade = Rec { kind: "ConfigMap", ..rec(1, "pending-upgrade") };
    assert_eq!(live().create("bob", &upgrade), Err(vec!["unusual-create"]), "of nothing");
    // Records that are left over: what they declare is gone.
    let left_over = with(&[rec(5, "deployed")]).judged("bob", None, other_driver.object());
    assert!(
        left_over.allowed && left_over.warnings.concat().contains("Revision 5 of web in a Secret is deployed"),
        "{left_over:?}"
    );
    let without_workloads = Rec { manifest: "kind: ConfigMap\nmetadata: {name: web}\n", ..rec(5, "deployed") };
    assert_eq!(with(&[without_workloads]).create("bob", &other_driver), Err(vec!["unusual-create"]), "unknown");
    assert_eq!(with(&[rec(5, "uninstalled")]).create("bob", &other_driver), Ok(()));
    assert_eq!(with(&[rec(5, "failed")]).create("bob", &other_driver), Ok(()));
}

#[test]
fn an_edited_status_label_does_not_lock_the_release() {
    let edited = Rec { label: "pending-upgrade", ..rec(5, "deployed") };
    let mut cluster = with(std::slice::from_ref(&edited));
    assert_eq!(cluster.create("alice", &rec(6, "pending-upgrade")), Ok(()));
    let mut cluster = with(std::slice::from_ref(&edited));
    assert_eq!(cluster.create("alice", &rec(6, "pending-rollback")), Ok(()));
}

#[test]
fn configmaps_are_records_too() {
    let running = Rec { kind: "ConfigMap", ..rec(5, "pending-upgrade") };
    let mut cluster = with(std::slice::from_ref(&running));
    let next = Rec { revision: 6, ..running.clone() };
    assert_eq!(cluster.create("bob", &next), Err(vec!["concurrent-operation"]));
    assert_eq!(cluster.update("alice", &running, &running.to("deployed")), Ok(()));
    assert_eq!(cluster.create("bob", &next), Ok(()));
}

/// nelm's lease on the release, which expires at this time.
fn lease(expires: i64) -> Value {
    let lease = json!({"UUID": "x", "ExpireAtTimestamp": expires}).to_string();
    let annotations = json!({crate::rules::records::lease::annotation("web"): lease});
    let metadata = json!({"name": "werf-synchronization", "namespace": "shop", "annotations": annotations});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

#[test]
fn a_live_lease_of_nelm_lets_an_upgrade_pass_an_expired_one_does_not() {
    let mut cluster = with(&[rec(5, "pending-upgrade")]);
    let now = cluster.now.as_second();
    // A lockgate lease is never valid for longer than a minute. A longer one would exempt its author for good.
    for expires in [now - 1, now + 61, i64::MAX] {
        cluster.given(lease(expires));
        assert_eq!(cluster.create("ci", &rec(6, "pending-upgrade")), Err(vec!["concurrent-operation"]));
    }
    cluster.given(lease(now + 10));
    assert_eq!(cluster.create("ci", &rec(6, "pending-upgrade")), Ok(()));
}

#[test]
fn a_nelm_lease_admits_no_writes_by_others() {
    let old = rec(5, "deployed");
    let running = rec(6, "pending-upgrade").annotated("interlock.dev/holder", "ci");
    let leased = || {
        let mut cluster = with(&[old.clone(), running.clone()]);
        cluster.given(lease(cluster.now.as_second() + 10));
        cluster
    };
    assert_eq!(leased().update("bob", &old, &old.to("uninstalling")), Err(vec!["concurrent-operation"]));
    // nelm promotes and supersedes in any order.
    assert_eq!(leased().update("ci", &running, &running.to("deployed")), Ok(()));
    let mut cluster = leased();
    cluster.later(15 * 60);
    cluster.given(lease(cluster.now.as_second() + 10));
    assert_eq!(cluster.update("bob", &running, &running.to("deployed")), Err(vec!["illegal-transition"]));
}

#[test]
fn whatever_helm_would_read_is_a_record_and_a_false_one_where_its_parts_disagree() {
    let helms = rec(99, "pending-upgrade").object();
    let without = |object: &Value, pointer: &str| {
        let mut object = object.clone();
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(member);
        object
    };
    let mut named = helms.clone();
    named["metadata"]["name"] = "innocent".into();
    let mut opaque = named.clone();
    opaque["type"] = "Opaque".into();
    let config_map = Rec { kind: "ConfigMap", ..rec(99, "deployed") }.object();
    let mut named_map = config_map.clone();
    named_map["metadata"]["name"] = "innocent".into();
    let mut cluster = with(&[rec(5, "deployed")]);
    for hidden in [
        named.clone(),
        opaque.clone(),
        without(&opaque, "/metadata/labels/status"),
        without(&without(&opaque, "/metadata/labels/status"), "/metadata/labels/version"),
        without(&opaque, "/metadata/labels/name"),
        without(&opaque, "/data/release"),
        named_map.clone(),
        without(&named_map, "/metadata/labels/status"),
    ] {
        let verdict = cluster.create_object("bob", hidden.clone());
        assert!(verdict.as_ref().is_err_and(|rules| rules.contains(&"record-integrity")), "{hidden}: {verdict:?}");
        // The same in two writes: an ordinary object first, and then the labels.
        let mut plain = without(&hidden, "/metadata/labels");
        plain["type"] = "Opaque".into();
        assert_eq!(cluster.create_object("bob", plain.clone()), Ok(()));
        let verdict = cluster.update_objects("bob", plain, hidden.clone());
        assert!(verdict.as_ref().is_err_and(|rules| rules.contains(&"record-integrity")), "{hidden}: {verdict:?}");
        // Records created while the webhook was unavailable can be deleted again.
        assert_eq!(cluster.delete_object("bob", hidden), Ok(()));
    }
    let owned = without(&without(&opaque, "/metadata/labels/name"), "/data/release");
    assert_eq!(cluster.create_object("bob", owned), Ok(()), "Helm would list it and read nothing");
}

#[test]
fn a_revision_near_the_integer_limit_is_refused() {
    for revision in [i64::MAX as u64, (1 << 31)] {
        let verdict = with(&[rec(5, "deployed")]).create("bob", &rec(revision, "pending-upgrade"));
        assert!(verdict.is_err_and(|rules| rules.contains(&"record-integrity")), "{revision}");
    }
    // The highest number leaves no room for the next, and one jump after the other leads there.
    for (newest, revision, wanted) in [
        (5, (1 << 31) - 1, Err(vec!["revision-order"])),
        (5, 1_006, Err(vec!["revision-order"])),
        (5, 1_005, Ok(())),
        (5, 9, Ok(())),
    ] {
        let verdict = with(&[rec(newest, "deployed")]).create("bob", &rec(revision, "pending-upgrade"));
        assert_eq!(verdict, wanted, "{revision}");
    }
    assert_eq!(with(&[]).create("bob", &rec(1, "pending-install")), Ok(()));
}

/// What Helm writes once, an edit at rest does not change.
#[test]
fn notes_and_times_of_a_record_stay() {
    let edited = |pointer: &str, value: Value, to: &'static str| {
        let old = rec(5, "deployed");
        let mut body = old.to(to).body();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        body.pointer_mut(parent).unwrap()[key] = value;
        let new = Rec { payload: Some(old.encoded(&body)), ..old.to(to) };
        with(std::slice::from_ref(&old)).update("alice", &old, &new)
    };
    let refused = || Err(vec!["record-tampering"]);
    assert_eq!(edited("/info/notes", json!("run this"), "deployed"), refused());
    assert_eq!(edited("/info/first_deployed", json!("2020-01-01T00:00:00Z"), "deployed"), refused());
    assert_eq!(edited("/info/deleted", json!("2026-11-21T10:00:00Z"), "deployed"), refused());
    assert_eq!(edited("/apply_method", json!("ssa"), "deployed"), refused());
    // An uninstall says when it began. Helm 3 writes no moment as an empty text, and drops what only Helm 4 knows.
    assert_eq!(edited("/info/deleted", json!("2026-11-21T10:00:00Z"), "uninstalling"), Ok(()));
    assert_eq!(edited("/info/deleted", json!(""), "deployed"), Ok(()));
}

#[test]
fn a_stranger_does_not_supersede_what_an_operation_replaces() {
    let deployed = rec(5, "deployed");
    let history = [deployed.clone(), rec(6, "pending-upgrade").annotated(HOLDER, "alice")];
    let superseded = deployed.to("superseded");
    assert_eq!(with(&history).update("bob", &deployed, &superseded), Err(vec!["illegal-transition"]));
    assert_eq!(with(&history).update("alice", &deployed, &superseded), Ok(()));
    let mut cluster = with(&history);
    cluster.later(16 * 60);
    assert_eq!(cluster.update("bob", &deployed, &superseded), Ok(()), "stale");
    assert_eq!(with(&history[..1]).update("bob", &deployed, &superseded), Ok(()), "no operation");
}

#[test]
fn an_uninstall_starts_at_the_newest_record() {
    let history = [rec(4, "superseded"), rec(5, "deployed")];
    let verdict = with(&history).update("alice", &history[0], &history[0].to("uninstalling"));
    assert_eq!(verdict, Err(vec!["illegal-transition"]));
    assert_eq!(with(&history).update("alice", &history[1], &history[1].to("uninstalling")), Ok(()));
}

#[test]
fn an_older_object_does_not_become_a_record() {
    let record = Rec { kind: "ConfigMap", ..rec(6, "pending-upgrade") };
    let mut plain = record.object();
    plain["metadata"]["labels"] = json!({});
    let mut cluster = with(&[rec(5, "deployed")]);
    let verdict = cluster.update_objects("bob", plain.clone(), record.object());
    assert!(verdict.is_err_and(|rules| rules.contains(&"unusual-create")));
    assert_eq!(cluster.update_objects(VELERO, plain, record.object()), Ok(()));
}

#[test]
fn only_its_program_edits_the_description_of_a_record_at_rest() {
    const DEPLOYER: &str = "system:serviceaccount:ci:deployer";
    const FLUX: &str = "system:serviceaccount:flux-system:helm-controller";
    let record = rec(5, "deployed").annotated(HOLDER, DEPLOYER);
    let described = Rec { description: "edited".to_owned(), ..record.clone() };
    let mut cluster = with(std::slice::from_ref(&record));
    assert_eq!(cluster.update("alice", &record, &described), Err(vec!["record-tampering"]));
    assert_eq!(cluster.update("system:serviceaccount:ci:robot", &record, &described), Err(vec!["record-tampering"]));
    for program in [DEPLOYER, FLUX] {
        let mut cluster = with(std::slice::from_ref(&record));
        assert_eq!(cluster.update(program, &record, &described), Ok(()), "{program}");
    }
    // A cancelled upgrade marks its record as failed twice, with different descriptions.
    let failed = rec(6, "failed");
    let mut cluster = with(std::slice::from_ref(&failed));
    assert_eq!(cluster.update("alice", &failed, &Rec { description: "again".to_owned(), ..failed.clone() }), Ok(()));
}

#[test]
fn only_restore_tools_create_in_any_status_and_order() {
    let old = rec(2, "superseded");
    let mut cluster = with(&[rec(3, "deployed")]);
    assert_eq!(cluster.create("alice", &old), Err(vec!["revision-order", "unusual-create"]));
    assert_eq!(cluster.create(VELERO, &old.annotated("interlock.dev/holder", "bob")), Ok(()));
    assert_eq!(cluster.create(VELERO, &rec(1, "pending-upgrade")), Ok(()));
}

#[test]
fn only_a_mapped_copy_of_the_newest_record_is_admitted() {
    const DOCUMENT: &str = "---\napiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: web}\n";
    const MAPPED: &str = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";
    const OTHER: &str = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 9}\n";
    let source = Rec { manifest: DOCUMENT, ..rec(7, "superseded") };
    let mapped = Rec { revision: 8, manifest: MAPPED, ..source.to("deployed") };
    let copy = |history: &[Rec], record: &Rec| with(history).create("alice", record);
    assert_eq!(copy(std::slice::from_ref(&source), &mapped), Ok(()));
    let refused = Err(vec!["unusual-create"]);
    assert_eq!(copy(&[rec(6, "deployed"), source.clone()], &mapped), refused, "another is deployed");
    assert_eq!(copy(std::slice::from_ref(&source), &Rec { revision: 9, ..mapped.clone() }), refused, "a gap");
    assert_eq!(
        copy(std::slice::from_ref(&source), &Rec { chart_version: "2.0.0", ..mapped.clone() }),
        refused,
        "another chart"
    );
    assert_eq!(
        copy(std::slice::from_ref(&source), &Rec { config: json!({}), ..mapped.clone() }),
        refused,
        "other values"
    );
    let other = Rec { manifest: OTHER, ..mapped.clone() };
    assert_eq!(copy(std::slice::from_ref(&source), &other), refused, "other objects");
    assert_eq!(copy(&[rec(7, "failed")], &mapped), refused, "the newest was not superseded");
    assert_eq!(copy(&[], &Rec { revision: 1, ..mapped }), refused, "nothing to copy");
}

#[test]
fn a_promotion_under_a_higher_revision_is_refused() {
    let running = rec(5, "pending-upgrade");
    let mut cluster = with(&[running.clone(), rec(6, "deployed")]);
    assert_eq!(cluster.update("alice", &running, &running.to("deployed")), Err(vec!["illegal-transition"]));
    assert_eq!(cluster.update("alice", &running, &running.to("failed")), Ok(()));
}

/// Helm continues with the promotion if it cannot supersede the previous revision. That happens if the release was uninstalled
/// and installed again, with the same revision, since the upgrade read it. `helm set-status NAME deployed` supersedes nothing
/// either.
#[test]
fn a_promotion_leaves_no_other_revision_deployed() {
    for status in ["pending-upgrade", "pending-rollback"] {
        let running = rec(6, status);
        let promoted = |history: &[Rec]| with(history).update("alice", &running, &running.to("deployed"));
        assert_eq!(promoted(&[rec(5, "deployed"), running.clone()]), Err(vec!["illegal-transition"]), "{status}");
        let failed = [rec(4, "deployed"), rec(5, "failed"), running.clone()];
        assert_eq!(promoted(&failed), Err(vec!["illegal-transition"]), "{status}");
        assert_eq!(promoted(&[rec(5, "superseded"), running.clone()]), Ok(()), "{status}");
        assert_eq!(promoted(&[rec(4, "superseded"), rec(5, "failed"), running.clone()]), Ok(()), "{status}");
        // Old clients, and an install over a failed revision, leave an older record deployed for good.
        assert_eq!(promoted(&[rec(3, "deployed"), rec(5, "superseded"), running.clone()]), Ok(()), "{status}");
        // The holder's own write that superseded the older revision was lost.
        let older = Rec { created: start() - SignedDuration::from_secs(60), ..rec(5, "deployed") };
        let mut cluster = with(&[older, record(6, status, "alice")]);
        let lost = cluster.judged("alice", Some(running.object()), running.to("deployed").object());
        assert!(lost.allowed && lost.warnings.concat().contains("stays deployed too"), "{status}: {lost:?}");
        // Only the holder is trusted to have superseded the deployed revision.
        let mut cluster = with(&[rec(3, "deployed"), rec(5, "superseded"), record(6, status, "alice")]);
        cluster.later(15 * 60);
        assert_eq!(
            cluster.update("bob", &running, &running.to("deployed")),
            Err(vec!["illegal-transition"]),
            "{status}"
        );
        assert_eq!(cluster.update("alice", &running, &running.to("deployed")), Ok(()), "{status}");
    }
    let install = rec(6, "pending-install");
    let mut cluster = with(&[rec(4, "deployed"), rec(5, "failed"), install.clone()]);
    assert_eq!(cluster.update("alice", &install, &install.to("deployed")), Ok(()), "helm install --replace");
}

#[test]
fn label_and_body_must_agree_and_a_repair_passes() {
    let record = rec(4, "superseded");
    let mut cluster = with(&[record.clone(), rec(5, "deployed")]);
    let forged = Rec { label: "deployed", ..record.clone() };
    assert_eq!(cluster.update("alice", &record, &forged), Err(vec!["record-integrity", "record-tampering"]));
    // The disagreement already exists. An update may keep or repair it, but not add to it.
    let kept = Rec { hooks_run: 1, ..forged.clone() };
    assert_eq!(cluster.update("alice", &forged, &kept), Ok(()));
    assert_eq!(cluster.update("alice", &forged, &record), Ok(()));
    let worse = Rec { release: "api", ..forged.clone() };
    let mut object = worse.object();
    object["metadata"]["name"] = forged.name().into();
    let verdict = cluster.update_objects("alice", forged.object(), object);
    assert_eq!(verdict, Err(vec!["record-integrity", "record-tampering"]));
}

#[test]
fn labels_of_a_record_cannot_be_removed_or_changed() {
    let record = rec(4, "deployed");
    for (label, value) in
        [("owner", Value::Null), ("name", "api".into()), ("version", "9".into()), ("status", "superseded".into())]
    {
        let mut object = record.object();
        if value.is_null() {
            object["metadata"]["labels"].as_object_mut().unwrap().remove(label);
        } else {
            object["metadata"]["labels"][label] = value;
        }
        let verdict = with(std::slice::from_ref(&record)).update_objects("alice", record.object(), object);
        assert_eq!(verdict, Err(vec!["record-integrity", "record-tampering"]), "{label}");
    }
    let mut labelled = record.object();
    labelled["metadata"]["labels"]["team"] = "blue".into();
    labelled["metadata"]["labels"]["modifiedAt"] = "1".into();
    assert_eq!(with(std::slice::from_ref(&record)).update_objects("alice", record.object(), labelled), Ok(()));
}

#[test]
fn a_wrong_label_may_be_set_to_the_value_in_the_body() {
    let record = rec(4, "deployed");
    for label in ["name", "version", "owner", "status"] {
        let mut wrong = record.object();
        wrong["metadata"]["labels"][label] = "x".into();
        let mut cluster = Cluster::new();
        cluster.given(wrong.clone());
        assert_eq!(cluster.update_objects("alice", wrong, record.object()), Ok(()), "{label}");
    }
}

#[test]
fn turning_a_secret_into_a_record_counts_as_a_creation() {
    let record = rec(1, "deployed");
    let mut plain = record.object();
    plain["metadata"]["labels"] = Value::Null;
    plain["type"] = "Opaque".into();
    let mut made = record.object();
    made["type"] = "Opaque".into();
    let verdict = Cluster::new().update_objects("alice", plain.clone(), made);
    assert_eq!(verdict, Err(vec!["unusual-create", "record-integrity"]));
    let mut renamed = record.object();
    renamed["metadata"]["name"] = "hidden".into();
    let verdict = Cluster::new().create_object("alice", renamed);
    assert_eq!(verdict, Err(vec!["unusual-create", "record-integrity"]));
    assert_eq!(Cluster::new().update_objects("alice", plain.clone(), plain), Ok(()));
}

#[test]
fn only_new_undecodable_bodies_are_refused() {
    let record = rec(1, "pending-install");
    for payload in ["%%%", "", &STANDARD.encode("no base64"), &STANDARD.encode(STANDARD.encode("{}"))] {
        let broken = Rec { payload: Some(payload.to_owned()), ..record.clone() };
        assert_eq!(Cluster::new().create("alice", &broken), Err(vec!["record-integrity"]), "{payload}");
        assert_eq!(
            with(std::slice::from_ref(&record)).update("alice", &record, &broken),
            Err(vec!["record-integrity"])
        );
        let labelled = broken.clone().annotated("note", "x");
        assert_eq!(with(std::slice::from_ref(&broken)).update("alice", &broken, &labelled), Ok(()));
    }
}

#[test]
fn the_content_of_a_record_never_changes() {
    let record = rec(1, "deployed");
    let change = |new: Rec| with(std::slice::from_ref(&record)).update("alice", &record, &new);
    let refused = Err(vec!["record-tampering"]);
    assert_eq!(change(Rec { manifest: "edited", ..record.clone() }), refused);
    assert_eq!(change(Rec { config: json!({"replicas": 9}), ..record.clone() }), refused);
    assert_eq!(change(Rec { chart_version: "1.0.1", ..record.clone() }), refused);
    assert_eq!(change(Rec { lived: "2026-11-21T09:30:00Z", ..record.to("superseded") }), refused, "another life");
    assert_eq!(change(Rec { hooks_run: 7, ..record.clone() }), Ok(()));
    assert_eq!(change(record.to("superseded")), Ok(()));
}

#[test]
fn stamps_come_from_the_mutating_half_and_survive_every_put() {
    let mut cluster = Cluster::new();
    let running = rec(1, "pending-install");
    let forged = running.clone().annotated("interlock.dev/holder", "bob");
    // The mutating half overwrites the stamp, so the forgery has no effect and bob may not unlock.
    assert_eq!(cluster.create("alice", &forged), Ok(()));
    let unlock = cluster.update("bob", &running, &running.to("failed"));
    assert_eq!(unlock, Err(vec!["pending-recovery"]));
    assert_eq!(cluster.update("alice", &running, &Rec { hooks_run: 1, ..running.clone() }), Ok(()));
    assert_eq!(cluster.update("alice", &running, &running.to("failed")), Ok(()));
}

#[test]
fn every_request_by_the_control_plane_is_admitted() {
    let record = rec(4, "deployed");
    for user in [
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:serviceaccount:kube-system:namespace-controller",
        "system:kube-controller-manager",
    ] {
        let mut cluster = with(std::slice::from_ref(&record));
        assert_eq!(cluster.delete(user, &record), Ok(()));
    }
    let impostor = "system:serviceaccount:shop:namespace-controller";
    assert!(with(std::slice::from_ref(&record)).delete(impostor, &record).is_err());
}

#[test]
fn unstamped_writes_are_compared_with_the_expected_stamps() {
    use crate::release::stamps::{STARTED, Stamps};
    use crate::stamp::{Expected, Phase, forged};
    let stamps = |holder: &str, started: &str| {
        Stamps::of(|key| match key {
            HOLDER => Some(holder.to_owned()),
            STARTED => Some(started.to_owned()),
            _ => None,
        })
    };
    let now = super::scenario::start();
    let must = Expected { stamps: stamps("alice", "2026-11-21T10:00:00Z"), phase: Phase::Starts };
    assert_eq!(forged(&must, &Stamps::default(), &stamps("alice", "2026-11-21T09:59:30Z"), None, now), None);
    assert_eq!(forged(&must, &Stamps::default(), &Stamps::default(), None, now), None, "lost, not forged");
    let holder = forged(&must, &Stamps::default(), &stamps("bob", "2026-11-21T10:00:00Z"), None, now);
    assert_eq!(holder, Some((HOLDER, Some("alice".to_owned()))));
    for started in ["2026-11-21T09:00:00Z", "2026-11-21T11:00:00Z", "yesterday"] {
        assert!(
            forged(&must, &Stamps::default(), &stamps("alice", started), None, now)
                .is_some_and(|(key, _)| key == STARTED),
            "{started}"
        );
    }
    let kept = Expected { stamps: stamps("alice", "2026-11-21T08:00:00Z"), phase: Phase::Keeps };
    assert_eq!(forged(&kept, &Stamps::default(), &stamps("alice", "2026-11-21T08:00:00Z"), None, now), None);
    assert!(forged(&kept, &Stamps::default(), &stamps("alice", "2026-11-21T10:00:00Z"), None, now).is_some());
    let none = Expected { stamps: Stamps::default(), phase: Phase::Keeps };
    assert!(forged(&none, &Stamps::default(), &stamps("alice", "x"), None, now).is_some());
}

#[test]
fn where_only_managers_start_operations_nobody_else_does_and_everybody_ends_what_runs() {
    const FLUX: &str = "system:serviceaccount:flux-system:helm-controller";
    const TENANT: &str = "system:serviceaccount:shop:deployer";
    let fresh = || {
        let mut cluster = Cluster::with_policy("rules:\n  unusual-create: {startedBy: managers}\n");
        cluster.given_record(&rec(5, "deployed"));
        cluster
    };
    let uninstalling = rec(5, "uninstalling");
    for user in ["alice", "system:serviceaccount:ci:bot", TENANT] {
        assert_eq!(fresh().create(user, &rec(6, "pending-upgrade")), Err(vec!["unusual-create"]), "{user}");
        assert_eq!(fresh().create(user, &rec(6, "pending-rollback")), Err(vec!["unusual-create"]), "{user}");
        assert_eq!(fresh().update(user, &rec(5, "deployed"), &uninstalling), Err(vec!["unusual-create"]), "{user}");
    }
    for user in [FLUX, VELERO] {
        assert_eq!(fresh().create(user, &rec(6, "pending-upgrade")), Ok(()), "{user}");
        assert_eq!(fresh().update(user, &rec(5, "deployed"), &uninstalling), Ok(()), "{user}");
    }
    let mut cluster = fresh();
    cluster.given(json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"serviceAccountName": "deployer", "releaseName": "web", "chart": {"spec": {"chart": "web"}}},
    }));
    assert_eq!(cluster.create(TENANT, &rec(6, "pending-upgrade")), Ok(()), "the account that a HelmRelease names");
    // Operations that are already running may finish.
    let mut cluster = fresh();
    let running = rec(6, "pending-upgrade").annotated("interlock.dev/holder", "alice");
    cluster.given_record(&running);
    assert_eq!(cluster.update("alice", &rec(5, "deployed"), &rec(5, "superseded")), Ok(()));
    assert_eq!(cluster.update("alice", &running, &running.to("deployed")), Ok(()));
    let message = fresh().refusal("CREATE", "alice", &rec(6, "pending-upgrade"));
    assert!(
        message.contains("Cannot start the upgrade of release shop/web, revision 6: the policy allows only"),
        "{message}"
    );
}
