//! Objects in memory, and their answers to queries: for the standalone server, which stores the objects that it admits,
//! for replay, and for tests.

mod admitted;
mod apply;
mod noted_losses;
mod store;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::answers::locate::{self, RecordSet, ReleaseQuery};
use crate::answers::record::{self, RecordStore, RecordWork};
use crate::answers::{WorkloadSpec, WorkloadStatus, read, rollout};
use crate::effort::Effort;
use crate::evidence::{
    Answer, CandidateRecords, KnownLosses, NamespaceState, Query, Question, ScaledObject, ScaledRef, WERF_LEASES,
    Workload, can_be_asked_for, question,
};
use crate::freeze_resource;
use crate::json::RawObject;
use crate::losses::Loss;
use crate::managed::Origin;
use crate::object::{Metadata, ObjectKey};
use crate::owners::{
    APPLYING, Bundle, BundleRef, Driver, EXTENSIONS, HELM_RELEASES, HelmRelease, InstalledAt, is_extension_in,
    loses_with_namespace,
};
use crate::policy::{Freeze, NamespaceLabels};
use crate::release::Storage;
use crate::release::manifest::WorkloadRef;
use crate::release_override::{self, Override};
use crate::review::Request;
pub use admitted::AdmittedWrite;
use admitted::NotedWrites;
use apply::Change;
use noted_losses::NotedLosses;
use store::ObjectStore;

/// The maximum bytes of admitted writes that wait to be applied: two of the largest bodies. A write that exceeds it applies them
/// all.
const MAX_NOTED_BYTES: usize = 16 << 20;

/// Objects as JSON text. Above a limit, the oldest objects are dropped.
#[derive(Debug)]
pub struct Objects {
    stored: Mutex<ObjectStore>,
    noted: NotedWrites,
    losses: NotedLosses,
}

#[derive(Deserialize)]
struct MetadataOnly {
    metadata: ObjectMeta,
}

#[derive(Deserialize)]
struct WorkloadObject {
    metadata: ObjectMeta,
    spec: WorkloadSpec,
    status: Option<WorkloadStatus>,
}

