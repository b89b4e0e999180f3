use futures_util::FutureExt;
use interlock_engine::evidence::{RecordRef, StoredBody, question};
use interlock_engine::json::RawObject;
use interlock_engine::object::ObjectKey;
use interlock_engine::owners::flux;
use interlock_engine::release::Storage;
use interlock_engine::release::manifest::DocumentKey;
use interlock_engine::release::record::fixtures::{manifest, stored};
use interlock_engine::release_override;
use serde_json::json;

use super::*;
use crate::world::ask;

fn put_record(memory: &Memory, revision: u64, manifest: &str) {
    let record = stored(Storage::Secret, "shop", revision, None, manifest).to_string();
    memory.put(ObjectKey::of_object(RawObject::delimited(&record)).unwrap(), record);
}

#[test]
fn long_records_and_documents_wait_for_a_turn() {
    let memory = Memory::new(4 << 20).sharing(Arc::new(Budget::without_cores(4 << 20, 8)));
    put_record(&memory, 1, &manifest(1));
    put_record(&memory, 2, &"# nothing\n".repeat(100_000));
    let body = |revision| question::Body {
        storage: Storage::Secret,
        namespace: "shop".to_owned(),
        object: format!("sh.helm.release.v1.web.v{revision}"),
    };
    assert!(matches!(ask(&memory, body(1)).now_or_never(), Some(Ok(Some(StoredBody::Json(_))))));
    assert_eq!(ask(&memory, body(2)).now_or_never(), None);
    let [kind, name, group, namespace] = ["A", "a", "", "shop"].map(str::to_owned);
    let object = DocumentKey { group, kind, name, default_namespace: namespace.clone(), namespace: namespace.clone() };
    let [name, uid, resource_version] = ["sh.helm.release.v1.web.v1", "u", "7"].map(str::to_owned);
    let record = RecordRef { storage: Storage::Secret, namespace, name, uid, resource_version };
    assert_eq!(ask(&memory, question::Document { record, object }).now_or_never(), None);
}

#[test]
fn known_state_is_found_among_all_objects() {
    let memory = Memory::new(1 << 20);
    assert_eq!((memory.in_flight(9), memory.drivers()), ((vec![], 0, true), Some(vec![])));
    for (kind, release, revision, status, created) in [
        ("Secret", "late", 1, "pending-install", "2026-11-21T09:03:00Z"),
        ("ConfigMap", "early", 1, "superseded", "2026-11-21T09:00:00Z"),
        ("ConfigMap", "early", 2, "pending-upgrade", "2026-11-21T09:01:00Z"),
        ("Secret", "middle", 1, "uninstalling", "2026-11-21T09:02:00Z"),
        ("Secret", "done", 1, "pending-install", "2026-11-21T09:00:00Z"),
        ("Secret", "done", 2, "deployed", "2026-11-21T09:01:00Z"),
    ] {
        let name = format!("sh.helm.release.v1.{release}.v{revision}");
        let labels = json!({"owner": "helm", "name": release, "version": revision.to_string(), "status": status});
        let object = json!({"metadata": {
            "name": name, "namespace": "shop", "uid": "u", "resourceVersion": "7", "creationTimestamp": created,
            "labels": labels,
        }});
        memory.put(ObjectKey::new("", kind, "shop", &name), object.to_string());
    }
    let (found, total, in_sync) = memory.in_flight(2);
    let found: Vec<_> = found.iter().map(|it| (&*it.release.name, it.storage, it.entries.len(), it.started)).collect();
    let at = |text: &str| text.parse().ok();
    assert_eq!(
        (&found[..], total, in_sync),
        (
            &[
                ("early", Storage::ConfigMap, 2, at("2026-11-21T09:01:00Z")),
                ("middle", Storage::Secret, 1, at("2026-11-21T09:02:00Z"))
            ][..],
            3,
            true
        )
    );

    let helm_release = json!({"metadata": {"name": "web", "namespace": "flux"}, "spec": {}});
    memory.put(ObjectKey::new(flux::GROUP, flux::HELM_RELEASE, "flux", "web"), helm_release.to_string());
    assert_eq!(memory.drivers().unwrap()[0].namespace, "flux");

    for (name, expires) in [("second", "12"), ("first", "11"), ("other", "10")] {
        let object = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "ReleaseOverride",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {
                "release": "web", "rules": ["manual-edit"], "reason": "r", "expiresAt": format!("2026-11-21T{expires}:00:00Z"),
            },
        });
        let key = ObjectKey::new(release_override::GROUP, release_override::KIND, "shop", name);
        memory.put(key, object.to_string());
    }
    let (found, total) = memory.overrides_that(&|it| it.name != "other", 1).unwrap();
    assert_eq!((&*found[0].name, found.len(), total), ("first", 1, 2));
}
