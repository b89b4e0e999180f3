//! A world in memory: for the standalone server, which records what it admits, for replay, and for tests.

mod admitted;
mod apply;
mod override_file;
mod store;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::locate::{self, OriginRecords, RecordSet, ReleaseQuery};
use super::manifests::{self, RecordVersion};
use super::payload::{self, OpenedPayload};
use super::read;
use super::rollout::rollout;
use super::turns::Turns;
use super::{AnswerFuture, InFlight, Known, Payer, World};
use crate::budget::{Budget, beside_the_network};
use crate::engine::evidence::{Answer, Knowledge, Located, Query, RecordRef, ScaledRef, Workload, can_be_asked_for};
use crate::engine::flux::{self, CandidateSearch, Driver, HelmRelease};
use crate::engine::freeze_resource;
use crate::engine::json::RawObject;
use crate::engine::managed::{Marks, Origin};
use crate::engine::object::ObjectKey;
use crate::engine::policy::{Freeze, NamespaceLabels};
use crate::engine::release::manifest::{DocumentKey, WorkloadRef};
use crate::engine::release::record::{DecodeError, Payload};
use crate::engine::release::{ReleaseRef, Storage};
use crate::engine::release_override::{self, Override};
use crate::engine::review::Request;
use crate::engine::sveltos::{Bundle, BundleRef};
pub use admitted::AdmittedWrite;
use admitted::NotedWrites;
use apply::Change;
pub use override_file::OverrideFile;
use store::ObjectStore;

/// Bodies of admitted writes that wait to be applied, in bytes: two of the largest. Whoever adds more applies them.
const MAX_NOTED_BYTES: usize = 16 << 20;

/// Writes of so many bytes are applied beside the network: fewer take less than a millisecond.
const SHORT_BYTES: usize = 256 << 10;

/// Objects as JSON text. Above a limit the oldest objects are dropped.
#[derive(Debug)]
pub struct Memory {
    objects: Mutex<ObjectStore>,
    noted: NotedWrites,
    turns: Turns,
}

#[derive(Deserialize)]
struct MetadataOnly {
    metadata: ObjectMeta,
}

