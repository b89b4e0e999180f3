//! OLM: records in several Secrets, extensions, and the records that the new runtime leaves behind.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

mod revisions;

use crate::effort::Effort;
use crate::evidence::{CandidateRecords, Freshness, Query, Question};
use crate::facts::{Facts, RecordBodies, RequestObjects};
use crate::owners::olm::{OBJECT_SET_KINDS, OWNER_NAME_LABEL};
use crate::policy::Policy;
use crate::release::record::{BUNDLE_VERSION_LABEL, PACKAGE_NAME_LABEL};
use crate::release::stamps::{CHART, ENDED, HOLDER, INTERRUPTED};
use crate::release::{Entry, History, Stamps, Status, Storage};
use crate::review::Review;
use crate::rules::tests::deletion::deployment;
use crate::rules::tests::objects::{image, record, web};
use crate::rules::tests::scenario::{Cluster, Rec, decided, rec};

const OPERATOR: &str = "system:serviceaccount:olmv1-system:operator-controller-controller-manager";
const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

/// The same record in OLM's format, with its additional parts in these Secrets.
pub(crate) fn index(record: &Rec, parts: &[&str]) -> Value {
    let mut object = record.object();
    let inner = STANDARD.decode(object["data"]["release"].as_str().unwrap()).unwrap();
    let extra = STANDARD.encode(json!(parts).to_string());
    object["data"] = json!({"chunk": String::from_utf8(inner).unwrap(), "extraChunks": extra});
    object["type"] = "operatorframework.io/index.v1".into();
    object["metadata"]["labels"]["owner"] = "operator-controller".into();
    object["metadata"]["labels"]["type"] = "index".into();
    object["metadata"]["labels"]["key"] = record.name().into();
    object
}

fn part(name: &str, index: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "operatorframework.io/chunk.v1", "immutable": true,
        "metadata": {
            "name": name, "namespace": "shop", "labels": {"owner": "operator-controller", "key": index, "type": "chunk"},
        },
        "data": {"chunk": STANDARD.encode("x")},
    })
}

/// An account in the namespace of the records, like OLM's own.
const AT_HOME: &str = "system:serviceaccount:shop:operator";
const ELSEWHERE: &str = "system:serviceaccount:ci:deployer";