impl Objects {
    /// An empty store for objects of at most `limit` bytes, including their names.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let stored = Mutex::new(ObjectStore::new(limit));
        Self { stored, noted: NotedWrites::default(), losses: NotedLosses::default() }
    }

    /// Notes what objects lose, which the rules about that need. Without it they judge nothing: a recording shows a part of the
    /// deletions only.
    #[must_use]
    pub fn noting_losses(self) -> Self {
        Self { losses: NotedLosses::noting(), ..self }
    }

    /// Notes a loss and its verdict. Returns whether what was known of it still held.
    pub fn note_loss(&self, loss: &Loss, known: &KnownLosses, admitted: bool, now: Timestamp) -> bool {
        self.losses.note(loss, known, admitted, now)
    }

    /// Stores an object as JSON text, and replaces the object with the same key. An object is not stored if its names
    /// are longer than an API server accepts.
    pub fn put(&self, key: ObjectKey, object: String) {
        self.lock().put(key, object);
    }

    /// Removes an object.
    pub fn remove(&self, key: &ObjectKey) {
        self.lock().discard(key);
    }

    /// Removes an object, named by its apiVersion, kind, namespace and name.
    ///
    /// # Errors
    /// One of these cannot be parsed.
    pub fn remove_object(&self, object: RawObject<'_>) -> Result<(), serde_json::Error> {
        self.remove(&ObjectKey::of_object(object)?);
        Ok(())
    }

    /// Applies an admitted request as an API server does. A dry run or a write of most subresources changes nothing.
    pub fn apply(&self, request: &Request<'_>) {
        if let Some(change) = Change::of(request) {
            self.lock().apply(change);
        }
    }

    /// Adds an admitted write. All later answers include it. Returns whether the caller must call [`Self::settle`]: no earlier
    /// write has caused a call yet.
    pub fn admit(&self, write: AdmittedWrite) -> bool {
        let is_only = self.noted.add(write);
        if self.noted.bytes() > MAX_NOTED_BYTES {
            self.settle();
            return false;
        }
        is_only
    }

    /// Whether [`Self::admit`] applies all writes at once, because this one exceeds the limit of waiting writes.
    #[must_use]
    pub fn settles_at(&self, write: &AdmittedWrite) -> bool {
        self.noted.bytes() + write.bytes() > MAX_NOTED_BYTES
    }

    /// Applies the admitted writes.
    pub fn settle(&self) {
        drop(self.lock());
    }

    /// The bytes of the admitted writes that are not applied yet.
    #[must_use]
    pub fn unsettled_bytes(&self) -> usize {
        self.noted.bytes()
    }

    /// The JSON text of an object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<String> {
        self.lock().get(key).map(str::to_owned)
    }

    /// The stamp of what protects a release, on its records in one storage.
    #[must_use]
    pub fn protector_of(&self, storage: Storage, namespace: &str, release: &str) -> Option<String> {
        let history = self.lock().history(storage, namespace, release);
        history.protectors().next().map(|protector| protector.to_string())
    }

    /// Whether an object of a kind is stored.
    #[must_use]
    pub fn holds(&self, group: &str, kind: &str) -> bool {
        self.lock().of_kind(group, kind).next().is_some()
    }

    /// The number of objects dropped because of the limit.
    #[must_use]
    pub fn forgotten(&self) -> usize {
        self.lock().forgotten()
    }

    /// A copy, which changes independently.
    #[must_use]
    pub fn branch(&self) -> Self {
        let stored = Mutex::new(self.lock().clone());
        Self { stored, noted: NotedWrites::default(), losses: self.losses.clone() }
    }

    /// Answers a query. The work on a record is done at once.
    #[must_use]
    pub fn answer(&self, query: &Query, effort: &Effort) -> Answer {
        match pin!(self.answer_by(query, effort)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer,
            Poll::Pending => unreachable!("neither the objects nor the work are waited for"),
        }
    }

    /// As [`Self::answer`], with another way to do the work on a record.
    pub async fn answer_by(&self, query: &Query, work: &impl RecordWork) -> Answer {
        self.look_up(query, work).await.unwrap_or_else(Answer::Unavailable)
    }

    async fn look_up(&self, query: &Query, work: &impl RecordWork) -> Result<Answer, String> {
        debug_assert!(
            matches!(query, Query::Parent { .. })
                || query.kinds().iter().all(|(group, kind)| can_be_asked_for(group, kind)),
            "a server would not have kept the objects for {query:?}"
        );
        Ok(match query {
            Query::Body(it) => it.found(record::body(self, work, it).await?),
            Query::Document(it) => it.found(record::document(self, work, it).await?),
            Query::History(it) => it.answered(self.lock().history(it.storage, &it.namespace, &it.release)),
            Query::Release(it) => it.answered(self.candidates(it)),
            Query::Extension(it) => it.answered(locate::candidates_for_extension(self.record_sets(&it.name))),
            Query::Parent(it) => it.found(self.parent(&it.object)),
            Query::HelmReleases(it) => it.answered(read::candidates(it.search(), &self.helm_releases(|_| true))),
            Query::HelmReleasesIn(it) => it.answered(self.helm_releases(|driver| driver.namespace == it.namespace)),
            Query::ExtensionsIn(it) => it.answered(self.extensions_in(&it.namespace)),
            Query::Overrides(it) => it.answered(
                self.overrides(|stored| stored.namespace == it.namespace && stored.spec.release == it.release),
            ),
            Query::Freezes(it) => it.answered(self.freezes(|_| true)),
            Query::FreezesIn(it) => it.answered(self.freezes(|freeze| freeze.home.as_ref() == Some(&it.namespace))),
            Query::Workloads(it) => it.answered(it.0.iter().map(|reference| self.workload(reference)).collect()),
            Query::Leases(it) => it.found(self.leases(&it.namespace)),
            Query::Object(it) => it.found(self.get(&it.0)),
            Query::AppliersIn(it) => it.answered(self.appliers_in(it)),
            Query::Losses(it) => it.found(self.losses.of(&it.0.of)),
            Query::AnyAccount(it) => {
                let exists = || it.0.iter().any(|account| self.get(account).is_some());
                it.found(self.holds("", "ServiceAccount").then(exists))
            }
            Query::Bundles(it) => it.answered(it.0.iter().map(|reference| self.bundle(reference)).collect()),
            Query::Namespace(it) => it.found(self.namespace(&it.name)),
            Query::ReleasesIn(it) => it.answered(self.releases_in(&it.namespace)),
        })
    }

    /// The records that may belong to the release of an object.
    fn candidates(&self, question: &question::Release) -> Vec<CandidateRecords> {
        let question::Release { name, target_namespace, origin, .. } = question;
        let installed = origin.as_ref().and_then(|origin| self.installed_at(origin, name, target_namespace));
        ReleaseQuery::of(question, installed.as_ref()).candidates(self.record_sets(name))
    }

    fn leases(&self, namespace: &str) -> Option<BTreeMap<String, String>> {
        let leases: ConfigMap = self.read(&ObjectKey::new("", "ConfigMap", namespace, WERF_LEASES))?;
        Some(leases.metadata.annotations.unwrap_or_default())
    }

    fn namespace(&self, name: &str) -> Option<NamespaceState> {
        let namespace: Namespace = self.read(&ObjectKey::new("", "Namespace", "", name))?;
        Some(read::namespace(&namespace.metadata))
    }

    fn workload(&self, WorkloadRef { kind, namespace, name }: &WorkloadRef) -> Option<Workload> {
        let key = ObjectKey::new("apps", kind.as_str(), namespace, name);
        let WorkloadObject { metadata, spec, status } = self.read(&key)?;
        Some(rollout(*kind, metadata.generation, spec, status))
    }

    fn bundle(&self, reference: &BundleRef) -> Result<Option<Bundle>, String> {
        let text = self.get(&ObjectKey::of_bundle(reference));
        text.map(|text| read::bundle(reference, &text)).transpose()
    }

    /// The names of all releases.
    #[must_use]
    pub fn releases(&self) -> Vec<String> {
        self.lock().names()
    }

    /// The records of all releases with this name.
    #[must_use]
    pub fn record_sets(&self, release: &str) -> Vec<RecordSet> {
        self.lock().record_sets(release)
    }

    /// The releases with records in a namespace, and those with a record elsewhere that is stamped for objects in the
    /// namespace.
    fn releases_in(&self, namespace: &str) -> Vec<(String, CandidateRecords)> {
        let releases = self.releases().into_iter().flat_map(|name| {
            self.record_sets(&name).into_iter().filter_map(move |set| {
                let counts = set.namespace == namespace || set.is_stamped_for(namespace);
                counts.then(|| (name.clone(), set.into_candidate()))
            })
        });
        releases.collect()
    }

    /// The HelmReleases that match, oldest first.
    #[must_use]
    pub fn helm_releases(&self, is_wanted: impl Fn(&Driver) -> bool) -> Vec<Driver> {
        let objects = self.lock();
        let of_kind = objects.of_kind(HELM_RELEASES.0, HELM_RELEASES.1);
        let read = of_kind.filter_map(|text| Driver::read(text).ok());
        read::oldest_first(read.filter(is_wanted))
    }

    fn extensions_in(&self, namespace: &str) -> Vec<String> {
        let objects = self.lock();
        let of_kind = objects.of_kind(EXTENSIONS.0, EXTENSIONS.1);
        of_kind.filter(|text| is_extension_in(text, namespace)).map(str::to_owned).collect()
    }

    fn appliers_in(&self, question: &question::AppliersIn) -> Vec<(ObjectKey, String)> {
        let question::AppliersIn { namespace, only_annotated } = question;
        let objects = self.lock();
        let texts = APPLYING.iter().flat_map(|(group, kind)| objects.of_kind(group, kind));
        let keyed = texts.filter_map(|text| {
            let object = RawObject::delimited(text);
            let is_wanted = !only_annotated || Metadata::of(object).ok()?.is_protected();
            is_wanted.then_some((ObjectKey::of_object(object).ok()?, text.to_owned()))
        });
        keyed.filter(|(key, text)| loses_with_namespace(key, text, namespace)).collect()
    }

    /// The ReleaseOverrides that match.
    #[must_use]
    pub fn overrides(&self, is_wanted: impl Fn(&Override) -> bool) -> Vec<Override> {
        let objects = self.lock();
        let of_kind = objects.of_kind(release_override::GROUP, release_override::KIND);
        of_kind.filter_map(read::release_override).filter(is_wanted).collect()
    }

    /// The Freezes that match.
    #[must_use]
    pub fn freezes(&self, is_wanted: impl Fn(&Freeze) -> bool) -> Arc<[Freeze]> {
        let objects = self.lock();
        let of_kind = objects.of_kind(release_override::GROUP, freeze_resource::KIND);
        of_kind.filter_map(read::stored_freeze).filter(is_wanted).collect()
    }

    /// The labels of Namespaces.
    #[must_use]
    pub fn namespace_labels(&self) -> NamespaceLabels {
        let objects = self.lock();
        let namespaces = objects.of_kind("", "Namespace");
        let metadata = namespaces.filter_map(|text| Some(serde_json::from_str::<MetadataOnly>(text).ok()?.metadata));
        metadata.filter_map(|it| Some((it.name?, Arc::new(it.labels.unwrap_or_default())))).collect()
    }

    /// The namespace in which Flux has installed a release for a HelmRelease.
    fn installed_at(&self, origin: &Origin, release: &str, target_namespace: &str) -> Option<InstalledAt> {
        let key = ObjectKey::new(HELM_RELEASES.0, HELM_RELEASES.1, &origin.namespace, &origin.name);
        let read = self.read::<HelmRelease>(&key)?;
        Driver::from(&read).installed_at(release, target_namespace)
    }

    fn parent(&self, ScaledRef { group, kind, namespace, name, .. }: &ScaledRef) -> Option<ScaledObject> {
        read::scaled(&self.get(&ObjectKey::new(group, kind, namespace, name))?).ok()?
    }

    fn read<T: DeserializeOwned>(&self, key: &ObjectKey) -> Option<T> {
        serde_json::from_str(&self.get(key)?).ok()
    }

    /// The objects, with every admitted write applied.
    fn lock(&self) -> MutexGuard<'_, ObjectStore> {
        // A panic elsewhere cannot leave the maps inconsistent.
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        self.noted.apply_to(&mut stored);
        stored
    }
}

impl RecordStore for Objects {
    async fn text(&self, storage: Storage, namespace: &str, object: &str) -> Result<Option<String>, String> {
        Ok(self.get(&ObjectKey::new("", storage.kind(), namespace, object)))
    }
}

#[cfg(test)]
mod tests;
