//! Finds the records that may belong to the release of an object. Every world searches the same places. The rules decide which
//! records count.

use crate::evidence::{CandidateRecords, question};
use crate::managed::Origin;
use crate::owners::InstalledAt;
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
    pub origin: &'q Origin,
    /// Where its status says that the records are: only a place to search, not a proof.
    pub installed: &'q InstalledAt,
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
    /// The query for a release, which is installed there according to the HelmRelease that the object names.
    pub fn of(question: &'q question::Release, installed: Option<&'q InstalledAt>) -> Self {
        let question::Release { name, target_namespace, origin, .. } = question;
        let origin = origin.as_ref().zip(installed).map(|(origin, installed)| OriginRecords { origin, installed });
        Self { name, target_namespace, origin }
    }

    /// The namespaces in which records without a stamp may be.
    pub fn namespaces(self) -> impl Iterator<Item = &'q str> {
        let elsewhere =
            self.origin.map(|it| it.installed.records.as_str()).filter(|namespace| *namespace != self.target_namespace);
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
                let of_origin =
                    self.origin.filter(|it| it.installed.records == namespace && storage == Storage::Secret);
                let held_for_origin = of_origin.is_some_and(|it| it.is_held(&history));
                CandidateRecords { storage, namespace, history, held_for_origin }
            })
        });
        candidates.collect()
    }
}

impl OriginRecords<'_> {
    /// Whether Flux holds the newest record for the HelmRelease, by what only the mutating half writes: the stamp of the driver, or in
    /// its absence that of the account that the HelmRelease names.
    fn is_held(self, history: &History) -> bool {
        let stamps = history.stamps();
        match stamps.driver() {
            Some(driver) => driver.namespace == self.origin.namespace && driver.name == self.origin.name,
            None => self.installed.account.as_deref().is_some_and(|account| stamps.holder() == Some(account)),
        }
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
    use crate::release::stamps::{DRIVER, TARGET_NAMESPACE};
    use crate::release::{Revision, Stamps, Status};

    const DEPLOYER: &str = "system:serviceaccount:tenants:deployer";

    fn installed_at(records: &str) -> InstalledAt {
        InstalledAt { records: records.to_owned(), account: Some(DEPLOYER.to_owned()) }
    }

    fn candidates(record_sets: impl IntoIterator<Item = RecordSet>) -> Vec<CandidateRecords> {
        let origin = Origin { namespace: "tenants".to_owned(), name: "web".to_owned() };
        let origin = Some(OriginRecords { origin: &origin, installed: &installed_at("flux") });
        ReleaseQuery { name: "web", target_namespace: "shop", origin }.candidates(record_sets)
    }

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
        let found = candidates(record_sets).into_iter();
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
        let candidate = candidates([record_set(Storage::Secret, "olm", entries)]);
        assert_eq!(candidate[0].history.newest().unwrap().revision, Revision(2));
        assert_eq!(candidate[0].history.below(Revision(2)).count(), 1);
    }

    #[test]
    fn each_namespace_is_listed_once() {
        let origin = Origin { namespace: "tenants".to_owned(), name: "web".to_owned() };
        for (records, wanted) in [("flux", vec!["shop", "flux"]), ("shop", vec!["shop"])] {
            let origin = Some(OriginRecords { origin: &origin, installed: &installed_at(records) });
            let query = ReleaseQuery { name: "web", target_namespace: "shop", origin };
            assert_eq!(query.namespaces().collect::<Vec<_>>(), wanted);
        }
    }

    #[test]
    fn records_elsewhere_need_the_stamp_of_the_helm_release() {
        const OURS: &str = "HelmRelease/tenants/web/uid/1";
        for (storage, namespace, holder, driver, held) in [
            (Storage::Secret, "flux", DEPLOYER, None, true),
            (Storage::Secret, "flux", "system:serviceaccount:tenants:former", Some(OURS), true),
            (Storage::Secret, "flux", DEPLOYER, Some("HelmRelease/tenants/other/uid/1"), false),
            (Storage::Secret, "flux", "system:serviceaccount:tenants:robot", None, false),
            (Storage::Secret, "flux", "system:serviceaccount:flux:deployer", None, false),
            (Storage::Secret, "flux", "alice", None, false),
            (Storage::ConfigMap, "flux", DEPLOYER, None, false),
            (Storage::Secret, "shop", DEPLOYER, None, false),
        ] {
            let mut stamps = Stamps::held_by(holder);
            stamps.set_or_remove(DRIVER, driver.map(str::to_owned));
            let entries = vec![Entry { stamps, ..Entry::of_web(1, Status::Deployed) }];
            let found = found(vec![record_set(storage, namespace, entries)]);
            assert_eq!(found, [(storage, namespace.to_owned(), held)], "{namespace} {holder} {driver:?}");
        }
    }
}