#[test]
fn only_keepers_may_delete_a_part_of_a_live_record() {
    let record = rec(1, "deployed").annotated(HOLDER, "system:serviceaccount:olm:operator");
    let mut cluster = Cluster::new();
    cluster.given(index(&record, &["listed"]));
    let listed = part("listed", &record.name());
    for user in ["alice", ELSEWHERE, AT_HOME] {
        assert_eq!(cluster.delete_object(user, listed.clone()), Err(vec!["record-deletion"]), "{user}");
    }
    for user in [OPERATOR, COLLECTOR, "system:serviceaccount:olm:operator"] {
        assert_eq!(cluster.delete_object(user, listed.clone()), Ok(()), "{user}");
    }
    assert_eq!(cluster.delete_object("alice", part("left-over", &record.name())), Ok(()));
    assert_eq!(cluster.delete_object("alice", part("listed", "sh.helm.release.v1.gone.v1")), Ok(()));
    assert_eq!(cluster.delete_object("alice", part("listed", "no-record")), Ok(()));
    // The stamp is lost. An account of the record's namespace may be OLM's; others are not.
    let mut unstamped = Cluster::new();
    unstamped.given(index(&rec(1, "deployed"), &["listed"]));
    for user in [AT_HOME, OPERATOR] {
        assert_eq!(unstamped.delete_object(user, listed.clone()), Ok(()), "{user}");
    }
    for user in ["alice", ELSEWHERE] {
        assert_eq!(unstamped.delete_object(user, listed.clone()), Err(vec!["record-deletion"]), "{user}");
    }
    let mut dying = listed.clone();
    dying["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z".into();
    assert_eq!(cluster.delete_object("alice", dying), Ok(()));
}

/// The name of a part as OLM generates it: the name of the index, and a hash.
fn hashed(record: &Rec) -> String {
    format!("{}-abcdefghijk16", record.name())
}

#[test]
fn a_part_without_its_labels_and_type_is_still_a_part() {
    let record = rec(1, "deployed").annotated(HOLDER, OPERATOR);
    let name = hashed(&record);
    let mut cluster = Cluster::new();
    cluster.given(index(&record, &[&name]));
    let mut bare = part(&name, "");
    bare["metadata"]["labels"] = json!({});
    bare["type"] = "Opaque".into();
    assert_eq!(cluster.delete_object("alice", bare.clone()), Err(vec!["record-deletion"]));
    // OLM reads a part only by its name.
    assert_eq!(cluster.create_object("alice", bare.clone()), Err(vec!["record-tampering"]));
    for user in ["alice", ELSEWHERE] {
        bare["metadata"]["name"] = "settings".into();
        assert_eq!(cluster.create_object(user, bare.clone()), Ok(()), "{user}");
    }
}

#[test]
fn parts_are_written_by_who_keeps_the_record() {
    let record = rec(1, "deployed").annotated(HOLDER, "system:serviceaccount:olm:operator");
    let name = hashed(&record);
    let (listed, other) = (part(&name, &record.name()), part("other", &record.name()));
    let mut cluster = Cluster::new();
    cluster.given(index(&record, &[&name]));
    for (created, user, verdict) in [
        (&listed, "alice", Err(vec!["record-tampering"])),
        (&listed, ELSEWHERE, Err(vec!["record-tampering"])),
        (&listed, AT_HOME, Err(vec!["record-tampering"])),
        // OLM's next write could collide with it.
        (&other, "alice", Err(vec!["record-tampering"])),
        (&part(&hashed(&rec(2, "deployed")), ""), "alice", Err(vec!["record-tampering"])),
        (&listed, OPERATOR, Ok(())),
        (&listed, "system:serviceaccount:olm:operator", Ok(())),
        (&listed, "system:serviceaccount:velero:velero", Ok(())),
    ] {
        assert_eq!(cluster.create_object(user, created.clone()), verdict, "{user} {created}");
    }
    let edited = |edit: fn(&mut Value)| {
        let mut edited = listed.clone();
        edit(&mut edited);
        edited
    };
    for (edit, pointer) in [
        (edited(|part| part["metadata"]["labels"]["key"] = "other".into()), "label key"),
        (edited(|part| part["metadata"]["labels"]["type"] = "x".into()), "label type"),
        (edited(|part| part["metadata"]["labels"] = json!({})), "label owner"),
        (edited(|part| part["metadata"]["finalizers"] = json!(["a/b"])), "finalizers"),
        (edited(|part| part["metadata"]["ownerReferences"] = json!([{"uid": "gone"}])), "owner"),
        (edited(|part| part["data"]["chunk"] = "eQ==".into()), "data"),
    ] {
        let text = cluster.messages_for("alice", listed.clone(), edit.clone());
        assert!(text.contains(&format!("Cannot change the {pointer} of Secret shop/{name}")), "{text}");
        assert_eq!(cluster.update_objects("alice", listed.clone(), edit.clone()), Err(vec!["record-tampering"]));
        assert_eq!(cluster.update_objects(OPERATOR, listed.clone(), edit.clone()), Ok(()));
        // No record lists it.
        let free = |mut part: Value| {
            part["metadata"]["name"] = "other".into();
            part
        };
        assert_eq!(cluster.update_objects("alice", free(listed.clone()), free(edit)), Ok(()));
    }
    // Encrypting all Secrets with a new key replaces each one unchanged. Labels that OLM does not read are free.
    assert_eq!(cluster.update_objects("alice", listed.clone(), listed.clone()), Ok(()));
    let labelled = edited(|part| part["metadata"]["labels"]["team"] = "a".into());
    assert_eq!(cluster.update_objects("alice", listed.clone(), labelled), Ok(()));
}

#[test]
fn what_is_stored_in_parts_is_changed_by_its_keeper_only() {
    let holder = "system:serviceaccount:olm:operator";
    let stamped = |status| rec(1, status).annotated(HOLDER, holder);
    let before = index(&stamped("deployed"), &["a", "b"]);
    for (what, after) in [
        ("order", index(&stamped("deployed"), &["b", "a"])),
        ("parts", index(&stamped("deployed"), &["a"])),
        ("complete", index(&stamped("deployed"), &[])),
        ("content", index(&Rec { manifest: "kind: Evil\n", ..stamped("deployed") }, &["a", "b"])),
        ("status", index(&stamped("superseded"), &["c"])),
    ] {
        for (user, allowed) in
            [("alice", false), (ELSEWHERE, false), (AT_HOME, false), (OPERATOR, true), (holder, true)]
        {
            let verdict = Cluster::new().update_objects(user, before.clone(), after.clone());
            assert_eq!(verdict.is_ok(), allowed, "{what} by {user}: {verdict:?}");
        }
    }
    let complete = index(&stamped("deployed"), &[]);
    assert!(Cluster::new().update_objects("alice", complete.clone(), before.clone()).is_err());
    let mut unlisted = complete.clone();
    unlisted["data"].as_object_mut().unwrap().remove("extraChunks");
    assert_eq!(Cluster::new().update_objects("alice", complete, unlisted), Err(vec!["record-tampering"]));
    // The record is older than Interlock.
    let unstamped = |status| index(&rec(1, status), &["a"]);
    for (user, allowed) in [("alice", false), (ELSEWHERE, false), (AT_HOME, true), (OPERATOR, true)] {
        let verdict = Cluster::new().update_objects(user, unstamped("deployed"), unstamped("superseded"));
        assert_eq!(verdict.is_ok(), allowed, "{user}: {verdict:?}");
    }
}

#[test]
fn the_labels_that_olm_needs_cannot_be_changed() {
    let record = rec(1, "deployed").annotated(HOLDER, OPERATOR);
    for parts in [&[][..], &["a"]] {
        let before = index(&record, parts);
        for (label, value) in
            [("type", json!("x")), ("type", json!(null)), ("key", json!("other")), ("key", json!(null))]
        {
            let mut after = before.clone();
            after["metadata"]["labels"][label] = value.clone();
            if value.is_null() {
                after["metadata"]["labels"].as_object_mut().unwrap().remove(label);
            }
            let verdict = Cluster::new().update_objects("alice", before.clone(), after.clone());
            assert!(verdict.is_err_and(|rules| rules.contains(&"record-tampering")), "{label} {value}");
            // A repair, alone or together with OLM's own write.
            assert_eq!(
                Cluster::new().update_objects("alice", after.clone(), before.clone()),
                Ok(()),
                "{label} {value}"
            );
            let written = index(&record.to("superseded"), parts);
            assert_eq!(Cluster::new().update_objects(OPERATOR, after, written), Ok(()), "{label} {value}");
        }
    }
    let mut foreign = index(&rec(2, "pending-upgrade"), &[]);
    foreign["metadata"]["labels"]["key"] = record.name().into();
    assert_eq!(Cluster::new().create_object(OPERATOR, foreign), Err(vec!["record-integrity"]));
}

/// OLM died while it rewrote the parts. One such record blocks its extension.
#[test]
fn a_record_with_missing_parts_says_so_and_can_be_deleted() {
    let (gone, there) = (hashed(&rec(1, "deployed")), format!("{}-bbbbbbbbbbbbb", rec(1, "deployed").name()));
    let broken = |status| index(&rec(1, status).annotated(HOLDER, OPERATOR), &[&gone, &there]);
    let with_part = || {
        let mut cluster = Cluster::new();
        cluster.given(part(&there, &rec(1, "deployed").name()));
        cluster
    };
    let mut cluster = with_part();
    cluster.given(broken("deployed"));
    cluster.given(index(&rec(2, "pending-upgrade").annotated(HOLDER, OPERATOR), &[]));
    assert_eq!(cluster.delete_object("alice", broken("deployed")), Err(vec!["record-deletion"]));
    let text = cluster.findings("alice", Some(broken("deployed")), None).concat();
    assert!(text.contains(&format!("its part {gone} is missing, and the release is pending-upgrade")), "{text}");
    assert!(text.contains("`kubectl delete secret -n shop sh.helm.release.v1.web.v1`"), "{text}");
    cluster.later(16 * 60);
    assert_eq!(cluster.delete_object("alice", broken("deployed")), Ok(()));
    // While all parts exist, it is the deployed record.
    let mut cluster = with_part();
    cluster.given(broken("deployed"));
    cluster.given(part(&gone, &rec(1, "deployed").name()));
    assert_eq!(cluster.delete_object("alice", broken("deployed")), Err(vec!["record-deletion"]));
    // At rest, only for as long as its parts may still be written.
    let mut cluster = with_part();
    let mut written = broken("deployed");
    written["metadata"]["annotations"][ENDED] = cluster.now.to_string().into();
    cluster.given(written.clone());
    assert_eq!(cluster.delete_object("alice", written.clone()), Err(vec!["record-deletion"]));
    cluster.later(31);
    assert_eq!(cluster.delete_object("alice", written), Ok(()));
    // A first install that died.
    let mut cluster = with_part();
    cluster.given(broken("pending-install"));
    let text = cluster.findings("alice", Some(broken("pending-install")), None).concat();
    assert!(text.contains("counts as stuck after 15 min"), "{text}");
    cluster.later(16 * 60);
    assert_eq!(cluster.delete_object("alice", broken("pending-install")), Ok(()));
}

#[test]
fn a_part_of_an_unreadable_record_is_undecided() {
    let mut broken = index(&rec(1, "deployed"), &["listed"]);
    broken["data"]["extraChunks"] = "?".into();
    let mut cluster = Cluster::new();
    cluster.given(broken);
    assert_eq!(cluster.delete_object("alice", part("listed", &rec(1, "deployed").name())), Ok(()));
}

fn extension(version: &str, channels: &[&str]) -> Value {
    json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": "web"},
        "spec": {
            "namespace": "shop", "serviceAccount": {"name": "installer"},
            "source": {"sourceType": "Catalog", "catalog": {"packageName": "web", "version": version, "channels": channels}},
        },
    })
}

