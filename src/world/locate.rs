//! Locates the records of the release that an object belongs to. Every world uses the same order of trust.

use crate::engine::evidence::Located;
use crate::engine::release::stamps::TARGET_NAMESPACE;
use crate::engine::release::{Entry, History, Storage};

/// The release that an object belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReleaseQuery<'q> {
    pub(super) name: &'q str,
    /// The namespace that its objects go to.
    pub(super) target_namespace: &'q str,
    /// The namespace of its HelmRelease. The records are there too, unless the HelmRelease sets another `storageNamespace`.
    pub(super) origin: Option<&'q str>,
    /// The `storageNamespace` of its HelmRelease, where that is known.
    pub(super) storage_namespace: Option<&'q str>,
}

/// The records of one name in one namespace and storage.
#[derive(Debug)]
pub(super) struct RecordSet {
    pub(super) storage: Storage,
    pub(super) namespace: String,
    /// In no particular order.
    pub(super) entries: Vec<Entry>,
}

impl RecordSet {
    /// Groups the records of one name by storage and namespace.
    pub(super) fn gather(records: impl IntoIterator<Item = (Storage, String, Entry)>) -> Vec<Self> {
        let mut record_sets: Vec<Self> = Vec::new();
        for (storage, namespace, entry) in records {
            match record_sets
                .iter_mut()
                .find(|record_set| record_set.storage == storage && record_set.namespace == namespace)
            {
                Some(record_set) => record_set.entries.push(entry),
                None => record_sets.push(Self { storage, namespace, entries: vec![entry] }),
            }
        }
        record_sets
    }
}

/// Why records are taken for those of a release, the best reason last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trust {
    /// They are in the namespace of its objects, as records of a person's `helm` are.
    Target,
    /// They are in the namespace of its HelmRelease.
    Origin,
    /// They are in the `storageNamespace` of its HelmRelease.
    HelmRelease,
    /// One of them has the stamp of the target namespace, which only Interlock writes.
    Stamp,
}

impl<'q> ReleaseQuery<'q> {
    /// The namespaces in which records may be without a stamp.
    pub(super) fn namespaces(self) -> impl Iterator<Item = &'q str> {
        let origin = self.origin.filter(|origin| *origin != self.target_namespace);
        let near = [self.origin, Some(self.target_namespace)];
        let storage_namespace = self.storage_namespace.filter(|_| !near.contains(&self.storage_namespace));
        storage_namespace.into_iter().chain(origin).chain([self.target_namespace])
    }

    /// The most trusted record set. Among equally trusted sets it is the one whose newest record was created last: the
    /// others are left over from an earlier life of the release.
    pub(super) fn choose(self, record_sets: impl IntoIterator<Item = RecordSet>) -> Option<Located> {
        let candidates = record_sets.into_iter().filter_map(|record_set| {
            let trust = self.trust(&record_set)?;
            let RecordSet { storage, namespace, mut entries } = record_set;
            // Records without a stamp are older than Interlock, or have lost their stamp.
            entries.retain(|entry| target(entry).is_none_or(|target| target == self.target_namespace));
            let history = History::new(entries);
            let created = history.newest()?.created;
            // The last two make the result independent of the order of the sets.
            let rank = (trust, created, (storage.kind(), storage.owner()), namespace.clone());
            Some((rank, Located { storage, namespace, history }))
        });
        candidates.max_by(|(one, _), (other, _)| one.cmp(other)).map(|(_, located)| located)
    }

    fn trust(self, record_set: &RecordSet) -> Option<Trust> {
        let stamped = record_set.entries.iter().any(|entry| target(entry) == Some(self.target_namespace));
        match record_set.namespace.as_str() {
            _ if stamped => Some(Trust::Stamp),
            namespace if self.storage_namespace == Some(namespace) => Some(Trust::HelmRelease),
            namespace if self.origin == Some(namespace) => Some(Trust::Origin),
            namespace if namespace == self.target_namespace => Some(Trust::Target),
            _ => None,
        }
    }
}

/// The records of a ClusterExtension among those of its name: those of OLM. If several namespaces have some, those of the
/// operator-controller that wrote last.
pub(super) fn locate_extension(record_sets: impl IntoIterator<Item = RecordSet>) -> Option<Located> {
    let ours = record_sets.into_iter().filter(|record_set| record_set.storage == Storage::OlmIndex);
    let located = ours.map(|RecordSet { storage, namespace, entries }| {
        let history = History::new(entries);
        (history.newest().and_then(|newest| newest.created), Located { storage, namespace, history })
    });
    located.max_by_key(|(created, _)| *created).map(|(_, located)| located)
}

