//! An index of all records by their metadata, kept by a watch, so that the release of an object is found without a read.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::deleted_pending::{DeletedPendingRecord, DeletedPendingRecords};
use super::watch::Feed;
use crate::engine::release::stamps::{KEYS, TARGET_NAMESPACE};
use crate::engine::release::{Entry, Revision, Stamps, Status, Storage};
use crate::world::locate::{self, ReleaseQuery};
use crate::world::read;

/// The records in objects of one kind, without superseded ones: no rule about objects needs those, and they are the
/// majority.
///
/// A release takes 1.3 KiB, or 2 KiB with the overhead of the allocator: names, uids and stamps of its deployed record and
/// of one more. All other metadata, above all managedFields, is dropped.
#[derive(Debug)]
pub(super) struct Index {
    kind: &'static str,
    releases: HashMap<Arc<RecordLocation>, Vec<CompactEntry>>,
    /// The location of the record in an object. Its labels may change, so they do not identify it.
    objects: HashMap<ObjectName, Arc<RecordLocation>>,
    /// The locations of records whose stamp names another namespace than their own.
    elsewhere: HashMap<TargetRelease, Vec<Arc<RecordLocation>>>,
    deleted_pending: Arc<DeletedPendingRecords>,
}

/// The records of one name in one namespace and storage.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RecordLocation {
    storage: Storage,
    namespace: Arc<str>,
    release: Box<str>,
}

/// An object of the index's kind.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ObjectName {
    namespace: Arc<str>,
    name: Arc<str>,
}

/// A release, by the namespace of its objects.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TargetRelease {
    release: Box<str>,
    namespace: Box<str>,
}