fn with_record(status: &'static str) -> Cluster {
    let record =
        rec(2, status).annotated("interlock.dev/chart", "web-2.0.0").annotated("interlock.dev/holder", OPERATOR);
    let mut cluster = Cluster::new();
    cluster.given(index(&rec(1, "deployed"), &[]));
    cluster.given(index(&record, &[]));
    cluster
}

/// Whether another version is refused, given this status of the newest record in the cache and at the API server.
fn is_refused_by(cached: Status, live: Status) -> bool {
    let request = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "UPDATE", "name": "web", "userInfo": {"username": "alice"},
            "kind": {"group": "olm.operatorframework.io", "version": "v1", "kind": "ClusterExtension"},
            "resource": {"group": "olm.operatorframework.io", "version": "v1", "resource": "clusterextensions"},
            "oldObject": extension("2.0.0", &[]), "object": extension("3.0.0", &[]),
        },
    });
    let body = serde_json::to_vec(&request).unwrap();
    let review = Review::parse(&body).unwrap();
    let (objects, bodies) = (RequestObjects::read(&review.request).unwrap(), RecordBodies::default());
    let effort = Effort::of_review();
    let facts = Facts::of(&review.request, &objects, &bodies, &effort);
    let candidate = |status| {
        let mut stamps = Stamps::default();
        stamps.set(CHART, "web-2.0.0".to_owned());
        stamps.set(HOLDER, OPERATOR.to_owned());
        let history = History::new(vec![Entry { stamps, ..Entry::of_web(2, status) }]);
        vec![CandidateRecords {
            storage: Storage::Index,
            namespace: "olmv1-system".into(),
            history,
            held_for_origin: false,
        }]
    };
    let judged = decided(&facts, &Policy::shipped().unwrap(), |query| match query {
        Query::Extension(it) => it.answered(candidate(if it.freshness == Freshness::Cached { cached } else { live })),
        Query::Overrides(it) => it.answered(Vec::new()),
        query => panic!("{query:?}"),
    });
    judged.iter().any(|it| it.refuses)
}