impl Memory {
    /// An empty world that holds objects of at most `limit` bytes, with their names.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let turns = Turns::new(Arc::new(Budget::new(limit)));
        Self { objects: Mutex::new(ObjectStore::new(limit)), noted: NotedWrites::default(), turns }
    }

    /// The same world, whose answers share a budget with reviews. Otherwise they share one of their own, of as many bytes.
    #[must_use]
    pub fn sharing(self, budget: Arc<Budget>) -> Self {
        Self { turns: Turns::new(budget), ..self }
    }

    /// Stores an object as JSON text, replacing the object with the same key. Not if its names are longer than an API server
    /// accepts.
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
    /// When one of these cannot be parsed.
    pub fn remove_object(&self, object: RawObject<'_>) -> Result<(), serde_json::Error> {
        self.remove(&ObjectKey::of_object(object)?);
        Ok(())
    }

    /// Applies an admitted request as an API server does. A dry run and most subresources change nothing.
    pub fn apply(&self, request: &Request<'_>) {
        if let Some(change) = Change::of(request) {
            self.lock().apply(change);
        }
    }

    /// Notes an admitted write. From now on, every answer takes it into account. Returns whether somebody should call
    /// [`Self::settle`], because nobody does so for an earlier write.
    pub fn admit(&self, write: AdmittedWrite) -> bool {
        let is_only = self.noted.add(write);
        if self.noted.bytes() > MAX_NOTED_BYTES {
            self.settle();
            return false;
        }
        is_only
    }

    /// Applies the admitted writes, beside the network if they are long.
    pub fn settle(&self) {
        let apply = || drop(self.lock());
        if self.noted.bytes() > SHORT_BYTES { beside_the_network(apply) } else { apply() }
    }

    /// The JSON text of an object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<String> {
        self.lock().get(key).map(str::to_owned)
    }

    /// Whether there is any object of a kind.
    #[must_use]
    pub fn holds(&self, group: &str, kind: &str) -> bool {
        self.lock().of_kind(group, kind).next().is_some()
    }

    /// How many objects were dropped over the limit.
    #[must_use]
    pub fn forgotten(&self) -> usize {
        self.lock().forgotten()
    }

    /// A copy of this world, which changes independently.
    #[must_use]
    pub fn branch(&self) -> Self {
        let objects = Mutex::new(self.lock().clone());
        Self { objects, noted: NotedWrites::default(), turns: self.turns.clone() }
    }

    async fn look_up(&self, query: &Query, payer: Payer<'_>) -> Answer {
        debug_assert!(
            matches!(query, Query::Parent { .. })
                || query.kinds().iter().all(|(group, kind)| can_be_asked_for(group, kind)),
            "a server would not have kept the objects for {query:?}"
        );
        self.settle();
        match query {
            Query::Body { storage, namespace, object } => self.body(*storage, namespace, object, payer).await,
            Query::Document { record, object } => self.document(record, object, payer).await,
            Query::History { storage, namespace, release } => {
                Answer::Known(Knowledge::History(self.lock().history(*storage, namespace, release)))
            }
            Query::Release { name, target_namespace, origin, .. } => {
                let records = origin.as_ref().and_then(|origin| self.records_of(origin, name, target_namespace));
                let origin = origin.as_ref().zip(records.as_deref());
                let origin = origin.map(|(origin, records)| OriginRecords { origin: &origin.namespace, records });
                let query = ReleaseQuery { name, target_namespace, origin };
                Answer::Known(Knowledge::Release(query.candidates(self.record_sets(name))))
            }
            Query::Extension { name, .. } => {
                let found = locate::candidates_for_extension(self.record_sets(name));
                Answer::Known(Knowledge::Release(found))
            }
            Query::Parent { object, .. } => known(self.parent(object).map(Knowledge::Parent)),
            Query::HelmReleases { namespace, release, account } => {
                let search = CandidateSearch { namespace, release, account: account.as_deref() };
                Answer::Known(read::candidates(search, &self.helm_releases(|_| true)))
            }
            Query::HelmReleasesIn { namespace } => {
                let is_in = |driver: &Driver| driver.namespace == *namespace;
                Answer::Known(Knowledge::HelmReleases(self.helm_releases(is_in)))
            }
            Query::Overrides { namespace, release, .. } => {
                Answer::Known(Knowledge::Overrides(self.overrides(namespace, release)))
            }
            Query::Freezes => Answer::Known(Knowledge::Freezes(self.stored_freezes(|_| true))),
            Query::FreezesIn { namespace } => {
                let is_in = |freeze: &Freeze| freeze.home.as_deref() == Some(namespace);
                Answer::Known(Knowledge::Freezes(self.stored_freezes(is_in)))
            }
            Query::Workloads(named) => {
                Answer::Known(Knowledge::Workloads(named.iter().map(|reference| self.workload(reference)).collect()))
            }
            Query::Leases { namespace } => {
                let leases: Option<ConfigMap> =
                    self.read(&ObjectKey::new("", "ConfigMap", namespace, super::WERF_LEASES));
                known(leases.map(|leases| Knowledge::Leases(leases.metadata.annotations.unwrap_or_default())))
            }
            Query::Object(key) => known(self.get(key).map(Knowledge::Object)),
            Query::Bundles(named) => {
                Answer::Known(Knowledge::Bundles(named.iter().map(|reference| self.bundle(reference)).collect()))
            }
            Query::Namespace { name } => {
                let namespace: Option<Namespace> = self.read(&ObjectKey::new("", "Namespace", "", name));
                known(namespace.map(|namespace| read::namespace(&namespace.metadata)))
            }
            Query::ReleasesIn { namespace } => Answer::Known(Knowledge::Releases(self.releases_in(namespace))),
        }
    }

    fn workload(&self, WorkloadRef { kind, namespace, name }: &WorkloadRef) -> Option<Workload> {
        let key = ObjectKey::new("apps", kind.as_str(), namespace, name);
        self.read(&key).map(|object| rollout(*kind, object))
    }

    fn bundle(&self, reference: &BundleRef) -> Result<Option<Bundle>, String> {
        let text = self.get(&ObjectKey::of_bundle(reference));
        text.map(|text| read::bundle(reference, &text)).transpose()
    }

    fn record_sets(&self, release: &str) -> Vec<RecordSet> {
        self.lock().record_sets(release)
    }

    /// The releases whose records are in a namespace, and those with a record elsewhere that is stamped for objects in it.
    fn releases_in(&self, namespace: &str) -> Vec<(String, Located)> {
        let names = self.lock().names();
        let releases = names.into_iter().flat_map(|name| {
            self.record_sets(&name).into_iter().filter_map(move |set| {
                let counts = set.namespace == namespace || set.is_stamped_for(namespace);
                counts.then(|| (name.clone(), set.located()))
            })
        });
        releases.collect()
    }

    fn helm_releases(&self, is_wanted: impl Fn(&Driver) -> bool) -> Vec<Driver> {
        let objects = self.lock();
        let of_flux = objects.of_kind(flux::GROUP, flux::HELM_RELEASE);
        let read = of_flux.filter_map(|text| Driver::read(text).ok());
        read::oldest_first(read.filter(is_wanted))
    }

    fn overrides(&self, namespace: &str, release: &str) -> Vec<Override> {
        let objects = self.lock();
        let of_kind = objects.of_kind(release_override::GROUP, release_override::KIND);
        let read = of_kind.filter_map(|text| read::release_override(&serde_json::from_str(text).ok()?));
        read.filter(|it| it.namespace == namespace && it.spec.release == release).collect()
    }

    fn stored_freezes(&self, is_wanted: impl Fn(&Freeze) -> bool) -> Arc<[Freeze]> {
        let objects = self.lock();
        let of_kind = objects.of_kind(release_override::GROUP, freeze_resource::KIND);
        of_kind.filter_map(read::stored_freeze).filter(is_wanted).collect()
    }

    /// The namespace in which Flux has installed a release for a HelmRelease.
    fn records_of(&self, origin: &Origin, release: &str, target_namespace: &str) -> Option<String> {
        let key = ObjectKey::new(flux::GROUP, flux::HELM_RELEASE, &origin.namespace, &origin.name);
        let read = self.read::<HelmRelease>(&key)?;
        Driver::from(&read).records_of(release, target_namespace).map(str::to_owned)
    }

    async fn document(&self, record: &RecordRef, object: &DocumentKey, payer: Payer<'_>) -> Answer {
        let RecordRef { storage, namespace, name, uid, resource_version } = record;
        let Some(text) = self.get(&ObjectKey::new("", storage.kind(), namespace, name)) else {
            return Answer::Absent;
        };
        if RecordVersion::new(uid, resource_version).is_some_and(|state| !state.matches(&text)) {
            return Answer::Unavailable(manifests::changed(namespace, name));
        }
        let read = |body: Vec<u8>| manifests::manifest(&body, payer.effort);
        let found = match self.decoded(*storage, namespace, &text, payer, read).await {
            Ok(Ok(manifest)) => self.turns.found(payer, &manifest, object).await,
            Ok(Err(error)) => Err(payload::undecodable(namespace, name, &error)),
            Err(why) => Err(why),
        };
        found.map_or_else(Answer::Unavailable, |found| Answer::Known(Knowledge::Document(found)))
    }

    async fn body(&self, storage: Storage, namespace: &str, object: &str, payer: Payer<'_>) -> Answer {
        let Some(text) = self.get(&ObjectKey::new("", storage.kind(), namespace, object)) else {
            return Answer::Absent;
        };
        match self.decoded(storage, namespace, &text, payer, Ok).await {
            Ok(Ok(json)) => Answer::Known(Knowledge::Body(json)),
            Ok(Err(DecodeError::MissingParts(names))) => Answer::Known(Knowledge::MissingParts(names)),
            Ok(Err(error)) => Answer::Unavailable(payload::undecodable(namespace, object, &error)),
            Err(why) => Answer::Unavailable(why),
        }
    }

    /// Reads the body of a record, from the JSON text of its object and of the further chunks that OLM may have split it into. The
    /// outer error is that there was no turn.
    async fn decoded<T>(
        &self,
        storage: Storage,
        namespace: &str,
        text: &str,
        payer: Payer<'_>,
        read: impl FnOnce(Vec<u8>) -> Result<T, DecodeError>,
    ) -> Result<Result<T, DecodeError>, String> {
        match self.payload(storage, namespace, text) {
            Ok(payload) => self.turns.inflated(payer, payload, read).await,
            Err(error) => Ok(Err(error)),
        }
    }

    fn payload(&self, storage: Storage, namespace: &str, text: &str) -> Result<Payload, DecodeError> {
        match payload::open(storage, text)? {
            OpenedPayload::Whole(payload) => Ok(payload),
            OpenedPayload::Chunked { first, others } => {
                let part = |name: &String| self.get(&ObjectKey::new("", storage.kind(), namespace, name));
                let others = others.into_iter().map(|name| (part(&name), name)).map(|(text, name)| (name, text));
                payload::join(first, others.collect())
            }
        }
    }

    fn parent(&self, object: &ScaledRef) -> Option<Marks> {
        let found: MetadataOnly =
            self.read(&ObjectKey::new(&object.group, &object.kind, &object.namespace, &object.name))?;
        read::marks(&found.metadata)
    }

    fn read<T: DeserializeOwned>(&self, key: &ObjectKey) -> Option<T> {
        serde_json::from_str(&self.get(key)?).ok()
    }

    /// The objects, with every admitted write applied.
    fn lock(&self) -> MutexGuard<'_, ObjectStore> {
        // A panic elsewhere cannot leave the maps inconsistent.
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        self.noted.apply_to(&mut objects);
        objects
    }
}

