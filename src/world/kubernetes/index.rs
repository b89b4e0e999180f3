//! An index of all records by their metadata, entry by a watch, so that the release of an object is found without a read.

use std::collections::HashMap;
use std::sync::Arc;

use interlock_engine::answers::locate::{self, ReleaseQuery};
use interlock_engine::answers::read;
use interlock_engine::release::stamps::{KEYS, STARTED, TARGET_NAMESPACE};
use interlock_engine::release::{Entry, ReleaseRef, Revision, Stamps, Status, Storage};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::deleted_pending::{DeletedPendingRecord, DeletedPendingRecords};
use super::watch::Feed;
use crate::world::InFlight;

/// The most releases of one namespace that are named for objects in another one.
const MAX_STAMPED: usize = 100;

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
    stamps: Box<[(&'static str, Box<str>)]>,
}

impl Index {
    /// An empty index of the records in objects of a kind, `Secret` or `ConfigMap`. It adds deleted pending records to
    /// `deleted_pending`.
    pub(super) fn new(kind: &'static str, deleted_pending: Arc<DeletedPendingRecords>) -> Self {
        Self { kind, releases: HashMap::new(), objects: HashMap::new(), elsewhere: HashMap::new(), deleted_pending }
    }

    /// The record sets that may belong to a release.
    pub(super) fn record_sets(&self, query: ReleaseQuery<'_>) -> Vec<locate::RecordSet> {
        let target = TargetRelease { release: query.name.into(), namespace: query.target_namespace.into() };
        let stamped = self.elsewhere.get(&target).into_iter().flatten().cloned();
        let near = query.namespaces().flat_map(|namespace| {
            [Storage::Secret, Storage::ConfigMap, Storage::Index].map(|storage| {
                Arc::new(RecordLocation { storage, namespace: namespace.into(), release: query.name.into() })
            })
        });
        // A location may be in both; its records are the same each time.
        let found = stamped.chain(near).filter_map(|location| Some((self.releases.get(&location)?, location)));
        found.map(|(records, location)| location.with(records)).collect()
    }

    /// The record sets of all releases of a name in one storage.
    pub(super) fn record_sets_of(&self, storage: Storage, release: &str) -> Vec<locate::RecordSet> {
        let named = |location: &RecordLocation| location.storage == storage && *location.release == *release;
        let found = self.releases.iter().filter(|(location, _)| named(location));
        found.map(|(location, records)| location.with(records)).collect()
    }

    /// The record sets elsewhere with a record that is stamped for objects in a namespace, each with the name of its release. At most
    /// [`MAX_STAMPED`] of one namespace, so that none crowds out another.
    pub(super) fn stamped_for(&self, target_namespace: &str) -> Vec<(String, locate::RecordSet)> {
        let stamped = self.elsewhere.iter().filter(|(target, _)| *target.namespace == *target_namespace);
        let mut locations: Vec<_> = stamped.flat_map(|(_, locations)| locations).collect();
        locations.sort_unstable_by_key(|it| (&it.namespace, &it.release));
        let of_namespaces = locations.chunk_by(|one, other| one.namespace == other.namespace);
        let kept = of_namespaces.flat_map(|of_one| of_one.iter().take(MAX_STAMPED));
        kept.filter_map(|it| Some((it.release.to_string(), it.with(self.releases.get(&***it)?)))).collect()
    }

    /// The record sets of a release in the namespace of its records.
    pub(super) fn record_sets_in(&self, namespace: &str, release: &str) -> Vec<locate::RecordSet> {
        let locations = [Storage::Secret, Storage::ConfigMap, Storage::Index].map(|storage| RecordLocation {
            storage,
            namespace: namespace.into(),
            release: release.into(),
        });
        locations.iter().filter_map(|location| Some(location.with(self.releases.get(location)?))).collect()
    }

    /// The releases with an operation in flight, those that started first at most `limit`, and how many there are.
    pub(super) fn in_flight(&self, limit: usize) -> (Vec<InFlight>, usize) {
        let mut found: Vec<_> = self
            .releases
            .iter()
            .filter_map(|(location, records)| {
                let newest = records.iter().max_by_key(|entry| entry.revision)?;
                newest.status.is_in_flight().then(|| (newest.started(), location, records))
            })
            .collect();
        // The same order as that of `InFlight::oldest`, so that the cut of two indexes is right. Only what is kept is copied.
        found.sort_unstable_by_key(|(started, location, _)| (*started, &*location.namespace, &*location.release));
        let total = found.len();
        let first = found.into_iter().take(limit).map(|(started, location, records)| InFlight {
            started,
            release: ReleaseRef::new(&*location.namespace, &*location.release),
            storage: location.storage,
            entries: records.iter().map(CompactEntry::entry).collect(),
        });
        (first.collect(), total)
    }

    fn insert(&mut self, metadata: &ObjectMeta) {
        let Some((storage, release, entry)) = read::record(self.kind, metadata) else { return };
        if entry.status == Status::Superseded {
            return;
        }
        let namespace: Arc<str> = metadata.namespace.as_deref().unwrap_or_default().into();
        let location = RecordLocation { storage, namespace, release: release.into() };
        let location =
            self.releases.get_key_value(&location).map_or_else(|| Arc::new(location), |(known, _)| Arc::clone(known));
        let entry = CompactEntry::of(entry);
        if let Some(target) = entry.elsewhere(&location) {
            let locations = self.elsewhere.entry(target).or_default();
            if !locations.contains(&location) {
                locations.push(Arc::clone(&location));
            }
        }
        let object = ObjectName { namespace: Arc::clone(&location.namespace), name: Arc::clone(&entry.name) };
        self.objects.insert(object, Arc::clone(&location));
        let records = self.releases.entry(location).or_default();
        // A release has one or two records; the capacity of four that a vector starts with would be most of the index.
        records.reserve_exact(1);
        records.push(entry);
    }

    fn remove(&mut self, metadata: &ObjectMeta) {
        let object = ObjectName::of(metadata);
        let Some(location) = self.objects.remove(&object) else { return };
        let Some(records) = self.releases.get_mut(&location) else { return };
        let Some(position) = records.iter().position(|entry| entry.name == object.name) else { return };
        let gone = records.swap_remove(position).elsewhere(&location);
        let gone = gone.filter(|gone| !records.iter().any(|entry| entry.elsewhere(&location).as_ref() == Some(gone)));
        if records.is_empty() {
            self.releases.remove(&location);
        }
        if let Some(target) = gone
            && let Some(locations) = self.elsewhere.get_mut(&target)
        {
            locations.retain(|other| *other != location);
            if locations.is_empty() {
                self.elsewhere.remove(&target);
            }
        }
    }
}

impl Index {
    fn entry_of(&self, object: &ObjectName) -> Option<&CompactEntry> {
        self.releases.get(self.objects.get(object)?)?.iter().find(|entry| entry.name == object.name)
    }

    /// Reports a deleted object if its record was the newest of its release and pending.
    fn report_if_pending(&self, location: &Arc<RecordLocation>, object: &ObjectName) {
        let records = self.releases.get(location).into_iter().flatten();
        let Some(newest) = records.max_by_key(|entry| entry.revision) else { return };
        if newest.name == object.name && newest.status.is_pending() {
            self.deleted_pending.add(DeletedPendingRecord {
                storage: location.storage,
                namespace: location.namespace.to_string(),
                release: location.release.to_string(),
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
        if let Some(location) = self.objects.get(&object) {
            self.report_if_pending(location, &object);
        }
        self.remove(metadata);
    }

    /// What was deleted without a watch is missing in the list.
    fn follow(&self, old: &Self) {
        let is_there = |index: &Self, object: &ObjectName, uid: &str| {
            index.entry_of(object).is_some_and(|entry| *entry.uid == *uid)
        };
        let gone = old
            .objects
            .iter()
            .filter(|(object, _)| old.entry_of(object).is_none_or(|entry| !is_there(self, object, &entry.uid)));
        gone.for_each(|(object, location)| old.report_if_pending(location, object));
    }
}

impl CompactEntry {
    fn of(entry: Entry) -> Self {
        let Entry { name, uid, resource_version, revision, status, created, stamps } = entry;
        Self {
            name: name.into(),
            uid: uid.into(),
            resource_version: resource_version.into(),
            revision,
            status,
            created,
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
            stamps: Stamps::of(|key| self.stamp(key).map(str::to_owned)),
        }
    }

    /// When the operation of the record started, as [`Entry::started`].
    fn started(&self) -> Option<Timestamp> {
        let stamps = Stamps::of(|key| self.stamp(key).filter(|_| key == STARTED).map(str::to_owned));
        stamps.operation_started(Some(self.status), self.created)
    }

    fn stamp(&self, key: &str) -> Option<&str> {
        self.stamps.iter().find(|(stamp, _)| *stamp == key).map(|(_, value)| value.as_ref())
    }

    /// The release by the namespace of its objects, if that is not the namespace of the record.
    fn elsewhere(&self, location: &RecordLocation) -> Option<TargetRelease> {
        let namespace = self.stamp(TARGET_NAMESPACE).filter(|namespace| **namespace != *location.namespace)?;
        Some(TargetRelease { release: location.release.clone(), namespace: namespace.into() })
    }
}

#[cfg(test)]
mod tests;