#[test]
fn a_pending_operation_is_confirmed_by_the_api_server() {
    use Status::{Deployed, PendingUpgrade};
    assert!(is_refused_by(PendingUpgrade, PendingUpgrade));
    assert!(!is_refused_by(PendingUpgrade, Deployed), "the cache lags behind");
    assert!(!is_refused_by(Deployed, PendingUpgrade), "nothing is asked for an ordinary edit");
}

#[test]
fn a_version_cannot_change_while_an_operation_is_pending() {
    let mut cluster = with_record("pending-upgrade");
    let old = extension("1.x", &["stable"]);
    for new in [extension("3.0.0", &["stable"]), extension("1.x", &["candidate"]), extension("", &["stable"])] {
        let verdict = cluster.update_objects("alice", old.clone(), new.clone());
        assert_eq!(verdict, Err(vec!["extension-change-while-pending"]), "{new}");
    }
    let text = cluster.messages_for("alice", old.clone(), extension("3.0.0", &["stable"]));
    assert!(
        text.contains("its operation to web-2.0.0 is pending-upgrade, revision 2, held by system:serviceacc"),
        "{text}"
    );
    assert!(text.contains("If it is stuck, run `interlock unstick shop/web`"), "{text}");
    // Recovery starts with a pin to the pending version.
    for pinned in ["2.0.0", "v2.0.0", "=2.0.0", "= v2.0.0", ">=2.0.0 <2.0.1", "2.0.0 - 2.0.0", ">=2.0.0, <=2.0.0"] {
        assert_eq!(cluster.update_objects("alice", old.clone(), extension(pinned, &["stable"])), Ok(()), "{pinned}");
    }
    for other in
        ["", "1.x", "v2", "2.0", "~2.0.0", "3.0.0", "2.0.0-rc.1", "2.0.0 || 3.0.0", ">=2.0.0", "latest", "2.0.0+1"]
    {
        let unpinned = cluster.update_objects("alice", extension("1.5.0", &[]), extension(other, &[]));
        assert_eq!(unpinned, Err(vec!["extension-change-while-pending"]), "{other}");
    }
    // The requested range is the same in another spelling.
    for (from, to) in [("1.x", "1"), ("1.x", ">=1.0.0 <2.0.0"), ("1.x", " 1.x"), ("latest", "latest")] {
        assert_eq!(cluster.update_objects("alice", extension(from, &[]), extension(to, &[])), Ok(()), "{from} {to}");
    }
    let mut annotated = old.clone();
    annotated["spec"]["serviceAccount"]["name"] = "other".into();
    assert_eq!(cluster.update_objects("alice", old.clone(), annotated), Ok(()));
    assert_eq!(cluster.delete_object("alice", old), Ok(()));
}

