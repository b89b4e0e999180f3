//! The releases of a cluster, from the metadata of their records.

use std::collections::{BTreeMap, BTreeSet};

use interlock_engine::answers::read;
use interlock_engine::release::stamps::INTERRUPTED;
use interlock_engine::release::{Entry, History, ReleaseRef, Stamps, Status, Storage, Stored};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Finding, integrity};

/// The records of each release, by release and storage, unordered.
///
/// A superseded record below another record takes about 150 bytes, because only name, revision, status and note are kept. Other
/// records take about 1 KiB.
pub(crate) type Releases = BTreeMap<(ReleaseRef, &'static str), (Storage, Vec<Entry>)>;

/// The releases with their histories, by release and storage.
pub(crate) fn histories(releases: Releases) -> impl Iterator<Item = (ReleaseRef, Storage, History)> {
    releases.into_iter().map(|((release, _), (storage, entries))| (release, storage, History::new(entries)))
}

/// The result of a list of records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inventory {
    /// The namespace of the object that was added last.
    last: String,
    pub(crate) releases: Releases,
    /// Findings for records with inconsistent metadata, including records that Helm does not find.
    pub(crate) inconsistent: Vec<Finding>,
    pub(crate) records: usize,
}

#[derive(Deserialize)]
struct ListedObject {
    metadata: ObjectMeta,
}

impl Inventory {
    /// Adds the metadata of a Secret or ConfigMap. The metadata do not contain the type of a Secret.
    pub(crate) fn add(&mut self, kind: &str, secret_type: Option<&'static str>, item: &RawValue) {
        let (Ok(mut stored), Ok(ListedObject { metadata })) =
            (Stored::read(item.into()), serde_json::from_str(item.get()))
        else {
            return;
        };
        stored.secret_type = secret_type.map(Into::into);
        let Some(storage) = stored.storage(kind) else {
            return;
        };
        self.records += 1;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        namespace.clone_into(&mut self.last);
        self.inconsistent.extend(integrity::of_metadata(storage, namespace, &stored));
        // Helm does not list other objects either.
        if let Some((storage, release, entry)) = read::record(kind, &metadata) {
            let place = (ReleaseRef::new(namespace, release), storage.owner());
            let place = if storage == Storage::ConfigMap { (place.0, "configmap") } else { place };
            add(&mut self.releases.entry(place).or_insert((storage, Vec::new())).1, entry);
        }
    }

    /// Takes out what belongs to other namespaces than the one of the object that was added last: nothing more of them will come.
    pub(crate) fn take_completed(&mut self) -> Self {
        let last = std::mem::take(&mut self.last);
        let rest = self.take(|namespace| namespace == last);
        std::mem::replace(self, Self { last, ..rest })
    }

    /// Takes out what belongs to some namespaces. Their records are counted where they were added.
    pub(crate) fn take(&mut self, is_wanted: impl Fn(&str) -> bool) -> Self {
        let releases = self.releases.extract_if(.., |(release, _), _| is_wanted(&release.namespace)).collect();
        let inconsistent = self.inconsistent.extract_if(.., |finding| is_wanted(finding.namespace())).collect();
        Self { releases, inconsistent, ..Self::default() }
    }

    /// The namespaces of its releases.
    pub(crate) fn namespaces(&self) -> BTreeSet<String> {
        self.releases.keys().map(|(release, _)| release.namespace.clone()).collect()
    }

    /// Merges another inventory, which may have records of the same release.
    pub(crate) fn merge(&mut self, other: Self) {
        for (place, (storage, entries)) in other.releases {
            self.releases.entry(place).or_insert((storage, Vec::new())).1.extend(entries);
        }
        self.inconsistent.extend(other.inconsistent);
        self.records += other.records;
    }
}

/// Adds a record. The newest record stays at the end and keeps all its fields.
fn add(entries: &mut Vec<Entry>, entry: Entry) {
    entries.push(entry);
    if let [.., before, last] = entries.as_mut_slice() {
        if before.revision > last.revision {
            std::mem::swap(before, last);
        }
        slim(before);
    }
}

/// Removes fields that no finding needs.
fn slim(entry: &mut Entry) {
    if entry.status != Status::Superseded {
        return;
    }
    let note = entry.stamps.get(INTERRUPTED).map(str::to_owned);
    (entry.uid, entry.resource_version, entry.stamps) = (String::new(), String::new(), Stamps::default());
    if let Some(note) = note {
        entry.stamps.set(INTERRUPTED, note);
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::release::storage::HELM_SECRET_TYPE;
    use serde_json::{Value, json};

    use super::*;

    fn item(name: &str, labels: Value) -> Box<RawValue> {
        let metadata = json!({"name": name, "namespace": "shop", "uid": "u", "labels": labels});
        serde_json::value::to_raw_value(&json!({"metadata": metadata})).unwrap()
    }

    fn labels(version: &str, status: &str) -> Value {
        json!({"owner": "helm", "name": "web", "version": version, "status": status})
    }

    #[test]
    fn records_are_grouped_by_release_and_storage() {
        let mut inventory = Inventory::default();
        let mut secret = |name: &str, labels: Value, secret_type| {
            inventory.add("Secret", secret_type, &item(name, labels));
        };
        secret("sh.helm.release.v1.web.v1", labels("1", "superseded"), Some(HELM_SECRET_TYPE));
        secret("sh.helm.release.v1.web.v2", labels("2", "deployed"), Some(HELM_SECRET_TYPE));
        // An ordinary Secret of a chart that uses the same label.
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
    fn a_record_that_helm_does_not_find_is_only_a_finding() {
        let mut inventory = Inventory::default();
        inventory.add("Secret", Some(HELM_SECRET_TYPE), &item("sh.helm.release.v1.web.v1", json!({})));
        assert!(inventory.releases.is_empty());
        assert_eq!(inventory.inconsistent[0].release, Some(ReleaseRef::new("shop", "web")));
    }
}
