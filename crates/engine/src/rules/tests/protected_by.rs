//! The stamp on the records outlasts the annotated object that protects the release.

use serde_json::{Value, json};

use super::objects::{record, web};
use super::protected::{annotated, helm_release, refused};
use super::scenario::{Cluster, Rec, Verdict};
use crate::object::ObjectKey;
use crate::release::stamps::PROTECTED_BY;

const CI: &str = "system:serviceaccount:ci:deployer";
const FLUX: &str = "system:serviceaccount:flux-system:helm-controller";
const POLICY: &str = "rules:\n  manual-delete: {mode: 'off'}\n";
const STAMP: &str = "HelmRelease/shop/web/u1";

fn stamped() -> Rec {
    record(5, "deployed", "").annotated(PROTECTED_BY, STAMP)
}

/// A cluster with a deployed, stamped release and these objects.
fn cluster(objects: &[Value]) -> Cluster {
    let mut cluster = Cluster::with_policy(POLICY);
    cluster.given_record(&stamped());
    objects.iter().for_each(|object| cluster.given(object.clone()));
    cluster
}

fn with_uid(mut object: Value, uid: &str) -> Value {
    object["metadata"]["uid"] = uid.into();
    object
}

/// The uninstall, by its first record and by its first object.
fn uninstall(cluster: &mut Cluster) -> [Verdict; 2] {
    let deployed = stamped();
    let by_object = cluster.delete_object(CI, web());
    [by_object, cluster.update(CI, &deployed, &deployed.to("uninstalling"))]
}

#[test]
fn a_protection_outlasts_its_object_and_ends_with_its_annotation() {
    let unannotated = helm_release(json!({}));
    let mut elsewhere = annotated(with_uid(helm_release(json!({"suspend": true, "releaseName": "other"})), "u1"));
    elsewhere["status"] = json!({});
    for (declared, verdict) in [
        (None, refused()),
        (Some(with_uid(unannotated.clone(), "u1")), Ok(())),
        // Another HelmRelease of this name.
        (Some(with_uid(unannotated, "u2")), refused()),
        (Some(elsewhere), refused()),
    ] {
        let mut cluster = cluster(declared.as_slice());
        assert_eq!(uninstall(&mut cluster), [verdict.clone(), verdict], "{declared:?}");
    }
    for stamp in ["HelmRelease/shop/web", "Example/shop/web/u1"] {
        let mut cluster = Cluster::with_policy(POLICY);
        cluster.given_record(&record(5, "deployed", "").annotated(PROTECTED_BY, stamp));
        assert_eq!(cluster.delete_object(CI, web()), Ok(()), "{stamp} is no stamp of Interlock");
    }
    let message = cluster(&[]).findings(CI, Some(web()), None).concat();
    assert!(message.contains("of HelmRelease shop/web (deleted since) protects it"), "{message}");
    assert!(message.contains("`interlock unprotect shop/web`"), "{message}");
}

#[test]
fn a_new_record_inherits_the_stamp_before_the_old_one_is_pruned() {
    let mut cluster = cluster(&[]);
    let (old, new) = (stamped(), record(6, "pending-upgrade", ""));
    assert_eq!(cluster.create(CI, &new), Ok(()));
    assert_eq!(cluster.update(CI, &old, &old.to("superseded")), Ok(()));
    assert_eq!(cluster.update(CI, &new, &new.to("deployed")), Ok(()));
    assert_eq!(cluster.delete(CI, &old.to("superseded")), Ok(()));
    assert_eq!(cluster.stored_stamp(&new, PROTECTED_BY).as_deref(), Some(STAMP));
    let deployed = new.to("deployed");
    assert_eq!(cluster.update(CI, &deployed, &deployed.to("uninstalling")), refused());
}

/// Somebody was allowed to uninstall it, and its history was kept.
#[test]
fn the_next_life_of_a_release_is_not_protected_by_the_last_one() {
    let mut cluster = Cluster::with_policy(POLICY);
    let superseded = record(4, "superseded", "").annotated(PROTECTED_BY, STAMP);
    for earlier in [&superseded, &record(5, "uninstalled", "").annotated(PROTECTED_BY, STAMP)] {
        cluster.given_record(earlier);
    }
    let new = record(6, "pending-install", "");
    assert_eq!(cluster.create(CI, &new), Ok(()));
    assert_eq!(cluster.stored_stamp(&new, PROTECTED_BY), None);
    // `helm install --replace` does this.
    cluster.given_record(&record(5, "superseded", "").annotated(PROTECTED_BY, STAMP));
    assert_eq!(cluster.update(CI, &new, &new.to("deployed")), Ok(()));
    let deployed = new.to("deployed");
    assert_eq!(cluster.update(CI, &deployed, &deployed.to("uninstalling")), Ok(()));
}

#[test]
fn the_stamp_is_removed_by_managers_or_once_it_is_void() {
    let unstamped = record(5, "deployed", "");
    let mut gone = cluster(&[]);
    for user in ["alice", CI] {
        let verdict = gone.update_objects(user, stamped().object(), unstamped.object());
        assert_eq!(verdict, refused(), "{user}");
    }
    let void = with_uid(helm_release(json!({})), "u1");
    for (user, declared) in [(FLUX, None), ("alice", Some(void))] {
        let mut cluster = cluster(declared.as_slice());
        assert_eq!(cluster.update_objects(user, stamped().object(), unstamped.object()), Ok(()), "{user}");
        assert_eq!(cluster.stored_stamp(&unstamped, PROTECTED_BY), None, "{user}");
        assert_eq!(cluster.delete_object(CI, web()), Ok(()));
    }
    // A client that drops all annotations, or writes others, does not remove it.
    let mut cluster = cluster(&[]);
    let held = stamped().annotated("interlock.dev/started", "2026-11-21T09:00:00Z");
    cluster.given_record(&held);
    assert_eq!(cluster.update_objects("alice", held.object(), unstamped.object()), Ok(()));
    let other = unstamped.clone().annotated(PROTECTED_BY, "HelmRelease/shop/other/u3");
    assert_eq!(cluster.update_objects("alice", held.object(), other.object()), Ok(()));
    assert_eq!(cluster.stored_stamp(&held, PROTECTED_BY).as_deref(), Some(STAMP));
}

#[test]
fn another_declaration_of_the_name_does_not_take_the_release_away() {
    let other = with_uid(helm_release(json!({})), "u2");
    assert_eq!(cluster(std::slice::from_ref(&other)).delete_object("alice", other), refused());
    let first = with_uid(helm_release(json!({})), "u1");
    assert_eq!(cluster(std::slice::from_ref(&first)).delete_object("alice", first), Ok(()));
}

impl Cluster {
    /// A stamp on a record as the API server has it.
    fn stored_stamp(&self, record: &Rec, key: &str) -> Option<String> {
        let stored: Value =
            serde_json::from_str(&self.stored(&ObjectKey::new("", "Secret", "shop", &record.name()))?).unwrap();
        stored["metadata"]["annotations"][key].as_str().map(str::to_owned)
    }
}