impl World for Memory {
    fn namespace_labels(&self) -> Option<Arc<NamespaceLabels>> {
        let objects = self.lock();
        let namespaces = objects.of_kind("", "Namespace");
        let metadata = namespaces.filter_map(|text| Some(serde_json::from_str::<MetadataOnly>(text).ok()?.metadata));
        let labels = metadata.filter_map(|it| Some((it.name?, Arc::new(it.labels.unwrap_or_default()))));
        Some(Arc::new(labels.collect()))
    }

    fn answer_for<'w>(&'w self, query: &'w Query, payer: Payer<'w>) -> AnswerFuture<'w> {
        Box::pin(self.look_up(query, payer))
    }
}

impl Known for Memory {
    fn in_flight(&self, limit: usize) -> (Vec<InFlight>, usize, bool) {
        let names = self.lock().names();
        let sets = names.iter().flat_map(|name| self.record_sets(name).into_iter().map(move |set| (name, set)));
        let found: Vec<_> = sets
            .filter_map(|(name, RecordSet { storage, namespace, entries })| {
                let newest = entries.iter().max_by_key(|entry| entry.revision)?;
                let started = newest.status.is_in_flight().then(|| newest.started())?;
                Some(InFlight { started, release: ReleaseRef::new(namespace, name), storage, entries })
            })
            .collect();
        let total = found.len();
        (InFlight::oldest(found, limit), total, true)
    }