/// Not only the version, but everything in the source affects the next resolution.
#[test]
fn everything_in_the_source_counts_like_the_version() {
    let mut cluster = with_record("pending-upgrade");
    let with = |version: &str, key: &str, value: Value| {
        let mut object = extension(version, &["stable"]);
        object["spec"]["source"]["catalog"][key] = value;
        object
    };
    let selector = json!({"matchLabels": {"olm.operatorframework.io/metadata.name": "other"}});
    for (key, value) in [
        ("selector", selector),
        ("upgradeConstraintPolicy", "SelfCertified".into()),
        ("channels", json!(["stable", "fast"])),
    ] {
        let change = |cluster: &mut Cluster, version: &str| {
            cluster.update_objects("alice", extension(version, &["stable"]), with(version, key, value.clone()))
        };
        let refused = change(&mut cluster, "1.x").unwrap_err();
        assert_eq!(refused[0], "extension-change-while-pending", "{key}");
        // With a pin to the pending version, nothing else can be resolved.
        assert_eq!(change(&mut cluster, "2.0.0"), Ok(()), "{key}");
        assert_eq!(change(&mut with_record("deployed"), "1.x"), Ok(()), "{key}");
    }
    let default = with("1.x", "upgradeConstraintPolicy", "CatalogProvided".into());
    assert_eq!(cluster.update_objects("alice", extension("1.x", &["stable"]), default), Ok(()));
    let mut image = extension("1.x", &["stable"]);
    image["spec"]["source"] = json!({"sourceType": "Image", "image": {"ref": "registry/web:3"}});
    let moved = cluster.update_objects("alice", extension("1.x", &["stable"]), image);
    assert_eq!(moved, Err(vec!["extension-change-while-pending"]));
}

#[test]
fn a_pin_names_the_pending_build_or_no_build() {
    for (chart, pins, others) in [
        ("web-2.0.0+1", &["2.0.0+1", "2.0.0", "v2.0.0+1"][..], &["2.0.0+2", "2.0.1+1"][..]),
        ("web-2.0.0-rc.1+1", &["2.0.0-rc.1", "2.0.0-rc.1+1"], &["2.0.0", "2.0.0-rc.2", "2.0.0-rc.1+2"]),
        // The name of the package may look like a version.
        ("web-1.0.0-2.0.0", &["2.0.0"], &["1.0.0", "1.0.0-2.0.0"]),
    ] {
        let mut cluster = Cluster::new();
        let pending = rec(1, "pending-install").annotated("interlock.dev/chart", chart);
        cluster.given(index(&pending.annotated("interlock.dev/holder", OPERATOR), &[]));
        let package = |mut object: Value| {
            let package = if chart == "web-1.0.0-2.0.0" { "web-1.0.0" } else { "web" };
            object["spec"]["source"]["catalog"]["packageName"] = package.into();
            object
        };
        let mut change =
            |to: &str| cluster.update_objects("alice", package(extension(">=1", &[])), package(extension(to, &[])));
        pins.iter().for_each(|to| assert_eq!(change(to), Ok(()), "{chart}: {to}"));
        others.iter().for_each(|to| assert!(change(to).is_err(), "{chart}: {to}"));
    }
}

