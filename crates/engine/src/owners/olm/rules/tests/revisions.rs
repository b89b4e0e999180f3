//! Revisions of extensions without Helm records.

use serde_json::{Value, json};

use super::{OPERATOR, extension, index};
use crate::owners::olm::{MIGRATED_LABEL, OWNER_NAME_LABEL};
use crate::release::stamps::HOLDER;
use crate::rules::tests::scenario::{Cluster, Verdict, rec};

const CI: &str = "system:serviceaccount:ci:deployer";
const FROZEN: &str =
    "freezes: [{name: sale, reason: the sale, timeZone: UTC, from: 2026-01-01, to: 2027-01-01, namespaces: [shop]}]\n";

fn revision(number: u32, state: &str) -> Value {
    json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
        "metadata": {"name": format!("web-{number}"), "labels": {OWNER_NAME_LABEL: "web"}},
        "spec": {"lifecycleState": state},
    })
}

/// The extension with these revisions in its status.
fn with_revisions(names: &[&str]) -> Value {
    let mut object = extension("2.0.0", &[]);
    let revisions: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
    object["status"] = json!({"activeRevisions": revisions});
    object
}

fn refused(rule: &'static str) -> Verdict {
    Err(vec![rule])
}

#[test]
fn a_revision_that_somebody_else_edits_is_warned_of() {
    let mut cluster = Cluster::new();
    for user in ["alice", CI] {
        let text = cluster.messages_for(user, revision(1, "Active"), revision(1, "Archived"));
        let wanted = "ClusterObjectSet web-1 (Active) is a revision of ClusterExtension web, and is edited by hand.";
        assert!(text.contains(wanted) && text.contains("[extension-safety]"), "{user}: {text}");
    }
    assert_eq!(cluster.messages_for(OPERATOR, revision(1, "Active"), revision(1, "Archived")), "");
    assert_eq!(cluster.messages_for("alice", revision(1, "Active"), revision(1, "Active")), "");
    let mut foreign = revision(1, "Active");
    foreign["metadata"]["labels"] = json!({});
    assert_eq!(cluster.messages_for("alice", foreign, revision(1, "Archived")), "");
}

#[test]
fn the_only_revision_of_a_protected_extension_stays() {
    let without_label = || {
        let mut object = revision(2, "Active");
        object["metadata"]["labels"] = json!({});
        object
    };
    // The policy knows the extension by the namespace of its objects.
    let policy = "protected: {namespaces: [shop]}\nrules: {extension-safety: {mode: 'off'}}\n";
    for (stored, listed, goes) in [
        (vec![revision(2, "Active")], vec!["web-2"], false),
        (vec![revision(2, "Active")], vec![], false),
        // OLM rolls out the next one, or has archived the other one.
        (vec![revision(2, "Active"), revision(3, "Active")], vec!["web-2", "web-3"], true),
        (vec![revision(2, "Active"), revision(1, "Archived")], vec!["web-1", "web-2"], false),
        (vec![revision(2, "Active")], vec!["web-2", "web-3"], false),
        // Not a revision of it.
        (vec![revision(2, "Active")], vec!["web-5"], true),
    ] {
        for user in ["alice", CI, OPERATOR] {
            let mut cluster = Cluster::with_policy(policy);
            stored.iter().for_each(|object| cluster.given(object.clone()));
            cluster.given(with_revisions(&listed));
            let archived = cluster.update_objects(user, revision(2, "Active"), revision(2, "Archived"));
            assert_eq!(archived.is_ok(), goes || user == OPERATOR, "{user} {listed:?}: {archived:?}");
            let deleted = cluster.delete_object(user, revision(2, "Active"));
            assert_eq!(deleted, if goes { Ok(()) } else { refused("protected-release") }, "{user} {listed:?}");
        }
    }
    let mut cluster = Cluster::with_policy(policy);
    cluster.given(with_revisions(&["web-2"]));
    assert_eq!(cluster.delete_object("alice", without_label()), refused("protected-release"));
    // The extension itself goes.
    let mut dying = with_revisions(&["web-2"]);
    dying["metadata"]["deletionTimestamp"] = "2026-11-21T09:59:00Z".into();
    cluster.given(dying);
    assert_eq!(cluster.delete_object("alice", revision(2, "Active")), Ok(()));
    // The annotation of the extension, without a policy.
    let mut cluster = Cluster::new();
    let mut annotated = with_revisions(&["web-2"]);
    annotated["metadata"]["annotations"] = json!({"interlock.dev/protected": "true"});
    cluster.given(annotated);
    let text = cluster.messages_for("alice", revision(2, "Active"), revision(2, "Archived"));
    assert!(text.contains("the only revision of ClusterExtension web: its objects would go with it"), "{text}");
}

#[test]
fn no_revision_starts_in_a_freeze() {
    let mut cluster = Cluster::with_policy(FROZEN);
    cluster.given(with_revisions(&["web-1"]));
    assert_eq!(cluster.create_object(OPERATOR, revision(2, "Active")), refused("freeze"));
    let mut migrated = revision(1, "Active");
    migrated["metadata"]["labels"][MIGRATED_LABEL] = "true".into();
    assert_eq!(cluster.create_object(OPERATOR, migrated), Ok(()));
    // OLM finishes what it began. A person does not remove what is in use.
    assert_eq!(cluster.update_objects(OPERATOR, revision(1, "Active"), revision(1, "Archived")), Ok(()));
    let removed = cluster.update_objects("alice", revision(1, "Active"), revision(1, "Archived"));
    assert_eq!(removed, Err(vec!["freeze", "extension-safety"]));
    // Of another extension.
    let mut other = revision(2, "Active");
    other["metadata"]["labels"][OWNER_NAME_LABEL] = "other".into();
    assert_eq!(cluster.create_object(OPERATOR, other), Ok(()));
}

#[test]
fn people_delete_no_extension_in_a_freeze() {
    let mut cluster = Cluster::with_policy(FROZEN);
    cluster.given(index(&rec(1, "deployed").annotated(HOLDER, OPERATOR), &[]));
    cluster.given(extension("2.0.0", &[]));
    assert_eq!(cluster.delete_object("alice", extension("2.0.0", &[])), refused("freeze"));
    assert_eq!(cluster.delete_object(CI, extension("2.0.0", &[])), Ok(()));
    let text = cluster.findings("alice", Some(extension("2.0.0", &[])), None).concat();
    assert!(text.contains("OLM would uninstall it: the freeze sale is in force until 2027-01-01"), "{text}");
}
