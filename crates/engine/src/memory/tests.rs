use serde_json::json;

use super::*;
use crate::evidence::RecordRef;
use crate::evidence::{Answer, Freshness, Knowledge, Query, question};
use crate::managed::Owner;
use crate::release::manifest::DocumentKey;
use crate::release::record::fixtures::{manifest, stored};

fn answer(objects: &Objects, query: &Query) -> Answer {
    objects.answer(query, &Effort::of_review())
}

/// The query for an object in the manifest of one version of a record.
fn document(name: &str, resource_version: &str) -> Query {
    let [kind, group, namespace] = ["A", "", "shop"].map(str::to_owned);
    let object = DocumentKey {
        kind,
        group,
        name: "a".to_owned(),
        namespace: namespace.clone(),
        default_namespace: namespace.clone(),
    };
    let record = RecordRef {
        storage: Storage::Secret,
        namespace,
        name: name.to_owned(),
        uid: "u".to_owned(),
        resource_version: resource_version.to_owned(),
    };
    question::Document { record, object }.into()
}

fn put_record(objects: &Objects, storage: Storage, namespace: &str, revision: u64, target_namespace: Option<&str>) {
    let record = stored(storage, namespace, revision, target_namespace, &manifest(revision)).to_string();
    objects.put(ObjectKey::of_object(RawObject::delimited(&record)).unwrap(), record);
}

fn candidate(objects: &Objects, origin: Option<&str>) -> Vec<(Storage, String, u64)> {
    let question = question::Release {
        name: "web".to_owned(),
        target_namespace: "shop".to_owned(),
        origin: origin.map(|namespace| Origin { namespace: namespace.to_owned(), name: "web".to_owned() }),
        freshness: Freshness::Live,
    };
    match answer(objects, &question.into()) {
        Answer::Known(Knowledge::Release(found)) => found
            .into_iter()
            .map(|it| (it.storage, it.namespace, it.history.newest().map_or(0, |newest| newest.revision.0)))
            .collect(),
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn records_are_found_at_home_through_flux_and_by_stamp() {
    let objects = Objects::new(1 << 20);
    assert_eq!(candidate(&objects, None), []);
    put_record(&objects, Storage::ConfigMap, "shop", 1, None);
    put_record(&objects, Storage::Secret, "flux", 2, None);
    let home = || (Storage::ConfigMap, "shop".to_owned(), 1);
    assert_eq!(candidate(&objects, Some("flux")), [home()]);
    let status = json!({"storageNamespace": "flux", "history": [
        {"name": "web", "namespace": "shop", "status": "deployed"}]});
    let helm_release = json!({"metadata": {"name": "web", "namespace": "flux"}, "spec": {}, "status": status});
    objects.put(ObjectKey::new(HELM_RELEASES.0, HELM_RELEASES.1, "flux", "web"), helm_release.to_string());
    put_record(&objects, Storage::Index, "olm", 3, Some("shop"));
    let stamped = || (Storage::Index, "olm".to_owned(), 3);
    assert_eq!(candidate(&objects, None), [home(), stamped()]);
    let installed = (Storage::Secret, "flux".to_owned(), 2);
    let mut all = candidate(&objects, Some("flux"));
    all.sort_by(|one, other| one.1.cmp(&other.1));
    assert_eq!(all, [installed, stamped(), home()]);
}

#[test]
fn a_document_is_read_from_the_wanted_version() {
    let objects = Objects::new(1 << 20);
    put_record(&objects, Storage::Secret, "shop", 3, None);
    let ask = |name: &str, resource_version: &str| answer(&objects, &document(name, resource_version));
    let document = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "revision": 3});
    let known = Answer::Known(Knowledge::Document(Ok(Some(document.into()))));
    assert_eq!(ask("sh.helm.release.v1.web.v3", "7"), known);
    assert_eq!(ask("sh.helm.release.v1.web.v3", ""), known);
    assert_eq!(ask("sh.helm.release.v1.web.v4", "7"), Answer::Absent);
    assert!(matches!(ask("sh.helm.release.v1.web.v3", "8"), Answer::Unavailable(_)));
}

#[test]
fn a_scaled_object_has_the_marks_of_the_stored_one() {
    let objects = Objects::new(1 << 20);
    let object = ScaledRef {
        group: "apps".to_owned(),
        version: "v1".to_owned(),
        resource: "deployments".to_owned(),
        kind: "Deployment".to_owned(),
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
    };
    let query = question::Parent { object, freshness: Freshness::Cached }.into();
    assert_eq!(answer(&objects, &query), Answer::Absent);
    let deployment = json!({"metadata": {
        "name": "web", "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"},
    }});
    objects.put(ObjectKey::new("apps", "Deployment", "shop", "web"), deployment.to_string());
    let Answer::Known(Knowledge::Parent(scaled)) = answer(&objects, &query) else { panic!("expected marks") };
    assert!(matches!(scaled.marks.owner, Owner::Release { name, .. } if name == "web"));
    assert_eq!(scaled.managed_fields.as_deref(), Some("[]"));
}
