//! Every release of a cluster, by the metadata of its records.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Finding, integrity};
use crate::engine::release::{Entry, ReleaseRef, Stamps, Status, Storage, Stored};
use crate::world::read;

/// The records of one name in one namespace and storage, in no order.
///
/// A superseded record takes some 150 bytes: only its name, revision and status are kept. Another one takes about 1 KiB.
pub(crate) type Releases = BTreeMap<(ReleaseRef, &'static str), (Storage, Vec<Entry>)>;

/// What a listing of records has shown.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub(crate) releases: Releases,
    /// Records whose metadata do not hold together, those among them that Helm does not see.
    pub(crate) inconsistent: Vec<Finding>,
    pub(crate) records: usize,
}

#[derive(Deserialize)]
struct ListedObject {
    metadata: ObjectMeta,
}

impl Inventory {
    /// Takes in the metadata of a Secret or ConfigMap. Which type a Secret has its metadata do not say.
    pub(crate) fn add(&mut self, kind: &str, secret_type: Option<&'static str>, item: &RawValue) {
        let (Ok(mut stored), Ok(ListedObject { metadata })) = (Stored::read(item), serde_json::from_str(item.get()))
        else {
            return;
        };
        stored.secret_type = secret_type.map(Into::into);
        let Some(storage) = stored.storage(kind) else {
            return;
        };
        self.records += 1;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        self.inconsistent.extend(integrity::of_metadata(storage, namespace, &stored));
        // Others are not listed by Helm either.
        if let Some((storage, release, entry)) = read::record(kind, &metadata) {
            let place = (ReleaseRef::new(namespace, release), storage.owner());
            let place = if storage == Storage::ConfigMap { (place.0, "configmap") } else { place };
            self.releases.entry(place).or_insert((storage, Vec::new())).1.push(slim(entry));
        }
    }

    /// Puts two together, which may each have records of one release.
    pub(crate) fn merge(&mut self, other: Self) {
        for (place, (storage, entries)) in other.releases {
            self.releases.entry(place).or_insert((storage, Vec::new())).1.extend(entries);
        }
        self.inconsistent.extend(other.inconsistent);
        self.records += other.records;
    }
}

/// Leaves out what no check needs.
fn slim(entry: Entry) -> Entry {
    if entry.status != Status::Superseded {
        return entry;
    }
    Entry { uid: String::new(), resource_version: String::new(), stamps: Stamps::default(), written: None, ..entry }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::engine::release::storage::HELM_SECRET_TYPE;

    fn item(name: &str, labels: Value) -> Box<RawValue> {
        let metadata = json!({"name": name, "namespace": "shop", "uid": "u", "labels": labels});
        serde_json::value::to_raw_value(&json!({"metadata": metadata})).unwrap()
    }

    fn labels(version: &str, status: &str) -> Value {
        json!({"owner": "helm", "name": "web", "version": version, "status": status})
    }

    #[test]
    fn records_are_gathered_by_release_and_storage_and_others_are_not() {
        let mut inventory = Inventory::default();
        let mut secret = |name: &str, labels: Value, secret_type| {
            inventory.add("Secret", secret_type, &item(name, labels));
        };
        secret("sh.helm.release.v1.web.v1", labels("1", "superseded"), Some(HELM_SECRET_TYPE));
        secret("sh.helm.release.v1.web.v2", labels("2", "deployed"), Some(HELM_SECRET_TYPE));
        // An ordinary Secret of a chart that labels its objects so.
        secret("password", json!({"owner": "helm"}), Some("Opaque"));
        inventory.add("ConfigMap", None, &item("sh.helm.release.v1.web.v1", labels("1", "deployed")));
        assert_eq!((inventory.records, inventory.releases.len()), (3, 2));
        assert!(inventory.inconsistent.is_empty(), "{:?}", inventory.inconsistent);
        let (storage, records) = &inventory.releases[&(ReleaseRef::new("shop", "web"), "helm")];
        assert_eq!((*storage, records.len()), (Storage::Secret, 2));
        assert_eq!((records[0].uid.as_str(), records[1].uid.as_str()), ("", "u"));
    }

    #[test]
    fn two_listings_of_one_release_add_up() {
        let listed = |secret_type, revisions: &[u64]| {
            let mut inventory = Inventory::default();
            for revision in revisions {
                let name = format!("sh.helm.release.v1.web.v{revision}");
                inventory.add("Secret", secret_type, &item(&name, labels(&revision.to_string(), "superseded")));
            }
            inventory
        };
        let mut all = listed(Some(HELM_SECRET_TYPE), &[1, 2, 4]);
        all.merge(listed(None, &[3]));
        let (_, entries) = &all.releases[&(ReleaseRef::new("shop", "web"), "helm")];
        assert_eq!((all.releases.len(), all.records, entries.len()), (1, 4, 4));
    }

    #[test]
    fn a_record_that_helm_does_not_see_is_told_and_belongs_to_no_release() {
        let mut inventory = Inventory::default();
        inventory.add("Secret", Some(HELM_SECRET_TYPE), &item("sh.helm.release.v1.web.v1", json!({})));
        assert!(inventory.releases.is_empty());
        assert_eq!(inventory.inconsistent[0].release, Some(ReleaseRef::new("shop", "web")));
    }
}
