//! An index of all records by their metadata, kept by a watch, so that the release of an object is found without a read.

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

/// The maximum number of releases in one namespace that are returned for the objects of another namespace.
const MAX_STAMPED: usize = 100;

/// The records in objects of one kind, without superseded records. No rule about objects needs those, and they are the majority.
///
/// A release takes 1.3 KiB, or 2 KiB with the overhead of the allocator: names, uids and stamps of its deployed record and of one
/// more. All other metadata is dropped, above all managedFields.
#[derive(Debug)]
pub(super) struct Index {
    kind: &'static str,
    releases: HashMap<Arc<RecordLocation>, Vec<CompactEntry>>,
    /// The location of the record in an object. Labels may change, so they do not identify the record.
    objects: HashMap<ObjectName, Arc<RecordLocation>>,
    /// The locations of records whose stamp names another namespace than the record's own.
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

/// An [`Entry`] that takes less memory: the map in [`Stamps`] alone takes half a KiB.
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
        // A location may occur twice, with the same records.
        let found = stamped.chain(near).filter_map(|location| Some((self.releases.get(&location)?, location)));
        found.map(|(records, location)| location.with(records)).collect()
    }

    /// The record sets of all releases of a name in one storage.
    pub(super) fn record_sets_of(&self, storage: Storage, release: &str) -> Vec<locate::RecordSet> {
        let found = self.releases.iter().filter(|(it, _)| it.storage == storage && *it.release == *release);
        found.map(|(location, records)| location.with(records)).collect()
    }

    /// The record sets in other namespaces with a record that is stamped for objects in this one, each with the name of its
    /// release. At most [`MAX_STAMPED`] from one namespace, so that no namespace crowds out another.
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

    /// The record sets with a record that has a stamp, each with the name of its release.
    pub(super) fn with_stamp(&self, key: &str) -> Vec<(String, locate::RecordSet)> {
        let stamped = self.releases.iter().filter(|(_, records)| records.iter().any(|it| it.stamp(key).is_some()));
        stamped.map(|(location, records)| (location.release.to_string(), location.with(records))).collect()
    }

    /// The releases with the oldest operations in flight, at most `limit`, and the total number of such releases.
    pub(super) fn in_flight(&self, limit: usize) -> (Vec<InFlight>, usize) {
        let mut found: Vec<_> = self
            .releases
            .iter()
            .filter_map(|(location, records)| {
                let newest = records.iter().max_by_key(|entry| entry.revision)?;
                newest.status.is_in_flight().then(|| (newest.started(), location, records))
            })
            .collect();
        // The order is that of `InFlight::oldest`, so that the results of two indexes can be merged. Only the kept part is copied.
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
        // A release has one or two records. The default capacity of four would be most of the index.
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
        Self { namespace: shared(&metadata.namespace), name: shared(&metadata.name) }
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

    /// Reports records that were deleted while no watch ran: the list lacks them.
    fn follow(&self, old: &Self) {
        let gone = old.objects.iter().filter(|(object, _)| {
            let (before, now) = (old.entry_of(object), self.entry_of(object));
            before.is_none_or(|before| now.is_none_or(|now| *now.uid != *before.uid))
        });
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

    /// When the operation of the record started, as in [`Entry::started`].
    fn started(&self) -> Option<Timestamp> {
        let stamps = Stamps::of(|key| self.stamp(key).filter(|_| key == STARTED).map(str::to_owned));
        stamps.operation_started(Some(self.status), self.created)
    }

    fn stamp(&self, key: &str) -> Option<&str> {
        self.stamps.iter().find(|(stamp, _)| *stamp == key).map(|(_, value)| value.as_ref())
    }

    /// The release by the namespace of its objects, if this is not the namespace of the record.
    fn elsewhere(&self, location: &RecordLocation) -> Option<TargetRelease> {
        let namespace = self.stamp(TARGET_NAMESPACE).filter(|namespace| **namespace != *location.namespace)?;
        Some(TargetRelease { release: location.release.clone(), namespace: namespace.into() })
    }
}

fn shared(text: &Option<String>) -> Arc<str> {
    text.as_deref().unwrap_or_default().into()
}

#[cfg(test)]
mod tests;