#[test]
fn the_pending_version_is_read_from_the_body_without_a_stamp() {
    let old = extension("1.x", &[]);
    let pending = |labels: Value| {
        let mut cluster = Cluster::new();
        cluster.given(index(&rec(1, "deployed"), &[]));
        let record = Rec { labels, chart_version: "", ..rec(2, "pending-upgrade") };
        let record = record.annotated("interlock.dev/holder", OPERATOR);
        cluster.given(index(&record, &[]));
        cluster
    };
    let bundle = json!({PACKAGE_NAME_LABEL: "web", BUNDLE_VERSION_LABEL: "2.0.0"});
    let mut text = pending(bundle);
    assert_eq!(text.update_objects("alice", old.clone(), extension("2.0.0", &[])), Ok(()));
    let jump = text.update_objects("alice", old.clone(), extension("3.0.0", &[]));
    assert_eq!(jump, Err(vec!["extension-change-while-pending"]));
    // If the version is unknown, a single version is accepted, a range is not.
    assert_eq!(pending(json!({})).update_objects("alice", old.clone(), extension("2.0.0", &[])), Ok(()));
    let range = pending(json!({})).update_objects("alice", old, extension(">=2.0.0", &[]));
    assert_eq!(range, Err(vec!["extension-change-while-pending"]));
}

#[test]
fn a_chart_generated_from_a_bundle_has_no_name() {
    let bundle = |revision: u64, status: &'static str, version: &str| {
        let labels = json!({PACKAGE_NAME_LABEL: "web", BUNDLE_VERSION_LABEL: version});
        Rec { labels, chart_version: "", ..rec(revision, status) }
    };
    let mut cluster = Cluster::new();
    cluster.given(index(&bundle(1, "deployed", "1.0.0"), &[]));
    let second = bundle(2, "pending-upgrade", "2.0.0");
    assert_eq!(cluster.create_object(OPERATOR, index(&second, &[])), Ok(()));
    cluster.given(deployment(10, 10, "True"));
    cluster.later(16 * 60);
    assert_eq!(cluster.delete_object("alice", index(&second, &[])), Ok(()));
    let third = index(&bundle(2, "pending-upgrade", "3.0.0"), &[]);
    assert_eq!(cluster.create_object(OPERATOR, third), Err(vec!["resume-interrupted"]));
    assert_eq!(cluster.create_object(OPERATOR, index(&second, &[])), Ok(()));
    // Without any name there is nothing to compare.
    let nameless = Rec { labels: json!({}), ..bundle(2, "pending-upgrade", "") };
    let mut cluster = Cluster::new();
    cluster.given(index(&bundle(1, "deployed", "1.0.0").annotated(INTERRUPTED, "web-2.0.0@2"), &[]));
    assert_eq!(cluster.create_object(OPERATOR, index(&nameless, &[])), Ok(()));
}

#[test]
fn an_extension_at_rest_may_change() {
    for status in ["deployed", "failed", "superseded"] {
        let verdict = with_record(status).update_objects("alice", extension("2.0.0", &[]), extension("3.0.0", &[]));
        assert_eq!(verdict, Ok(()), "{status}");
    }
    assert_eq!(Cluster::new().update_objects("alice", extension("2.0.0", &[]), extension("3.0.0", &[])), Ok(()));
}

#[test]
fn records_that_an_extension_left_behind_count_no_more() {
    let mut cluster = with_record("pending-upgrade");
    let deployed = index(&rec(1, "deployed"), &[]);
    assert_eq!(cluster.delete_object("alice", deployed.clone()), Err(vec!["record-deletion"]));
    // Authors of revisions can name any extension, and set it as owner.
    for kind in OBJECT_SET_KINDS {
        let owner = json!([{"kind": "ClusterExtension", "name": "web", "uid": "e", "controller": true}]);
        cluster.given(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": kind, "spec": {"lifecycleState": "Active"},
            "metadata": {"name": "web-1", "labels": {OWNER_NAME_LABEL: "web"}, "ownerReferences": owner},
        }));
    }
    let status = |revisions: Value| {
        let mut object = extension("2.0.0", &[]);
        object["status"] = json!({"activeRevisions": revisions});
        object
    };
    for (revisions, left_behind) in [(json!(null), false), (json!([]), false), (json!([{"name": "web-1"}]), true)] {
        let object = status(revisions.clone());
        cluster.given(object.clone());
        let deleted = cluster.delete_object("alice", deployed.clone());
        let mut next = object.clone();
        next["spec"]["source"]["catalog"]["version"] = "3.0.0".into();
        let jump = cluster.update_objects("alice", object.clone(), next);
        assert_eq!((deleted.is_ok(), jump.is_ok()), (left_behind, left_behind), "{revisions}");
        // A status in the same request proves nothing.
        let mut claimed = status(json!([{"name": "web-1"}]));
        claimed["spec"]["source"]["catalog"]["version"] = "3.0.0".into();
        assert_eq!(cluster.update_objects("alice", object, claimed).is_ok(), left_behind, "{revisions}");
        cluster.given(index(&rec(1, "deployed"), &[]));
    }
}

