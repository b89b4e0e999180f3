//! Releases of one name whose records are in several namespaces: a proof outranks the nearest record, for what its release declares.

use serde_json::{Value, json};

use super::objects::{image, record, web};
use super::scenario::{Cluster, Rec, Verdict, rec};
use crate::release::stamps::{HOLDER, TARGET_NAMESPACE};

const FLUX: &str = "system:serviceaccount:flux-system:helm-controller";

/// A record in another namespace, of a release with its objects in shop.
fn elsewhere(namespace: &str, record: &Rec) -> Value {
    let mut object = record.clone().annotated(TARGET_NAMESPACE, "shop").object();
    object["metadata"]["namespace"] = namespace.into();
    object
}

/// A release of Flux with its records in another namespace, and a record of the same name in shop by this user.
fn both(namespace: &str, proven: &Rec, home: &Rec) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.given(elsewhere(namespace, proven));
    cluster.given_record(home);
    cluster
}

fn refused(rule: &'static str) -> Verdict {
    Err(vec![rule])
}

#[test]
fn a_record_at_home_does_not_take_objects_of_a_proven_release() {
    let empty = |status| Rec { manifest: "", ..rec(1, status) }.annotated(HOLDER, "mallory");
    for home in [empty("deployed"), empty("pending-install"), record(1, "pending-install", "mallory")] {
        let mut cluster = both("flux", &record(3, "deployed", FLUX), &home);
        assert_eq!(cluster.update_objects("mallory", web(), image("evil")), refused("manual-edit"), "{}", home.status);
        assert_eq!(cluster.delete_object("mallory", web()), refused("manual-delete"), "{}", home.status);
        assert_eq!(cluster.update_objects(FLUX, web(), image("2")), Ok(()));
    }
    let mut cluster = both("flux", &record(3, "deployed", FLUX), &empty("deployed"));
    let text = cluster.messages_for("mallory", web(), image("evil"));
    assert!(text.contains("release flux/web (revision 3, deployed)"), "{text}");
}

#[test]
fn a_proven_release_that_declares_nothing_decides_about_nothing() {
    let empty = Rec { manifest: "", ..record(1, "deployed", FLUX) };
    for newest in [empty.clone(), empty.to("pending-upgrade")] {
        let mut cluster = both("evil", &newest, &record(5, "deployed", "alice"));
        let text = cluster.messages_for("bob", web(), image("2"));
        assert!(text.contains("release shop/web (revision 5, deployed)"), "{text}");
        let upgrade = Rec { manifest: super::objects::MANIFEST, ..rec(6, "pending-upgrade") };
        assert_eq!(cluster.create("alice", &upgrade), Ok(()));
        assert_eq!(cluster.update_objects("alice", web(), image("2")), Ok(()));
    }
    // Not even where it declares the object, if only the operation in flight does.
    let mut cluster = both("evil", &record(1, "pending-install", FLUX), &record(5, "deployed", "alice"));
    let text = cluster.messages_for("bob", web(), image("2"));
    assert!(text.contains("release shop/web (revision 5, deployed)"), "{text}");
}

#[test]
fn an_unproven_record_elsewhere_takes_nothing() {
    let mut cluster = both("evil", &record(9, "deployed", "mallory"), &record(5, "deployed", "alice"));
    let text = cluster.messages_for("bob", web(), image("2"));
    assert!(text.contains("release shop/web (revision 5, deployed)"), "{text}");
}

#[test]
fn an_install_over_objects_of_a_proven_release_is_refused() {
    let install = |manifest| Rec { manifest, ..rec(1, "pending-install") };
    let declaring = || install(super::objects::MANIFEST);
    let start = |proven: &Rec, user: &str, install: &Rec| {
        let mut cluster = Cluster::new();
        cluster.given(elsewhere("flux", proven));
        cluster.create(user, install)
    };
    let flux_s = record(3, "deployed", FLUX);
    assert_eq!(start(&flux_s, "mallory", &declaring()), refused("unusual-create"));
    // The same name for other objects, the owner itself, and no proof.
    assert_eq!(start(&flux_s, "mallory", &install("kind: ConfigMap\nmetadata: {name: mine}\n")), Ok(()));
    assert_eq!(start(&flux_s, FLUX, &declaring()), Ok(()));
    assert_eq!(start(&record(3, "deployed", "bob"), "mallory", &declaring()), Ok(()));
    let empty = Rec { manifest: "", ..record(3, "deployed", FLUX) };
    assert_eq!(start(&empty, "mallory", &declaring()), Ok(()));
}

/// Until an operation ends, what it drops is declared by what is deployed.
#[test]
fn what_the_revision_in_flight_drops_stays_declared() {
    let mut cluster = Cluster::new();
    cluster.given_record(&record(5, "deployed", "alice"));
    let service = "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: web\n";
    cluster.given_record(&Rec { manifest: service, ..record(6, "pending-upgrade", "alice") });
    assert_eq!(cluster.update_objects("bob", web(), image("2")), refused("foreign-edit-in-transition"));
    assert_eq!(cluster.delete_object("bob", web()), refused("foreign-edit-in-transition"));
    // The upgrade itself deletes what it drops.
    assert_eq!(cluster.delete_object("alice", web()), Ok(()));
    let labelled = {
        let mut object = web();
        object["metadata"]["labels"]["team"] = json!("a");
        object
    };
    assert_eq!(cluster.update_objects("bob", web(), labelled), Ok(()));
}
