//! Finds the records that may belong to the release of an object. Every world searches the same places. The rules decide which
//! records count.

use crate::evidence::CandidateRecords;
use crate::object::account_namespace;
use crate::release::{Entry, History, Storage};

/// The release that an object belongs to.
#[derive(Debug, Clone, Copy)]
pub struct ReleaseQuery<'q> {
    pub name: &'q str,
    /// The namespace of its objects. Its records are there too, unless Flux or OLM store them elsewhere.
    pub target_namespace: &'q str,
    /// Where its records may be, according to the HelmRelease that the object names.
    pub origin: Option<OriginRecords<'q>>,
}

/// The records of the HelmRelease that the labels of an object name.
#[derive(Debug, Clone, Copy)]
pub struct OriginRecords<'q> {
    /// The namespace of the HelmRelease.
    pub origin: &'q str,
    /// The namespace of the records, from the status of the HelmRelease. It is only a place to search, not a proof.
    pub records: &'q str,
}

/// The records with one name in one namespace and storage.
#[derive(Debug)]
pub struct RecordSet {
    pub storage: Storage,
    pub namespace: String,
    /// In no particular order.
    pub entries: Vec<Entry>,
}

impl RecordSet {
    /// Groups the records with one name by storage and namespace.
    pub fn gather(records: impl IntoIterator<Item = (Storage, String, Entry)>) -> Vec<Self> {
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

impl<'q> ReleaseQuery<'q> {
    /// The namespaces in which records without a stamp may be.
    pub fn namespaces(self) -> impl Iterator<Item = &'q str> {
        let elsewhere = self.origin.map(|it| it.records).filter(|namespace| *namespace != self.target_namespace);
        [self.target_namespace].into_iter().chain(elsewhere)
    }

    /// The record sets that may belong to the release: those in these namespaces, and those elsewhere that are stamped
    /// with the namespace of its objects. Records stamped with another namespace are left out.
    pub fn candidates(self, record_sets: impl IntoIterator<Item = RecordSet>) -> Vec<CandidateRecords> {
        let candidates = record_sets.into_iter().filter_map(|record_set| {
            let RecordSet { storage, namespace, mut entries } = record_set;
            let near = self.namespaces().any(|near| near == namespace);
            let stamped = entries.iter().any(|entry| target(entry) == Some(self.target_namespace));
            // Records without a stamp are older than Interlock, or have lost their stamp.
            entries.retain(|entry| target(entry).is_none_or(|target| target == self.target_namespace));
            let is_candidate = (near || stamped) && !entries.is_empty();
            is_candidate.then(|| {
                let history = History::new(entries);
                let of_origin = self.origin.filter(|it| it.records == namespace && storage == Storage::Secret);
                let held_for_origin = of_origin.is_some_and(|it| it.is_held(&history));
                CandidateRecords { storage, namespace, history, held_for_origin }
            })
        });
        candidates.collect()
    }
}

impl OriginRecords<'_> {
    /// Whether an account in the namespace of the HelmRelease holds the newest record. Flux impersonates such an
    /// account.
    fn is_held(self, history: &History) -> bool {
        let holder = history.newest().and_then(|newest| newest.stamps.holder());
        holder.and_then(account_namespace) == Some(self.origin)
    }
}

impl RecordSet {
    /// Whether any of these records is stamped for objects in a namespace.
    pub fn is_stamped_for(&self, target_namespace: &str) -> bool {
        self.entries.iter().any(|entry| target(entry) == Some(target_namespace))
    }

    /// The records of a release, found in the namespace of the query.
    pub fn into_candidate(self) -> CandidateRecords {
        let Self { storage, namespace, entries } = self;
        CandidateRecords { storage, namespace, history: History::new(entries), held_for_origin: false }
    }
}

/// The records that may belong to a ClusterExtension: those that OLM stores.
pub fn candidates_for_extension(record_sets: impl IntoIterator<Item = RecordSet>) -> Vec<CandidateRecords> {
    let of_extensions = record_sets.into_iter().filter(|record_set| record_set.storage == Storage::Index);
    of_extensions.map(RecordSet::into_candidate).collect()
}