/// Without a listed controller, every service account may write a status.
#[test]
fn a_status_says_nothing_of_a_migration_where_no_listed_controller_exists() {
    let mut migrated = extension("2.0.0", &[]);
    migrated["status"] = json!({"activeRevisions": [{"name": "web-1"}]});
    for (namespace, is_open) in [("olmv1-system", true), ("elsewhere", false)] {
        let mut cluster = Cluster::new();
        cluster.given(migrated.clone());
        cluster.given(json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "operator-controller-controller-manager", "namespace": namespace},
        }));
        cluster.given(index(&rec(1, "deployed"), &[]));
        let deleted = cluster.delete_object("alice", index(&rec(1, "deployed"), &[]));
        assert_eq!(deleted.is_ok(), is_open, "{namespace}: {deleted:?}");
    }
}

#[test]
fn a_helm_release_is_guarded_despite_a_namesake_extension() {
    let mut migrated = extension("2.0.0", &[]);
    migrated["status"] = json!({"activeRevisions": [{"name": "web-1"}]});
    let deployed = rec(1, "deployed");
    let mut cluster = Cluster::new();
    cluster.given_record(&deployed);
    cluster.given(migrated);
    assert_eq!(cluster.delete("alice", &deployed), Err(vec!["record-deletion"]));
}

#[test]
fn a_risk_of_data_loss_is_warned_of_once() {
    let with = |policy: &str, enforcement: &str| {
        let mut object = extension("2.0.0", &[]);
        object["spec"]["source"]["catalog"]["upgradeConstraintPolicy"] = policy.into();
        object["spec"]["install"] = json!({"preflight": {"crdUpgradeSafety": {"enforcement": enforcement}}});
        object
    };
    let safe = || with("CatalogProvided", "Strict");
    let mut cluster = Cluster::new();
    let text = cluster.messages_for("alice", safe(), with("SelfCertified", "None"));
    assert!(
        text.contains("SelfCertified") && text.contains("upgrades custom resource definitions unchecked"),
        "{text}"
    );
    assert_eq!(text.matches("[extension-safety]").count(), 2);
    assert_eq!(cluster.messages_for("alice", with("SelfCertified", "None"), with("SelfCertified", "None")), "");
    assert_eq!(cluster.messages_for("alice", with("SelfCertified", "Strict"), safe()), "");
    assert_eq!(cluster.messages_for("alice", extension("1.0.0", &[]), safe()), "");
    assert_eq!(cluster.update_objects("alice", safe(), with("SelfCertified", "None")), Ok(()));
}

#[test]
fn an_extension_that_cannot_be_parsed_is_undecided() {
    let mut odd = extension("2.0.0", &[]);
    odd["spec"]["source"]["catalog"] = "a later version's".into();
    let mut cluster = Cluster::new();
    assert_eq!(cluster.update_objects("alice", extension("1.0.0", &[]), odd.clone()), Ok(()));
    let text = cluster.messages_for("alice", extension("1.0.0", &[]), odd);
    assert!(text.contains("Could not check ClusterExtension shop/web: it cannot be parsed"), "{text}");
}

#[test]
fn the_labels_of_olm_lead_to_records_in_another_namespace() {
    let mut stored = index(&record(6, "deployed", OPERATOR), &[]);
    stored["metadata"]["namespace"] = "olmv1-system".into();
    let mut cluster = Cluster::new();
    cluster.given(stored);
    let labelled = |mut object: Value, extension: &str| {
        object["metadata"]["labels"][OWNER_NAME_LABEL] = extension.into();
        object
    };
    assert_eq!(cluster.messages_for("bob", web(), image("2")), "", "nothing leads there");
    assert_eq!(cluster.messages_for("bob", labelled(web(), "other"), labelled(image("2"), "other")), "");
    let text = cluster.messages_for("bob", labelled(web(), "web"), labelled(image("2"), "web"));
    assert!(text.contains("is managed by release olmv1-system/web (revision 6, deployed)"), "{text}");
    assert_eq!(cluster.messages_for(OPERATOR, labelled(web(), "web"), labelled(image("2"), "web")), "");
}

