//! Objects of the abstract state as the API server has them, and back.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;
use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use interlock_engine::object::ObjectKey;
use interlock_engine::release::stamps::{CHART, DRIVER, ENDED, HOLDER, INTERRUPTED, STARTED, TARGET_NAMESPACE};
use interlock_engine::release::{DriverRef, Status};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha3::{Digest, Sha3_224};

use crate::cluster::{Age, Body, Driver, Object, Other, Record, StrangersRecord, Words};
use crate::users::User;

/// The release, its namespace, and the namespace of a stranger.
pub(crate) const RELEASE: &str = "web";
pub(crate) const SHOP: &str = "shop";
const STRANGERS: &str = "mallory";
/// OLM keeps its records in its own namespace.
const OLM: &str = "olmv1-system";

/// 2026-11-21T10:00:00Z: every review of the checker is judged at this moment.
pub(crate) const NOW: i64 = 1_795_255_200;

pub(crate) fn at(seconds: i64) -> String {
    Timestamp::from_second(seconds).unwrap().to_string()
}

pub(crate) fn records_in(driver: Driver) -> &'static str {
    if driver == Driver::Olm { OLM } else { SHOP }
}

pub(crate) fn record_name(driver: Driver, revision: u8) -> String {
    let _ = driver;
    format!("sh.helm.release.v1.{RELEASE}.v{revision}")
}

pub(crate) fn record_key(driver: Driver, revision: u8) -> ObjectKey {
    ObjectKey::new("", driver.storage().kind(), records_in(driver), &record_name(driver, revision))
}

fn manifest(chart: u8) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  template:\n    spec:\n      containers:\n      \
         - {{name: web, image: 'shop:{chart}'}}\n"
    )
}

fn body_text(body: &Body, hooks_run: u8) -> String {
    let description = match body.words {
        Words::Usual => "x",
        Words::Unlocked => "Release unlocked from stale 'pending-upgrade' state",
    };
    json!({
        "name": RELEASE,
        "info": {
            "status": body.status.as_str(), "last_deployed": format!("2026-11-21T09:{:02}:00Z", body.life),
            "description": description,
        },
        "chart": {"metadata": {"name": "shop", "version": format!("{}.0.0", body.chart)}},
        "config": {"replicas": 1}, "manifest": manifest(body.chart), "hooks": [{"last_run": hooks_run}],
        "version": body.revision, "namespace": SHOP,
    })
    .to_string()
}

thread_local! {
    /// Packing one takes longer than what remains of sending it.
    static PACKED: RefCell<HashMap<(Body, u8), Rc<str>>> = RefCell::default();
}

fn packed_body(body: &Body, hooks_run: u8) -> Rc<str> {
    PACKED.with_borrow_mut(|packed_bodies| {
        let packed =
            packed_bodies.entry((*body, hooks_run)).or_insert_with(|| packed(&body_text(body, hooks_run)).into());
        Rc::clone(packed)
    })
}

fn packed(text: &str) -> String {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    STANDARD.encode(gzip.finish().unwrap())
}

/// A record as a client sends it, without annotations. `hooks_run` tells a write from what is stored.
pub(crate) fn sent(body: &Body, label: Status, hooks_run: u8) -> Value {
    let packed = packed_body(body, hooks_run);
    let name = record_name(body.driver, body.revision);
    let data = match body.driver {
        Driver::Secret => json!({"release": STANDARD.encode(&*packed)}),
        Driver::ConfigMap => json!({"release": *packed}),
        Driver::Olm => json!({"chunk": *packed, "extraChunks": STANDARD.encode("[]")}),
    };
    let mut labels = json!({
        "name": RELEASE, "owner": body.driver.storage().owner(), "status": label.as_str(), "version": body.revision.to_string(),
    });
    if body.driver == Driver::Olm {
        labels["type"] = "index".into();
        labels["key"] = name.clone().into();
    }
    let metadata = json!({"name": name, "namespace": records_in(body.driver), "labels": labels});
    let mut object =
        json!({"apiVersion": "v1", "kind": body.driver.storage().kind(), "metadata": metadata, "data": data});
    match body.driver {
        Driver::Secret => object["type"] = "helm.sh/release.v1".into(),
        Driver::Olm => object["type"] = "operatorframework.io/index.v1".into(),
        Driver::ConfigMap => {}
    }
    object
}

/// How a stamp names the HelmRelease of the release.
pub(crate) fn own_driver() -> DriverRef<'static> {
    DriverRef { kind: "HelmRelease", namespace: SHOP, name: RELEASE, uid: SHOP, generation: 1 }
}