/// The namespace of the objects of a record's release, if the record is stamped with it.
fn target(entry: &Entry) -> Option<&str> {
    entry.stamps.target_namespace()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::stamps::{HOLDER, TARGET_NAMESPACE};
    use crate::release::{Revision, Stamps, Status};

    const ORIGIN: OriginRecords<'static> = OriginRecords { origin: "tenants", records: "flux" };
    const QUERY: ReleaseQuery<'static> = ReleaseQuery { name: "web", target_namespace: "shop", origin: Some(ORIGIN) };

    fn record(revision: u64, stamp: Option<&str>) -> Entry {
        Entry {
            stamps: Stamps::of(|key| (key == TARGET_NAMESPACE).then(|| stamp.map(str::to_owned)).flatten()),
            ..Entry::of_web(revision, Status::Deployed)
        }
    }

    fn record_set(storage: Storage, namespace: &str, entries: Vec<Entry>) -> RecordSet {
        RecordSet { storage, namespace: namespace.to_owned(), entries }
    }

    fn found(record_sets: Vec<RecordSet>) -> Vec<(Storage, String, bool)> {
        let found = QUERY.candidates(record_sets).into_iter();
        found.map(|candidate| (candidate.storage, candidate.namespace, candidate.held_for_origin)).collect()
    }

    #[test]
    fn candidates_are_at_home_or_reported_by_flux_or_stamped() {
        let record_sets = vec![
            record_set(Storage::Secret, "shop", vec![record(9, None)]),
            record_set(Storage::ConfigMap, "shop", vec![record(1, Some("shop"))]),
            record_set(Storage::Secret, "flux", vec![record(8, None)]),
            record_set(Storage::Index, "olm", vec![record(7, Some("shop"))]),
            record_set(Storage::Secret, "other", vec![record(1, None)]),
        ];
        let named = |storage, namespace: &str, held| (storage, namespace.to_owned(), held);
        assert_eq!(
            found(record_sets),
            [
                named(Storage::Secret, "shop", false),
                named(Storage::ConfigMap, "shop", false),
                named(Storage::Secret, "flux", false),
                named(Storage::Index, "olm", false),
            ]
        );
    }

    #[test]
    fn records_stamped_for_elsewhere_are_no_candidates() {
        assert_eq!(found(vec![record_set(Storage::Secret, "shop", vec![record(1, Some("elsewhere"))])]), []);
        assert_eq!(found(vec![record_set(Storage::Secret, "flux", Vec::new())]), []);
    }

    #[test]
    fn unstamped_records_belong_to_the_stamped_ones() {
        let entries = vec![record(1, None), record(2, Some("shop")), record(3, Some("elsewhere"))];
        let candidate = QUERY.candidates([record_set(Storage::Secret, "olm", entries)]);
        assert_eq!(candidate[0].history.newest().unwrap().revision, Revision(2));
        assert_eq!(candidate[0].history.below(Revision(2)).count(), 1);
    }

    #[test]
    fn each_namespace_is_listed_once() {
        assert_eq!(QUERY.namespaces().collect::<Vec<_>>(), ["shop", "flux"]);
        let same = ReleaseQuery { origin: Some(OriginRecords { records: "shop", ..ORIGIN }), ..QUERY };
        assert_eq!(same.namespaces().collect::<Vec<_>>(), ["shop"]);
    }

    #[test]
    fn only_accounts_near_the_helm_release_hold_its_records() {
        for (storage, namespace, holder, held) in [
            (Storage::Secret, "flux", "system:serviceaccount:tenants:deployer", true),
            (Storage::Secret, "flux", "system:serviceaccount:flux:deployer", false),
            (Storage::Secret, "flux", "alice", false),
            (Storage::ConfigMap, "flux", "system:serviceaccount:tenants:deployer", false),
            (Storage::Secret, "shop", "system:serviceaccount:tenants:deployer", false),
        ] {
            let stamps = Stamps::of(|key| (key == HOLDER).then(|| holder.to_owned()));
            let entries = vec![Entry { stamps, ..Entry::of_web(1, Status::Deployed) }];
            let found = found(vec![record_set(storage, namespace, entries)]);
            assert_eq!(found, [(storage, namespace.to_owned(), held)], "{holder}");
        }
    }
}