/// Refusals over OLM's records name no command that OLM does not have.
#[test]
fn refusals_over_records_of_olm_use_its_terms() {
    const ENFORCED: &str =
        "rules:\n  pending-recovery: {mode: enforce, rollForwardOnly: true}\n  concurrent-operation: {mode: enforce}\n";
    let stamped = |revision, status| rec(revision, status).annotated(HOLDER, OPERATOR);
    let record = |revision, status| index(&stamped(revision, status), &[]);
    let noted = |status| index(&stamped(1, status).annotated(INTERRUPTED, "web-2.0.0@2"), &[]);
    let edited = |edit: fn(&mut Value)| {
        let mut edited = record(1, "deployed");
        edit(&mut edited);
        edited
    };
    let in_flight = || vec![record(1, "superseded"), record(2, "pending-upgrade")];
    let mut text = String::new();
    for (given, old, new) in [
        (vec![record(1, "deployed")], Some(record(1, "deployed")), None),
        (vec![record(1, "superseded")], Some(record(1, "superseded")), None),
        (in_flight(), Some(record(1, "superseded")), None),
        (in_flight(), Some(record(2, "pending-upgrade")), None),
        (in_flight(), None, Some(record(3, "pending-upgrade"))),
        (in_flight(), None, Some(record(3, "pending-rollback"))),
        (in_flight(), Some(record(2, "pending-upgrade")), Some(record(2, "failed"))),
        (in_flight(), Some(record(2, "pending-upgrade")), Some(record(2, "superseded"))),
        (in_flight(), Some(record(2, "pending-upgrade")), Some(record(2, "uninstalling"))),
        (vec![record(1, "deployed")], None, Some(record(2, "pending-install"))),
        (vec![record(1, "deployed")], None, Some(record(2, "deployed"))),
        (vec![noted("deployed")], None, Some(record(2, "pending-upgrade"))),
        (vec![noted("superseded")], None, Some(record(2, "pending-upgrade"))),
        (vec![record(1, "failed")], None, Some(record(2, "pending-rollback"))),
        (vec![], Some(record(1, "superseded")), Some(record(1, "deployed"))),
        (vec![], Some(record(1, "deployed")), Some(record(1, "pending-upgrade"))),
        (vec![], Some(record(1, "deployed")), Some(edited(|it| it["metadata"]["labels"]["status"] = "failed".into()))),
        (vec![], Some(record(1, "deployed")), Some(edited(|it| it["metadata"]["labels"]["type"] = "x".into()))),
        (vec![], Some(record(1, "deployed")), Some(edited(|it| it["metadata"]["labels"]["name"] = "x".into()))),
        (vec![], Some(record(1, "deployed")), Some(edited(|it| it["metadata"]["finalizers"] = json!(["a/b"])))),
        (vec![], Some(record(1, "deployed")), Some(edited(|it| it["data"] = json!({"chunk": "?"})))),
        (
            vec![],
            Some(record(1, "deployed")),
            Some(index(&Rec { manifest: "kind: Evil\n", ..stamped(1, "deployed") }, &[])),
        ),
        (vec![], Some(index(&stamped(1, "deployed"), &["a"])), Some(record(1, "deployed"))),
    ] {
        for age in [0, 16 * 60] {
            let mut cluster = Cluster::with_policy(if age == 0 { ENFORCED } else { "" });
            given.iter().for_each(|object| cluster.given(object.clone()));
            cluster.later(age);
            let found = cluster.findings("alice", old.clone(), new.clone()).concat();
            assert!(!found.is_empty() || age > 0, "{old:?} {new:?}");
            text.push_str(&found);
            text.push('\n');
        }
    }
    for foreign in ["helm", "Helm", "uninstall the", "history", "oll back", "rollback on", "a rollback"] {
        let context = text.lines().find(|line| line.replace("sh.helm.release", "").contains(foreign));
        assert_eq!(context, None, "{foreign}");
    }
}

#[test]
fn a_person_creates_no_record_of_olm_but_restores_the_interrupted_one() {
    let create = |user: &str, revision: u64, note: &str| {
        let mut cluster = Cluster::new();
        let mut deployed = index(&rec(1, "deployed"), &[]);
        deployed["metadata"]["annotations"][INTERRUPTED] = note.into();
        cluster.given(deployed);
        cluster.create_object(user, index(&rec(revision, "pending-upgrade"), &[]))
    };
    assert_eq!(create(OPERATOR, 2, ""), Ok(()));
    assert_eq!(create("alice", 2, "shop-1.0.0@2"), Ok(()), "as `interlock unstick --restore` does");
    for (revision, note) in [(2, ""), (2, "shop-2.0.0@2"), (3, "shop-1.0.0@2")] {
        let verdict = create("alice", revision, note);
        assert!(verdict.is_err_and(|rules| rules.contains(&"unusual-create")), "revision {revision}, {note}");
    }
}