fn chart_name(chart: u8) -> String {
    format!("shop-{chart}.0.0")
}

/// A stored record. Its moments are as old as their classes say.
pub(crate) fn stored(record: &Record, now: i64) -> Value {
    let mut object = sent(&record.body, record.label, 0);
    let time = |age: Age| at(now - age.seconds());
    object["metadata"]["creationTimestamp"] = time(record.created).into();
    let mut annotations = serde_json::Map::new();
    if let Some(holder) = record.holder {
        annotations.insert(HOLDER.to_owned(), holder.name().into());
        annotations.insert(STARTED.to_owned(), time(record.started.unwrap_or(record.created)).into());
        annotations.insert(CHART.to_owned(), chart_name(record.body.chart).into());
        annotations.insert(TARGET_NAMESPACE.to_owned(), SHOP.into());
    }
    if record.is_driven {
        annotations.insert(DRIVER.to_owned(), own_driver().to_string().into());
    }
    if let Some(ended) = record.ended {
        annotations.insert(ENDED.to_owned(), time(ended).into());
    }
    if let Some((chart, revision)) = record.interrupted {
        annotations.insert(INTERRUPTED.to_owned(), format!("{}@{revision}", chart_name(chart)).into());
    }
    object["metadata"]["annotations"] = annotations.into();
    if record.broken {
        object["data"]["extraChunks"] = STANDARD.encode(json!([missing_part(record)]).to_string()).into();
    }
    object
}

/// The part that a broken record lacks.
pub(crate) fn missing_part(record: &Record) -> String {
    format!("{}-missing", record_name(record.body.driver, record.body.revision))
}

/// A record with what its stored object says beside its body: label, creation and stamps.
pub(crate) fn read_back(body: Body, old: Option<&Record>, object: &Value, now: i64) -> Record {
    let metadata = &object["metadata"];
    let stamp = |key: &str| metadata["annotations"][key].as_str();
    let age = |time: &str| Age::of(now - time.parse::<Timestamp>().unwrap().as_second());
    let note = |note: &str| {
        let (chart, revision) = note.split_once('@')?;
        let chart = chart.strip_prefix("shop-")?.strip_suffix(".0.0")?;
        Some((chart.parse().ok()?, revision.parse().ok()?))
    };
    Record {
        body,
        label: metadata["labels"]["status"].as_str().unwrap().parse().unwrap(),
        created: age(metadata["creationTimestamp"].as_str().unwrap()),
        holder: stamp(HOLDER).map(|holder| User::named(holder).unwrap()),
        is_driven: stamp(DRIVER).is_some(),
        started: stamp(STARTED).map(age),
        ended: stamp(ENDED).map(age),
        interrupted: stamp(INTERRUPTED).map(|text| note(text).unwrap()),
        left: old.is_some_and(|old| old.left),
        broken: old.is_some_and(|old| old.broken),
    }
}

/// The object of the release with its marks. That of a ClusterExtension has OLM's, too.
pub(crate) fn deployment(object: &Object, is_extension: bool) -> Value {
    let image = if object.edited { "shop:edited".to_owned() } else { format!("shop:{}", object.chart) };
    let (available, condition) = if object.unhealthy { (0, "False") } else { (1, "True") };
    let mut labels = json!({"app.kubernetes.io/managed-by": "Helm"});
    if is_extension {
        labels["olm.operatorframework.io/owner-kind"] = "ClusterExtension".into();
        labels["olm.operatorframework.io/owner-name"] = RELEASE.into();
    }
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": RELEASE, "namespace": SHOP, "generation": 1, "labels": labels,
            "annotations": {"meta.helm.sh/release-name": RELEASE, "meta.helm.sh/release-namespace": SHOP},
        },
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "web", "image": image}]}}},
        "status": {
            "observedGeneration": 1, "updatedReplicas": 1, "availableReplicas": available, "readyReplicas": available,
            "replicas": 1,
            "conditions": [{"type": "Available", "status": condition}, {"type": "Progressing", "status": "True"}],
        },
    })
}

pub(crate) fn deployment_key() -> ObjectKey {
    ObjectKey::new("apps", "Deployment", SHOP, RELEASE)
}