    fn drivers(&self) -> Option<Vec<Driver>> {
        Some(self.helm_releases(|_| true))
    }

    fn overrides_that(&self, matches: &dyn Fn(&Override) -> bool, limit: usize) -> Option<(Vec<Override>, usize)> {
        let objects = self.lock();
        let of_kind = objects.of_kind(release_override::GROUP, release_override::KIND);
        let read = of_kind.filter_map(|text| read::release_override(&serde_json::from_str(text).ok()?));
        let mut matching: Vec<_> = read.filter(|it| matches(it)).collect();
        matching.sort_by_key(|it| it.spec.expires_at);
        let total = matching.len();
        matching.truncate(limit);
        Some((matching, total))
    }

    fn freezes(&self) -> Arc<[Freeze]> {
        self.stored_freezes(|_| true)
    }
}

fn known(knowledge: Option<Knowledge>) -> Answer {
    knowledge.map_or(Answer::Absent, Answer::Known)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;
    use crate::engine::evidence::Freshness;
    use crate::engine::managed::Owner;

    /// The answer of a world, however many turns it takes.
    fn answered(answer: AnswerFuture<'_>) -> Answer {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(answer)
    }

    /// The query for an object in the manifest of a version of a record.
    fn document(name: &str, resource_version: &str) -> Query {
        let [kind, group, namespace] = ["A", "", "shop"].map(str::to_owned);
        let object = DocumentKey {
            kind,
            group,
            name: "a".to_owned(),
            namespace: namespace.clone(),
            default_namespace: namespace.clone(),
        };
        let record = RecordRef {
            storage: Storage::Secret,
            namespace,
            name: name.to_owned(),
            uid: "u".to_owned(),
            resource_version: resource_version.to_owned(),
        };
        Query::Document { record, object }
    }

    /// Puts a record in: of Helm in Secrets, or of OLM.
    fn put_record(memory: &Memory, storage: Storage, namespace: &str, revision: u64, target_namespace: Option<&str>) {
        let manifest = format!("apiVersion: v1\nkind: A\nmetadata:\n  name: a\nrevision: {revision}\n");
        put_manifest(memory, storage, namespace, revision, target_namespace, &manifest);
    }

    fn put_manifest(
        memory: &Memory,
        storage: Storage,
        namespace: &str,
        revision: u64,
        target_namespace: Option<&str>,
        manifest: &str,
    ) {
        let body = json!({
            "name": "web", "version": revision, "namespace": "shop", "info": {"status": "deployed"}, "manifest": manifest,
        });
        let encoded = STANDARD.encode(body.to_string());
        let data = match storage {
            Storage::Secret => json!({"release": STANDARD.encode(encoded)}),
            Storage::ConfigMap => json!({"release": encoded}),
            Storage::OlmIndex => json!({"chunk": encoded}),
        };
        let name = format!("sh.helm.release.v1.web.v{revision}");
        let object = json!({
            "metadata": {
                "name": name, "namespace": namespace, "uid": "u", "resourceVersion": "7",
                "labels": {
                    "owner": storage.owner(), "type": "index", "name": "web", "version": revision.to_string(),
                    "status": "deployed",
                },
                "annotations": target_namespace.map(|target| json!({"interlock.dev/target-namespace": target})),
            },
            "data": data,
        });
        memory.put(ObjectKey::new("", storage.kind(), namespace, &name), object.to_string());
    }

    fn located(memory: &Memory, origin: Option<&str>) -> Vec<(Storage, String, u64)> {
        let query = Query::Release {
            name: "web".to_owned(),
            target_namespace: "shop".to_owned(),
            origin: origin.map(|namespace| Origin { namespace: namespace.to_owned(), name: "web".to_owned() }),
            freshness: Freshness::Live,
        };
        match answered(memory.answer(&query)) {
            Answer::Known(Knowledge::Release(found)) => found
                .into_iter()
                .map(|it| (it.storage, it.namespace, it.history.newest().map_or(0, |newest| newest.revision.0)))
                .collect(),
            answer => panic!("{answer:?}"),
        }
    }

    #[test]
    fn a_release_is_sought_in_every_storage_at_home_where_flux_installed_it_and_by_its_stamp() {
        let memory = Memory::new(1 << 20);
        assert_eq!(located(&memory, None), []);
        put_record(&memory, Storage::ConfigMap, "shop", 1, None);
        put_record(&memory, Storage::Secret, "flux", 2, None);
        let home = || (Storage::ConfigMap, "shop".to_owned(), 1);
        assert_eq!(located(&memory, Some("flux")), [home()]);
        let status = json!({"storageNamespace": "flux", "history": [
            {"name": "web", "namespace": "shop", "status": "deployed"}]});
        let helm_release = json!({"metadata": {"name": "web", "namespace": "flux"}, "spec": {}, "status": status});
        memory.put(ObjectKey::new(flux::GROUP, flux::HELM_RELEASE, "flux", "web"), helm_release.to_string());
        put_record(&memory, Storage::OlmIndex, "olm", 3, Some("shop"));
        let stamped = || (Storage::OlmIndex, "olm".to_owned(), 3);
        assert_eq!(located(&memory, None), [home(), stamped()]);
        let installed = (Storage::Secret, "flux".to_owned(), 2);
        let mut all = located(&memory, Some("flux"));
        all.sort_by(|one, other| one.1.cmp(&other.1));
        assert_eq!(all, [installed, stamped(), home()]);
    }

    #[test]
    fn the_document_is_that_of_the_state_that_was_asked_for() {
        let memory = Memory::new(1 << 20);
        put_record(&memory, Storage::Secret, "shop", 3, None);
        let ask = |name: &str, resource_version: &str| answered(memory.answer(&document(name, resource_version)));
        let document = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "revision": 3});
        let known = Answer::Known(Knowledge::Document(Ok(Some(document.into()))));
        assert_eq!(ask("sh.helm.release.v1.web.v3", "7"), known);
        assert_eq!(ask("sh.helm.release.v1.web.v3", ""), known);
        assert_eq!(ask("sh.helm.release.v1.web.v4", "7"), Answer::Absent);
        assert!(matches!(ask("sh.helm.release.v1.web.v3", "8"), Answer::Unavailable(_)));
    }

    #[test]
    fn a_long_record_and_every_document_is_read_in_its_turn_and_a_short_record_at_once() {
        let memory = Memory::new(4 << 20).sharing(Arc::new(Budget::without_cores(4 << 20, 8)));
        put_record(&memory, Storage::Secret, "shop", 1, None);
        put_manifest(&memory, Storage::Secret, "shop", 2, None, &"# nothing\n".repeat(100_000));
        let body = |revision| Query::Body {
            storage: Storage::Secret,
            namespace: "shop".to_owned(),
            object: format!("sh.helm.release.v1.web.v{revision}"),
        };
        assert!(matches!(memory.answer(&body(1)).now_or_never(), Some(Answer::Known(Knowledge::Body(_)))));
        assert_eq!(memory.answer(&body(2)).now_or_never(), None);
        assert_eq!(memory.answer(&document("sh.helm.release.v1.web.v1", "7")).now_or_never(), None);
    }

    #[test]
    fn the_marks_of_a_scaled_object_are_those_of_the_stored_one() {
        let memory = Memory::new(1 << 20);
        let object = ScaledRef {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            resource: "deployments".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
        };
        let query = Query::Parent { object, freshness: Freshness::Cached };
        assert_eq!(answered(memory.answer(&query)), Answer::Absent);
        let deployment = json!({"metadata": {
            "name": "web", "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"},
        }});
        memory.put(ObjectKey::new("apps", "Deployment", "shop", "web"), deployment.to_string());
        let Answer::Known(Knowledge::Parent(marks)) = answered(memory.answer(&query)) else { panic!("expected marks") };
        assert!(matches!(marks.owner, Owner::Release { name, .. } if name == "web"));
    }

    #[test]
    fn operations_in_flight_helm_releases_and_overrides_are_found_among_all_objects() {
        let memory = Memory::new(1 << 20);
        assert_eq!((memory.in_flight(9), memory.drivers()), ((vec![], 0, true), Some(vec![])));
        for (kind, release, revision, status, created) in [
            ("Secret", "late", 1, "pending-install", "2026-11-21T09:03:00Z"),
            ("ConfigMap", "early", 1, "superseded", "2026-11-21T09:00:00Z"),
            ("ConfigMap", "early", 2, "pending-upgrade", "2026-11-21T09:01:00Z"),
            ("Secret", "middle", 1, "uninstalling", "2026-11-21T09:02:00Z"),
            ("Secret", "done", 1, "pending-install", "2026-11-21T09:00:00Z"),
            ("Secret", "done", 2, "deployed", "2026-11-21T09:01:00Z"),
        ] {
            let name = format!("sh.helm.release.v1.{release}.v{revision}");
            let labels = json!({"owner": "helm", "name": release, "version": revision.to_string(), "status": status});
            let object = json!({"metadata": {
                "name": name, "namespace": "shop", "uid": "u", "resourceVersion": "7", "creationTimestamp": created,
                "labels": labels,
            }});
            memory.put(ObjectKey::new("", kind, "shop", &name), object.to_string());
        }
        let (found, total, in_sync) = memory.in_flight(2);
        let found: Vec<_> =
            found.iter().map(|it| (&*it.release.name, it.storage, it.entries.len(), it.started)).collect();
        let at = |text: &str| text.parse().ok();
        assert_eq!(
            (&found[..], total, in_sync),
            (
                &[
                    ("early", Storage::ConfigMap, 2, at("2026-11-21T09:01:00Z")),
                    ("middle", Storage::Secret, 1, at("2026-11-21T09:02:00Z"))
                ][..],
                3,
                true
            )
        );

        let helm_release = json!({"metadata": {"name": "web", "namespace": "flux"}, "spec": {}});
        memory.put(ObjectKey::new(flux::GROUP, flux::HELM_RELEASE, "flux", "web"), helm_release.to_string());
        assert_eq!(memory.drivers().unwrap()[0].namespace, "flux");

        for (name, expires) in [("second", "12"), ("first", "11"), ("other", "10")] {
            let object = json!({
                "apiVersion": "interlock.dev/v1alpha1", "kind": "ReleaseOverride",
                "metadata": {"name": name, "namespace": "shop"},
                "spec": {
                    "release": "web", "rules": ["manual-edit"], "reason": "r", "expiresAt": format!("2026-11-21T{expires}:00:00Z"),
                },
            });
            let key = ObjectKey::new(release_override::GROUP, release_override::KIND, "shop", name);
            memory.put(key, object.to_string());
        }
        let (found, total) = memory.overrides_that(&|it| it.name != "other", 1).unwrap();
        assert_eq!((&*found[0].name, found.len(), total), ("first", 1, 2));
    }
}
