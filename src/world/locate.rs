//! Finds the records that may be those of the release that an object belongs to. Every world looks in the same places; the rules say
//! whose records count.

use crate::engine::evidence::Located;
use crate::engine::release::{Entry, History, Storage};

/// The release that an object belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReleaseQuery<'q> {
    pub(super) name: &'q str,
    /// The namespace that its objects go to. Its records are there too, unless Flux or OLM keep them elsewhere.
    pub(super) target_namespace: &'q str,
    /// Where Flux has installed it, by the status of the HelmRelease that the object names.
    pub(super) installed_in: Option<&'q str>,
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

impl<'q> ReleaseQuery<'q> {
    /// The namespaces in which records may be without a stamp.
    pub(super) fn namespaces(self) -> impl Iterator<Item = &'q str> {
        let elsewhere = self.installed_in.filter(|namespace| *namespace != self.target_namespace);
        [self.target_namespace].into_iter().chain(elsewhere)
    }

    /// The sets that may be those of the release, without the records whose stamp names another namespace: those in these namespaces,
    /// and those elsewhere with a stamp of the namespace of its objects.
    pub(super) fn candidates(self, record_sets: impl IntoIterator<Item = RecordSet>) -> Vec<Located> {
        let candidates = record_sets.into_iter().filter_map(|record_set| {
            let RecordSet { storage, namespace, mut entries } = record_set;
            let near = self.namespaces().any(|near| near == namespace);
            let stamped = entries.iter().any(|entry| target(entry) == Some(self.target_namespace));
            // Records without a stamp are older than Interlock, or have lost their stamp.
            entries.retain(|entry| target(entry).is_none_or(|target| target == self.target_namespace));
            let installed = self.installed_in == Some(namespace.as_str()) && storage == Storage::Secret;
            let is_candidate = (near || stamped) && !entries.is_empty();
            is_candidate.then(|| Located { storage, namespace, history: History::new(entries), installed })
        });
        candidates.collect()
    }
}

impl RecordSet {
    /// Whether these are records of OLM for objects in a namespace.
    pub(super) fn is_of_extension_in(&self, target_namespace: &str) -> bool {
        self.storage == Storage::OlmIndex && self.entries.iter().any(|entry| target(entry) == Some(target_namespace))
    }

    /// The records of a release in a namespace that is asked about.
    pub(super) fn located(self, installed: bool) -> Located {
        let Self { storage, namespace, entries } = self;
        Located { storage, namespace, history: History::new(entries), installed }
    }
}

/// What may be the records of a ClusterExtension among those of its name: those of OLM.
pub(super) fn candidates_for_extension(record_sets: impl IntoIterator<Item = RecordSet>) -> Vec<Located> {
    let ours = record_sets.into_iter().filter(|record_set| record_set.storage == Storage::OlmIndex);
    ours.map(|record_set| record_set.located(false)).collect()
}

/// The namespace of the objects of a record's release, where the record has that stamp.
fn target(entry: &Entry) -> Option<&str> {
    entry.stamps.target_namespace()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::release::stamps::TARGET_NAMESPACE;
    use crate::engine::release::{Revision, Stamps, Status};

    const QUERY: ReleaseQuery<'static> =
        ReleaseQuery { name: "web", target_namespace: "shop", installed_in: Some("flux") };

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
        found.map(|located| (located.storage, located.namespace, located.installed)).collect()
    }

    #[test]
    fn records_are_candidates_at_home_where_flux_installed_them_and_with_a_stamp() {
        let record_sets = vec![
            record_set(Storage::Secret, "shop", vec![record(9, None)]),
            record_set(Storage::ConfigMap, "shop", vec![record(1, Some("shop"))]),
            record_set(Storage::Secret, "flux", vec![record(8, None)]),
            record_set(Storage::OlmIndex, "olm", vec![record(7, Some("shop"))]),
            record_set(Storage::Secret, "other", vec![record(1, None)]),
        ];
        let named = |storage, namespace: &str, installed| (storage, namespace.to_owned(), installed);
        assert_eq!(
            found(record_sets),
            [
                named(Storage::Secret, "shop", false),
                named(Storage::ConfigMap, "shop", false),
                named(Storage::Secret, "flux", true),
                named(Storage::OlmIndex, "olm", false),
            ]
        );
    }

    #[test]
    fn records_of_the_name_that_belong_elsewhere_are_none() {
        assert_eq!(found(vec![record_set(Storage::Secret, "shop", vec![record(1, Some("elsewhere"))])]), []);
        assert_eq!(found(vec![record_set(Storage::Secret, "flux", Vec::new())]), []);
    }

    #[test]
    fn records_without_a_stamp_belong_to_the_stamped_ones_beside_them() {
        let entries = vec![record(1, None), record(2, Some("shop")), record(3, Some("elsewhere"))];
        let located = QUERY.candidates([record_set(Storage::Secret, "olm", entries)]);
        assert_eq!(located[0].history.newest().unwrap().revision, Revision(2));
        assert_eq!(located[0].history.below(Revision(2)).count(), 1);
    }

    #[test]
    fn a_namespace_is_asked_once() {
        assert_eq!(QUERY.namespaces().collect::<Vec<_>>(), ["shop", "flux"]);
        let same = ReleaseQuery { installed_in: Some("shop"), ..QUERY };
        assert_eq!(same.namespaces().collect::<Vec<_>>(), ["shop"]);
    }
}