/// One of the objects beside the release. A lease is always a live one.
pub(crate) fn other(other: Other, now: i64) -> Value {
    match other {
        Other::Lease => lease(SHOP, now),
        Other::StrangersLease => lease(STRANGERS, now),
        Other::HelmRelease(user) => own_helm_release(user),
        Other::Override(driver) => json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "ReleaseOverride",
            "metadata": {"name": "own", "namespace": records_in(driver), "creationTimestamp": at(now)},
            "spec": {
                "release": RELEASE, "rules": ["pending-recovery"], "reason": "the operation is stuck",
                "expiresAt": at(now + 900),
            },
        }),
        Other::Freeze => freeze(now),
        Other::Protection => protected_namespace(),
        Other::StrangersHelmRelease | Other::StrangersStatus => {
            let spec = json!({
                "releaseName": RELEASE, "targetNamespace": SHOP, "storageNamespace": SHOP, "serviceAccountName": "mine",
                "timeout": "6h",
            });
            helm_release(STRANGERS, spec, other == Other::StrangersStatus)
        }
        Other::StrangersStamp => {
            let mut record = self::other(Other::StrangersRecord(StrangersRecord::PendingUpgrade), now);
            record["metadata"]["annotations"] = json!({HOLDER: User::Mallory.name(), DRIVER: own_driver().to_string()});
            record["metadata"]["name"] = record_name(Driver::Secret, 7).into();
            record
        }
        Other::StrangersObject => {
            let mut object = deployment(&Object::of(9), false);
            object["metadata"]["namespace"] = STRANGERS.into();
            object
        }
        Other::StrangersRecord(status) => {
            let (revision, status) = match status {
                StrangersRecord::PendingUpgrade => (9, Status::PendingUpgrade),
                StrangersRecord::Deployed => (8, Status::Deployed),
            };
            let body = Body { driver: Driver::Secret, revision, status, chart: 9, life: 0, words: Words::Usual };
            let mut record = sent(&body, status, 0);
            record["metadata"]["namespace"] = STRANGERS.into();
            record["metadata"]["creationTimestamp"] = at(now).into();
            record
        }
        Other::StrangersOverride => json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "ReleaseOverride",
            "metadata": {
                "name": "mine", "namespace": STRANGERS, "creationTimestamp": at(now),
                "annotations": {"interlock.dev/created-by": "mallory"},
            },
            "spec": {
                "release": RELEASE, "rules": ["pending-recovery", "record-deletion", "illegal-transition"],
                "reason": "none", "expiresAt": at(now + 3_600),
            },
        }),
    }
}

fn protected_namespace() -> Value {
    let metadata = json!({"name": SHOP, "annotations": {"interlock.dev/protected": "true"}});
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
}

/// A Freeze of the release's namespace, from an hour ago for two hours.
fn freeze(now: i64) -> Value {
    let civil = |seconds: i64| at(now + seconds).trim_end_matches('Z').to_owned();
    json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "Freeze",
        "metadata": {"name": "stop", "namespace": SHOP, "creationTimestamp": at(now - 3_600)},
        "spec": {"reason": "INC-7", "timeZone": "UTC", "from": civil(-3_600), "to": civil(3_600)},
    })
}

fn lease(namespace: &str, now: i64) -> Value {
    let key = Sha3_224::digest(format!("release/{RELEASE}"));
    let key = key.iter().fold("lockgate.io/".to_owned(), |key, byte| format!("{key}{byte:02x}"));
    let lease = json!({"UUID": "x", "ExpireAtTimestamp": now + 10}).to_string();
    let metadata = json!({"name": "werf-synchronization", "namespace": namespace, "annotations": {key: lease}});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

/// The HelmRelease of the release, for which Flux works as this user.
fn own_helm_release(user: User) -> Value {
    let mut spec = json!({"releaseName": RELEASE});
    if let Some(account) = user.name().strip_prefix(&format!("system:serviceaccount:{SHOP}:")) {
        spec["serviceAccountName"] = account.into();
    }
    helm_release(SHOP, spec, true)
}

fn helm_release(namespace: &str, spec: Value, is_installed: bool) -> Value {
    let mut object = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {
            "name": RELEASE, "namespace": namespace, "uid": namespace, "generation": 1, "creationTimestamp": at(NOW - 86_400),
        },
        "spec": spec,
    });
    object["spec"]["interval"] = "10m".into();
    if is_installed {
        let snapshot =
            json!({"name": RELEASE, "namespace": SHOP, "version": 1, "status": "deployed", "chartName": "shop"});
        object["status"] = json!({"storageNamespace": SHOP, "history": [snapshot]});
    }
    object
}

/// The key of an object that has one of the kinds above.
pub(crate) fn key_of(object: &Value) -> ObjectKey {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let group = text("/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    ObjectKey::new(group, text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}