/// The namespace of the objects of a record's release, where the record has that stamp.
fn target(entry: &Entry) -> Option<&str> {
    entry.stamps.get(TARGET_NAMESPACE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::release::{Revision, Stamps, Status};

    const QUERY: ReleaseQuery<'static> =
        ReleaseQuery { name: "web", target_namespace: "shop", origin: Some("flux"), storage_namespace: None };

    fn record(revision: u64, stamp: Option<&str>, created: i64) -> Entry {
        Entry {
            created: jiff::Timestamp::from_second(created).ok(),
            stamps: Stamps::of(|key| (key == TARGET_NAMESPACE).then(|| stamp.map(str::to_owned)).flatten()),
            ..Entry::of_web(revision, Status::Deployed)
        }
    }

    fn record_set(storage: Storage, namespace: &str, entries: Vec<Entry>) -> RecordSet {
        RecordSet { storage, namespace: namespace.to_owned(), entries }
    }

    fn chosen(record_sets: Vec<RecordSet>) -> Option<(Storage, String)> {
        QUERY.choose(record_sets).map(|located| (located.storage, located.namespace))
    }

    #[test]
    fn a_stamp_is_trusted_more_than_the_origin_and_that_more_than_the_target() {
        let target = || record_set(Storage::Secret, "shop", vec![record(9, None, 900)]);
        let origin = || record_set(Storage::Secret, "flux", vec![record(8, None, 800)]);
        let stamped = || record_set(Storage::OlmIndex, "olm", vec![record(7, Some("shop"), 700)]);
        let named = |storage, namespace: &str| Some((storage, namespace.to_owned()));
        assert_eq!(chosen(vec![target()]), named(Storage::Secret, "shop"));
        assert_eq!(chosen(vec![target(), origin()]), named(Storage::Secret, "flux"));
        assert_eq!(chosen(vec![stamped(), target(), origin()]), named(Storage::OlmIndex, "olm"));
    }

    #[test]
    fn what_its_helm_release_says_is_trusted_more_than_where_that_lies_and_less_than_a_stamp() {
        let query = ReleaseQuery { storage_namespace: Some("records"), ..QUERY };
        let record_sets = |stamp| {
            [
                record_set(Storage::Secret, "flux", vec![record(9, stamp, 900)]),
                record_set(Storage::Secret, "records", vec![record(8, None, 800)]),
            ]
        };
        let chosen = |stamp| query.choose(record_sets(stamp)).map(|located| located.namespace);
        assert_eq!(chosen(None).as_deref(), Some("records"));
        assert_eq!(chosen(Some("shop")).as_deref(), Some("flux"));
        assert_eq!(query.namespaces().collect::<Vec<_>>(), ["records", "flux", "shop"]);
        let near = ReleaseQuery { storage_namespace: Some("flux"), ..QUERY };
        assert_eq!(near.namespaces().collect::<Vec<_>>(), ["flux", "shop"]);
    }

    #[test]
    fn records_of_the_name_that_belong_elsewhere_do_not_count() {
        assert_eq!(chosen(vec![record_set(Storage::Secret, "other", vec![record(1, None, 1)])]), None);
        assert_eq!(chosen(vec![record_set(Storage::Secret, "shop", vec![record(1, Some("elsewhere"), 1)])]), None);
        assert_eq!(chosen(vec![record_set(Storage::Secret, "flux", Vec::new())]), None);
    }

    #[test]
    fn records_without_a_stamp_belong_to_the_stamped_ones_beside_them() {
        let entries = vec![record(1, None, 1), record(2, Some("shop"), 2), record(3, Some("elsewhere"), 3)];
        let located = QUERY.choose([record_set(Storage::Secret, "flux", entries)]).unwrap();
        assert_eq!(located.history.newest().unwrap().revision, Revision(2));
        assert_eq!(located.history.below(Revision(2)).count(), 1);
    }

    #[test]
    fn of_equal_places_the_one_in_use_is_taken() {
        let old = || record_set(Storage::Secret, "shop", vec![record(40, None, 100)]);
        let new = || record_set(Storage::ConfigMap, "shop", vec![record(1, None, 200)]);
        assert_eq!(chosen(vec![old(), new()]), Some((Storage::ConfigMap, "shop".to_owned())));
        assert_eq!(chosen(vec![new(), old()]), Some((Storage::ConfigMap, "shop".to_owned())));
    }

    #[test]
    fn a_namespace_is_asked_once() {
        assert_eq!(QUERY.namespaces().collect::<Vec<_>>(), ["flux", "shop"]);
        let same = ReleaseQuery { origin: Some("shop"), ..QUERY };
        assert_eq!(same.namespaces().collect::<Vec<_>>(), ["shop"]);
    }
}