/// An [`Entry`] in less memory: the map in [`Stamps`] alone takes half a KiB.
#[derive(Debug)]
struct CompactEntry {
    name: Arc<str>,
    uid: Box<str>,
    resource_version: Box<str>,
    revision: Revision,
    status: Status,
    created: Option<Timestamp>,
    written: Option<Timestamp>,
    stamps: Box<[(&'static str, Box<str>)]>,
}

impl Index {
    /// An empty index of the records in objects of a kind, `Secret` or `ConfigMap`. It adds deleted pending records to
    /// `deleted_pending`.
    pub(super) fn new(kind: &'static str, deleted_pending: Arc<DeletedPendingRecords>) -> Self {
        Self { kind, releases: HashMap::new(), objects: HashMap::new(), elsewhere: HashMap::new(), deleted_pending }
    }

    /// The record sets that may belong to a release.
    pub(super) fn places(&self, sought: ReleaseQuery<'_>) -> Vec<locate::RecordSet> {
        let target = TargetRelease { release: sought.name.into(), namespace: sought.target_namespace.into() };
        let stamped = self.elsewhere.get(&target).into_iter().flatten().cloned();
        let near = sought.namespaces().flat_map(|namespace| {
            [Storage::Secret, Storage::ConfigMap, Storage::OlmIndex].map(|storage| {
                Arc::new(RecordLocation { storage, namespace: namespace.into(), release: sought.name.into() })
            })
        });
        // A location may be in both; its records are the same each time.
        let found = stamped.chain(near).filter_map(|place| Some((self.releases.get(&place)?, place)));
        found.map(|(records, place)| place.with(records)).collect()
    }

    /// The record sets of all releases of a name in one storage.
    pub(super) fn places_of(&self, storage: Storage, release: &str) -> Vec<locate::RecordSet> {
        let named = |place: &RecordLocation| place.storage == storage && *place.release == *release;
        let found = self.releases.iter().filter(|(place, _)| named(place));
        found.map(|(place, records)| place.with(records)).collect()
    }

    /// The record sets of a release in the namespace of its records.
    pub(super) fn places_in(&self, namespace: &str, release: &str) -> Vec<locate::RecordSet> {
        let places = [Storage::Secret, Storage::ConfigMap, Storage::OlmIndex].map(|storage| RecordLocation {
            storage,
            namespace: namespace.into(),
            release: release.into(),
        });
        places.iter().filter_map(|place| Some(place.with(self.releases.get(place)?))).collect()
    }

    fn insert(&mut self, metadata: &ObjectMeta) {
        let Some((storage, release, entry)) = read::record(self.kind, metadata) else { return };
        if entry.status == Status::Superseded {
            return;
        }
        let namespace: Arc<str> = metadata.namespace.as_deref().unwrap_or_default().into();
        let place = RecordLocation { storage, namespace, release: release.into() };
        let place = self.releases.get_key_value(&place).map_or_else(|| Arc::new(place), |(known, _)| Arc::clone(known));
        let kept = CompactEntry::of(entry);
        if let Some(target) = kept.elsewhere(&place) {
            let places = self.elsewhere.entry(target).or_default();
            if !places.contains(&place) {
                places.push(Arc::clone(&place));
            }
        }
        let object = ObjectName { namespace: Arc::clone(&place.namespace), name: Arc::clone(&kept.name) };
        self.objects.insert(object, Arc::clone(&place));
        let records = self.releases.entry(place).or_default();
        // A release has one or two records; the capacity of four that a vector starts with would be most of the index.
        records.reserve_exact(1);
        records.push(kept);
    }

    fn remove(&mut self, metadata: &ObjectMeta) {
        let object = ObjectName::of(metadata);
        let Some(place) = self.objects.remove(&object) else { return };
        let Some(records) = self.releases.get_mut(&place) else { return };
        let Some(position) = records.iter().position(|kept| kept.name == object.name) else { return };
        let gone = records.swap_remove(position).elsewhere(&place);
        let gone = gone.filter(|gone| !records.iter().any(|kept| kept.elsewhere(&place).as_ref() == Some(gone)));
        if records.is_empty() {
            self.releases.remove(&place);
        }
        if let Some(target) = gone
            && let Some(places) = self.elsewhere.get_mut(&target)
        {
            places.retain(|other| *other != place);
            if places.is_empty() {
                self.elsewhere.remove(&target);
            }
        }
    }
}

impl Index {
    fn kept(&self, object: &ObjectName) -> Option<&CompactEntry> {
        self.releases.get(self.objects.get(object)?)?.iter().find(|kept| kept.name == object.name)
    }

    /// Reports a deleted object if its record was the newest of its release and pending.
    fn report_if_pending(&self, place: &Arc<RecordLocation>, object: &ObjectName) {
        let records = self.releases.get(place).into_iter().flatten();
        let Some(newest) = records.max_by_key(|kept| kept.revision) else { return };
        if newest.name == object.name && newest.status.is_pending() {
            self.deleted_pending.add(DeletedPendingRecord {
                storage: place.storage,
                namespace: place.namespace.to_string(),
                release: place.release.to_string(),
                record: newest.entry(),
            });
        }
    }
}

impl ObjectName {
    fn of(metadata: &ObjectMeta) -> Self {
        let part = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
        Self { namespace: part(&metadata.namespace), name: part(&metadata.name) }
    }
}

impl RecordLocation {
    fn with(&self, records: &[CompactEntry]) -> locate::RecordSet {
        locate::RecordSet {
            storage: self.storage,
            namespace: self.namespace.to_string(),
            entries: records.iter().map(CompactEntry::entry).collect(),
        }
    }
}

impl Feed for Index {
    fn fresh(&self) -> Self {
        Self::new(self.kind, Arc::clone(&self.deleted_pending))
    }

    fn apply(&mut self, metadata: &ObjectMeta) {
        self.remove(metadata);
        self.insert(metadata);
    }

    fn delete(&mut self, metadata: &ObjectMeta) {
        let object = ObjectName::of(metadata);
        if let Some(place) = self.objects.get(&object) {
            self.report_if_pending(place, &object);
        }
        self.remove(metadata);
    }

    /// What was deleted without a watch is missing in the list.
    fn follow(&self, old: &Self) {
        let is_there =
            |index: &Self, object: &ObjectName, uid: &str| index.kept(object).is_some_and(|kept| *kept.uid == *uid);
        let gone = old
            .objects
            .iter()
            .filter(|(object, _)| old.kept(object).is_none_or(|kept| !is_there(self, object, &kept.uid)));
        gone.for_each(|(object, place)| old.report_if_pending(place, object));
    }
}

impl CompactEntry {
    fn of(entry: Entry) -> Self {
        let Entry { name, uid, resource_version, revision, status, created, written, stamps } = entry;
        Self {
            name: name.into(),
            uid: uid.into(),
            resource_version: resource_version.into(),
            revision,
            status,
            created,
            written,
            stamps: KEYS.into_iter().filter_map(|key| Some((key, stamps.get(key)?.into()))).collect(),
        }
    }

    fn entry(&self) -> Entry {
        Entry {
            name: self.name.to_string(),
            uid: self.uid.to_string(),
            resource_version: self.resource_version.to_string(),
            revision: self.revision,
            status: self.status,
            created: self.created,
            written: self.written,
            stamps: Stamps::of(|key| self.stamp(key).map(str::to_owned)),
        }
    }

    fn stamp(&self, key: &str) -> Option<&str> {
        self.stamps.iter().find(|(stamp, _)| *stamp == key).map(|(_, value)| value.as_ref())
    }

    /// The release by the namespace of its objects, if that is not the namespace of the record.
    fn elsewhere(&self, place: &RecordLocation) -> Option<TargetRelease> {
        let namespace = self.stamp(TARGET_NAMESPACE).filter(|namespace| **namespace != *place.namespace)?;
        Some(TargetRelease { release: place.release.clone(), namespace: namespace.into() })
    }
}

#[cfg(test)]
mod tests;
