//! The objects of a world in memory, limited to a number of bytes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::answers::locate::RecordSet;
use crate::answers::read;
use crate::json::{RawObject, first_at};
use crate::object::{Metadata, ObjectKey, have_lengths_of_names};
use crate::release::{History, Storage};

/// The bytes of an object in addition to its text and names: its entries in the maps, and the headers of its strings.
const ENTRY_BYTES: usize = 512;

/// Objects as JSON text.
#[derive(Debug, Clone)]
pub(super) struct ObjectStore {
    by_key: BTreeMap<ObjectKey, StoredObject>,
    /// The objects in the order in which they were first stored.
    order: BTreeMap<u64, ObjectKey>,
    /// The objects that may be records, by the name of their release.
    records: HashMap<String, BTreeSet<ObjectKey>>,
    /// The number of objects stored so far.
    seen: u64,
    /// The bytes of the objects, including their names.
    bytes: usize,
    limit: usize,
    forgotten: usize,
}

#[derive(Debug, Clone)]
struct StoredObject {
    text: Box<str>,
    /// The position in `order`.
    at: u64,
    /// The release whose record the object may be.
    release: Option<String>,
    bytes: usize,
}

impl ObjectStore {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            by_key: BTreeMap::new(),
            order: BTreeMap::new(),
            records: HashMap::new(),
            seen: 0,
            bytes: 0,
            limit,
            forgotten: 0,
        }
    }

    /// Stores an object, and replaces the object with the same key. Above the limit, the oldest objects are dropped. An
    /// object is not stored if its names are longer than an API server accepts.
    pub(super) fn put(&mut self, key: ObjectKey, text: String) {
        if !have_lengths_of_names([&key.group, &key.kind, &key.namespace, &key.name]) {
            return;
        }
        let at = self.remove(&key).map(|old| old.at);
        self.insert(key, text.into_boxed_str(), at);
        while self.bytes > self.limit {
            let Some((_, oldest)) = self.order.pop_first() else {
                break;
            };
            self.remove(&oldest);
            self.forgotten += 1;
        }
    }

    fn insert(&mut self, key: ObjectKey, text: Box<str>, at: Option<u64>) {
        self.seen += 1;
        let at = at.unwrap_or(self.seen);
        let release = release_of(&key, &text);
        if let Some(release) = &release {
            self.records.entry(release.clone()).or_default().insert(key.clone());
        }
        let bytes = bytes_of(&key, &text, release.as_deref());
        self.bytes += bytes;
        self.order.insert(at, key.clone());
        self.by_key.insert(key, StoredObject { text, at, release, bytes });
    }

    /// Removes an object, and returns whether it existed.
    pub(super) fn discard(&mut self, key: &ObjectKey) -> bool {
        self.remove(key).is_some()
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<StoredObject> {
        let object = self.by_key.remove(key)?;
        self.bytes -= object.bytes;
        self.order.remove(&object.at);
        if let Some(release) = &object.release
            && let Some(records) = self.records.get_mut(release)
        {
            records.remove(key);
            if records.is_empty() {
                self.records.remove(release);
            }
        }
        Some(object)
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&str> {
        self.by_key.get(key).map(|object| &*object.text)
    }

    /// The objects of a kind.
    pub(super) fn of_kind(&self, group: &str, kind: &str) -> impl Iterator<Item = &str> {
        let from = self.by_key.range(ObjectKey::new(group, kind, "", "")..);
        let of_kind = from.take_while(move |(key, _)| key.group == group && key.kind == kind);
        of_kind.map(|(_, object)| &*object.text)
    }

    /// The names of the releases that may have records.
    pub(super) fn names(&self) -> Vec<String> {
        self.records.keys().cloned().collect()
    }

    /// The records of a name, in every namespace and storage.
    pub(super) fn record_sets(&self, release: &str) -> Vec<RecordSet> {
        let may_be_records = self.records.get(release).into_iter().flatten();
        let records = may_be_records.filter_map(|key| {
            let metadata: ObjectMeta = first_at(self.get(key)?, &["metadata"]).ok()??;
            let (storage, _, entry) = read::record(&key.kind, &metadata)?;
            Some((storage, key.namespace.clone(), entry))
        });
        RecordSet::gather(records)
    }

    pub(super) fn history(&self, storage: Storage, namespace: &str, release: &str) -> History {
        let mut record_sets = self.record_sets(release).into_iter();
        let record_set =
            record_sets.find(|record_set| record_set.storage == storage && record_set.namespace == namespace);
        History::new(record_set.map(|record_set| record_set.entries).unwrap_or_default())
    }

    /// The number of objects dropped because of the limit.
    pub(super) fn forgotten(&self) -> usize {
        self.forgotten
    }
}

/// The bytes of an object. Its names are stored in two maps. Those of a record are also in a third map, with the name
/// of the release.
fn bytes_of(ObjectKey { group, kind, namespace, name }: &ObjectKey, text: &str, release: Option<&str>) -> usize {
    let names = group.len() + kind.len() + namespace.len() + name.len();
    let of_record = release.map_or(0, |release| names + 2 * release.len());
    ENTRY_BYTES + text.len() + 2 * names + of_record
}

/// The release that an object may be a record of, by its labels.
fn release_of(key: &ObjectKey, text: &str) -> Option<String> {
    let kinds = [Storage::Secret.kind(), Storage::ConfigMap.kind()];
    if !key.group.is_empty() || !kinds.contains(&key.kind.as_str()) {
        return None;
    }
    let metadata = Metadata::of(RawObject::delimited(text)).ok()?;
    metadata.label("owner")?;
    metadata.label("name").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("", "ConfigMap", "shop", name)
    }

    /// A ConfigMap of at least this many bytes.
    fn object(labels: &str, bytes: usize) -> String {
        format!(r#"{{"metadata":{{"labels":{{{labels}}}}},"data":{{"a":"{}"}}}}"#, "x".repeat(bytes))
    }

    #[test]
    fn over_the_limit_the_oldest_objects_are_dropped() {
        let mut store = ObjectStore::new(20 << 10);
        for name in ["a", "b", "a", "c"] {
            store.put(key(name), object("", 8 << 10));
        }
        // A change does not make an object newer.
        let kept = |store: &ObjectStore| ["a", "b", "c"].map(|name| store.get(&key(name)).is_some());
        assert_eq!((kept(&store), store.forgotten()), ([false, true, true], 1));
        let mut branch = store.clone();
        branch.put(key("d"), object("", 20 << 10));
        assert_eq!((kept(&branch), kept(&store)), ([false; 3], [false, true, true]));
    }

    #[test]
    fn names_and_texts_count_towards_the_limit() {
        const LIMIT: usize = 1 << 20;
        let mut store = ObjectStore::new(LIMIT);
        let long = "n".repeat(200);
        for number in 0..10_000 {
            store.put(key(&format!("{long}{number}")), "{}".to_owned());
            assert!(store.bytes <= LIMIT);
        }
        let counted: usize = store.by_key.iter().map(|(key, object)| bytes_of(key, &object.text, None)).sum();
        assert_eq!((store.bytes, store.order.len()), (counted, store.by_key.len()));
        assert!(store.by_key.len() < LIMIT / (ENTRY_BYTES + 2 * long.len()));
    }

    #[test]
    fn release_names_count_and_removals_free_all_bytes() {
        let mut store = ObjectStore::new(8 << 20);
        let release = "r".repeat(1 << 20);
        store.put(key("a"), object(&format!(r#""owner":"helm","name":"{release}""#), 0));
        assert!(store.bytes > 3 * release.len() && store.names() == [release]);
        store.put(key("a"), object("", 0));
        assert!(store.bytes < 2 * ENTRY_BYTES && store.names().is_empty());
        assert!(store.discard(&key("a")) && !store.discard(&key("a")));
        assert_eq!((store.bytes, store.order.len()), (0, 0));
    }

    #[test]
    fn an_object_with_an_impossible_name_is_not_stored() {
        let mut store = ObjectStore::new(64 << 20);
        let (longest, longer) = ("n".repeat(253), "n".repeat(254));
        store.put(key(&longest), "{}".to_owned());
        for key in [
            ObjectKey::new("", "ConfigMap", "shop", &longer),
            ObjectKey::new("", "ConfigMap", &longer, "a"),
            ObjectKey::new("", &longer, "shop", "a"),
            ObjectKey::new(&longer, "ConfigMap", "shop", "a"),
        ] {
            store.put(key, "{}".to_owned());
        }
        assert_eq!((store.by_key.len(), store.forgotten()), (1, 0));
        assert!(store.get(&key(&longest)).is_some());
    }
}
