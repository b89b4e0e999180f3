//! The state of a cluster, from its API server: from copies that watches keep where these suffice, otherwise from live reads, which
//! the deadline of the review limits.

pub(crate) mod api_error;
mod before_namespaces;
mod caches;
pub(crate) mod clock;
mod copies;
mod custom;
mod definition;
mod deleted_pending;
#[cfg(test)]
pub(crate) mod fake;
pub mod freeze_definition;
pub(crate) mod freezes;
pub(crate) mod helm_releases;
pub(crate) mod identity;
mod index;
pub mod intake;
pub(crate) mod kinds;
pub(crate) mod listed;
pub(crate) mod losses;
mod namespaced_name;
pub(crate) mod namespaces;
pub mod override_definition;
pub(crate) mod own_objects;
pub(crate) mod policies;
pub(crate) mod reach;
mod reader;
mod records;
pub(crate) mod release_overrides;
mod scalable;
pub(crate) mod server_version;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_engine::answers::locate::{self, RecordSet, ReleaseQuery};
use interlock_engine::answers::read::{self, RECORD_SELECTOR, entry};
use interlock_engine::answers::record;
use interlock_engine::evidence::{
    Answer, CandidateRecords, Candidates, Freshness, NamespaceState, Query, Question, ScaledObject, ScaledRef,
    WERF_LEASES, Workload, question,
};
use interlock_engine::object::ObjectKey;
use interlock_engine::owners::{
    Bundle, BundleRef, CandidateSearch, Driver, HELM_RELEASES, MOST_CANDIDATES, UNLABELLED,
};
use interlock_engine::policy::{Freeze, NamespaceLabels};
use interlock_engine::release::manifest::WorkloadRef;
use interlock_engine::release::{History, ReleaseRef, Storage};
use interlock_engine::release_override::Override;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Client;
use kube::api::{Api, ListParams};

pub use caches::Watches;
pub use deleted_pending::{DeletedPendingRecord, DeletedPendingRecords};
pub use intake::IntakeMetrics;
pub use reach::Reach;
pub(crate) use records::RecordSummary;

use super::documents::DocumentCache;
use super::manifests::ManifestCache;
use super::metadata_only::resource_of;
use super::turns::Turns;
use super::workload::{self, WorkloadObject};
use super::{AnswerFuture, InFlight, Known, LossVerdict, NoteFuture, QueryBudget, World};
use crate::budget::Budget;
use crate::readiness::{Gate, Readiness};
use api_error::{if_found, reason};
use caches::Caches;
use helm_releases::{SeenHelmReleases, UnreadHelmRelease};
use intake::Projected;
use losses::SharedLosses;
use reader::{ApiReader, OUT_OF_REACH, Unavailable, once_served, side_by_side, valid_name};

/// Answers queries from an API server.
///
/// The client must not retry, and must have a read timeout (`Config::default_retry`): a review has only a few seconds, and a later
/// answer is useless.
pub struct Cluster {
    api: ApiReader,
    turns: Turns,
    metrics: Arc<IntakeMetrics>,
    caches: Caches,
    deleted_pending: Arc<DeletedPendingRecords>,
    manifests: ManifestCache,
    documents: DocumentCache,
    losses: Option<SharedLosses>,
}

/// Why a query about HelmReleases has no answer.
const HELM_RELEASES_UNKNOWN: &str = "the HelmReleases of the cluster are not known at the moment";
const STAMPED_UNKNOWN: &str = "the records in other namespaces are not known at the moment";

/// The number of concurrent reads. With it, the hundreds of objects of a large release are read within the time of a review.
const CONCURRENT_READS: usize = 16;

/// The steps to parse a byte of an object.
const READ_STEPS: u64 = 4;

/// The number of concurrent reads of bundles. A bundle may be as large as any object, 1.5 MiB in etcd by default, and stays in
/// memory until it is parsed.
const CONCURRENT_BUNDLE_READS: usize = 8;

impl Cluster {
    /// A cluster behind a client. `decodes` limits the memory for record bodies. Every read is live until [`Self::watch`] is
    /// called.
    #[must_use]
    pub fn new(client: Client, decodes: Arc<Budget>) -> Self {
        Self::counted(client, decodes, Arc::default())
    }

    /// A cluster that counts its reads in `metrics`.
    #[must_use]
    pub fn counted(client: Client, decodes: Arc<Budget>, metrics: Arc<IntakeMetrics>) -> Self {
        let deleted_pending = Arc::default();
        Self {
            api: ApiReader::new(intake::client(client, &decodes, &metrics)),
            turns: Turns::new(decodes),
            metrics,
            caches: Caches::new(&deleted_pending),
            deleted_pending,
            manifests: ManifestCache::new(),
            documents: DocumentCache::new(),
            losses: None,
        }
    }

    /// Notes what objects lose in a ConfigMap of this namespace. Without it, the rules about that judge nothing.
    #[must_use]
    pub fn noting_losses(mut self, client: Client, namespace: &str) -> Self {
        self.losses = Some(SharedLosses::new(client, namespace));
        self
    }

    /// Limits reads to some namespaces. The state of other namespaces is then unavailable, and a rule that queries it is undecided.
    /// A HelmRelease in another namespace is treated as absent.
    #[must_use]
    pub fn within(mut self, reach: Reach) -> Self {
        self.api.reach = reach;
        self
    }

    /// Keeps copies of the most queried state, in tasks that end when the returned value is dropped. Each watch adds a gate to
    /// `readiness` and opens it after its first complete list.
    ///
    /// Watches need a client with a longer read timeout than reviews have: on a quiet watch the API server sends a bookmark
    /// once a minute.
    pub fn watch(&self, client: &Client, readiness: &Readiness, labels: Gate) -> Watches {
        let client = intake::client(client.clone(), self.turns.budget(), &self.metrics);
        self.caches.watch(&client, &self.api.reach, readiness, labels)
    }

    /// The pending records whose deletion a watch has seen.
    #[must_use]
    pub fn deleted_pending(&self) -> Arc<DeletedPendingRecords> {
        Arc::clone(&self.deleted_pending)
    }

    async fn look_up(&self, query: &Query, budget: QueryBudget<'_>) -> Result<Answer, Unavailable> {
        Ok(match query {
            Query::History(it) => it.answered(self.history(it).await?),
            Query::Body(it) => it.found(record::body(self, &self.turns.of(budget), it).await?),
            Query::Release(it) => it.answered(self.release(it).await?),
            Query::Extension(it) => it.answered(self.extension(it).await?),
            Query::Document(it) => it.found(self.document(it, budget).await?),
            Query::Parent(it) => it.found(self.parent(it).await?),
            Query::HelmReleases(it) => it.answered(self.helm_releases(it.search(), budget).await?),
            Query::HelmReleasesIn(it) => it.answered(self.helm_releases_in(&it.namespace, budget).await?),
            Query::ExtensionsIn(it) => it.answered(self.extensions_in(&it.namespace, budget).await?),
            Query::Overrides(it) => it.answered(self.overrides(it).await?),
            Query::Freezes(it) => it.answered(self.caches.freezes()),
            Query::FreezesIn(it) => {
                let listed = freezes::list(self.api.client(), &it.namespace).await.map_err(|error| reason(&error))?;
                it.answered(listed.into())
            }
            Query::Workloads(it) => {
                let reads = it.0.iter().map(|reference| self.workload(reference));
                it.answered(side_by_side(CONCURRENT_READS, reads).await?)
            }
            Query::Leases(it) => it.found(self.leases(&it.namespace).await?),
            Query::Object(it) => it.found(self.object(&it.0, budget).await?),
            Query::AppliersIn(it) => it.answered(self.appliers_in(it, budget).await?),
            Query::Losses(it) => match &self.losses {
                Some(losses) => it.found(losses.of(&it.0.of).await?),
                None => Answer::Absent,
            },
            Query::AnyAccount(it) => it.answered(self.any_exists(&it.0, budget).await?),
            Query::Bundles(it) => {
                let reads = it.0.iter().map(|reference| self.bundle(reference, budget));
                let read = side_by_side(CONCURRENT_BUNDLE_READS, reads).await?;
                it.answered(read.into_iter().map(Option::transpose).collect())
            }
            Query::Namespace(it) => it.found(self.namespace(&it.name).await?),
            Query::ReleasesIn(it) => it.answered(self.releases_in(&it.namespace).await?),
        })
    }

    async fn leases(&self, namespace: &str) -> Result<Option<BTreeMap<String, String>>, Unavailable> {
        let leases: Option<Projected> = self.api.get(&resource_of::<ConfigMap>(), namespace, WERF_LEASES).await?;
        Ok(leases.map(|leases| leases.metadata().annotations.clone().unwrap_or_default()))
    }

    async fn namespace(&self, name: &str) -> Result<Option<NamespaceState>, Unavailable> {
        let api: Api<Namespace> = Api::all(self.api.client().clone());
        let found = api.get_metadata_opt(self.api.in_reach(name)?).await.map_err(|error| reason(&error))?;
        Ok(found.map(|namespace| read::namespace(&namespace.metadata)))
    }

    async fn overrides(
        &self,
        question::Overrides { namespace, release, freshness }: &question::Overrides,
    ) -> Result<Vec<Override>, Unavailable> {
        if *freshness == Freshness::Cached {
            return Ok(self.caches.release_overrides().of(namespace, release));
        }
        let (namespace, release) = (self.api.in_reach(namespace)?, valid_name(release)?);
        let found = once_served(|| release_overrides::list(self.api.client(), namespace, release)).await;
        // Without the definition there are none.
        Ok(if_found(found)?.unwrap_or_default())
    }

    async fn workload(&self, reference: &WorkloadRef) -> Result<Option<Workload>, Unavailable> {
        let WorkloadRef { kind, namespace, name } = reference;
        if valid_name(namespace).is_err() || valid_name(name).is_err() {
            // No object can have such a name.
            return Ok(None);
        }
        let found: Option<WorkloadObject> = self.api.get(&workload::resource(*kind), namespace, name).await?;
        Ok(found.map(|object| workload::rollout_of(*kind, object)))
    }

    /// The JSON text of an object. The review pays the effort for parsing it.
    async fn object(&self, key: &ObjectKey, budget: QueryBudget<'_>) -> Result<Option<String>, Unavailable> {
        let text = self.api.object(key).await?;
        if let Some(text) = &text {
            let ObjectKey { kind, namespace, name, .. } = key;
            let read = budget.effort.take_text(text, READ_STEPS);
            read.map_err(|over| format!("{kind} {namespace}/{name} cannot be read: {over}"))?;
        }
        Ok(text)
    }

    /// Whether one of these objects exists. One that does is enough, also if another cannot be read.
    async fn any_exists(&self, keys: &[ObjectKey], budget: QueryBudget<'_>) -> Result<bool, Unavailable> {
        let mut failure = None;
        for key in keys {
            match self.object(key, budget).await {
                Ok(Some(_)) => return Ok(true),
                Ok(None) => {}
                Err(why) => failure = Some(why),
            }
        }
        failure.map_or(Ok(false), Err)
    }

    async fn bundle(
        &self,
        reference: &BundleRef,
        budget: QueryBudget<'_>,
    ) -> Result<Option<Result<Bundle, String>>, Unavailable> {
        if valid_name(&reference.namespace).is_err() || valid_name(&reference.name).is_err() {
            // No object can have such a name.
            return Ok(None);
        }
        let text = self.object(&ObjectKey::of_bundle(reference), budget).await?;
        Ok(text.map(|text| read::bundle(reference, &text)))
    }

    /// One LIST by label, metadata only, so that no release data is in memory. Without a resourceVersion it is consistent: Kubernetes
    /// promises that it shows every write that was answered before it began. No resourceVersion from a watch is as good, because a
    /// review does not say which version of the release its client has seen.
    async fn history(
        &self,
        question::History { storage, namespace, release, freshness }: &question::History,
    ) -> Result<History, Unavailable> {
        if *freshness == Freshness::Cached
            && self.api.in_reach(namespace).is_ok()
            && let (known, true) = self.caches.history(*storage, &ReleaseRef::new(namespace, release))
        {
            return Ok(known.unwrap_or_default());
        }
        let selector = storage.selector(valid_name(release)?);
        let metadata = self.api.records(storage.kind(), namespace, &selector).await?;
        Ok(History::new(metadata.iter().filter_map(entry).collect()))
    }

    /// The possible records of the release that an object belongs to. Live records in Secrets in the object's namespace come before
    /// those in ConfigMaps there, which are not read then.
    async fn release(&self, question: &question::Release) -> Result<Vec<CandidateRecords>, Unavailable> {
        let question::Release { name, target_namespace, origin, freshness } = question;
        let (origin, helm_releases) = (origin.as_ref(), self.caches.helm_releases());
        let installed = origin.map_or(Some(None), |origin| helm_releases.installed_at(origin, name, target_namespace));
        let query = ReleaseQuery::of(question, installed.as_ref().and_then(Option::as_ref));
        let (known, complete) = self.caches.locate(query);
        // A stamp may point to any namespace.
        let complete = complete && installed.is_some() && (!known.is_empty() || self.api.reach.is_everywhere());
        if complete && *freshness == Freshness::Cached {
            return Ok(known);
        }
        let at_home = self.record_sets(Storage::Secret.kind(), target_namespace, name).await?;
        let mut found = query.candidates(at_home);
        let is_at_home =
            found.iter().any(|candidate| candidate.storage == Storage::Secret && candidate.history.is_live());
        let elsewhere = known.iter().map(|candidate| (candidate.storage.kind(), candidate.namespace.as_str()));
        let elsewhere = elsewhere.chain(query.origin.map(|it| (Storage::Secret.kind(), it.installed.records.as_str())));
        let mut places: Vec<_> = elsewhere.filter(|(_, namespace)| *namespace != *target_namespace).collect();
        if !is_at_home {
            places.push((Storage::ConfigMap.kind(), target_namespace));
        }
        places.sort_unstable();
        places.dedup();
        for (kind, namespace) in places {
            found.extend(query.candidates(self.record_sets(kind, namespace, name).await?));
        }
        if complete || !found.is_empty() {
            return Ok(found);
        }
        // Only the index finds records with a stamp for another namespace.
        Err(format!("it is not known at the moment whether another namespace has records of release {name}"))
    }

    /// The possible records of a ClusterExtension: one LIST in each namespace in reach, by label, metadata only.
    async fn extension(
        &self,
        question::Extension { name, freshness }: &question::Extension,
    ) -> Result<Vec<CandidateRecords>, Unavailable> {
        if *freshness == Freshness::Cached
            && let Some(known) = self.caches.extension(name)
            && (!known.is_empty() || self.api.reach.is_everywhere())
        {
            return Ok(known);
        }
        let selector = ListParams::default().labels(&Storage::Index.selector(valid_name(name)?));
        let mut found = Vec::new();
        for api in self.api.reach.apis::<Secret>(self.api.client()) {
            found.extend(api.list_metadata(&selector).await.map_err(|error| reason(&error))?.items);
        }
        let records = found.iter().filter_map(|item| {
            let (storage, _, entry) = read::record(Storage::Index.kind(), &item.metadata)?;
            Some((storage, item.metadata.namespace.clone().unwrap_or_default(), entry))
        });
        let found = locate::candidates_for_extension(RecordSet::gather(records));
        if found.is_empty() && !self.api.reach.is_everywhere() {
            return Err(format!(
                "it is not known whether ClusterExtension {name} has records elsewhere: {OUT_OF_REACH}"
            ));
        }
        Ok(found)
    }

    async fn helm_release(
        &self,
        namespace: &str,
        name: &str,
        budget: QueryBudget<'_>,
    ) -> Result<Option<Result<Driver, UnreadHelmRelease>>, Unavailable> {
        let key = ObjectKey::new(HELM_RELEASES.0, HELM_RELEASES.1, namespace, name);
        let text = self.object(&key, budget).await?;
        let read = text.map(|text| Projected::read(&text).and_then(|object| helm_releases::full_driver(&object)));
        Ok(read.map(|read| read.map_err(|why| UnreadHelmRelease::new(namespace, name, why))))
    }

    /// The HelmReleases that may drive a release. A copy names the candidates, and the API server confirms them.
    async fn helm_releases(
        &self,
        search: CandidateSearch<'_>,
        budget: QueryBudget<'_>,
    ) -> Result<Candidates, Unavailable> {
        let named = self.caches.helm_releases().candidates(search).ok_or(HELM_RELEASES_UNKNOWN)?;
        let named = match named {
            Ok(named) => named,
            Err(over_limit) => return Ok(Err(over_limit)),
        };
        let reads = named.iter().map(|(namespace, name)| self.helm_release(namespace, name, budget));
        let read = side_by_side(CONCURRENT_READS, reads).await?;
        let mut found = Vec::new();
        for (read, (namespace, _)) in read.into_iter().zip(&named) {
            match read {
                Some(Ok(driver)) => found.push(driver),
                // An unreadable HelmRelease in another namespace changes nothing.
                Some(Err(_)) if namespace != search.namespace => {}
                Some(Err(unread)) => return unread.into_answer(),
                None => {}
            }
        }
        Ok(read::candidates(search, &found))
    }

    /// The releases with records in a namespace, by one LIST of each kind of record, metadata only. Releases with records elsewhere
    /// that are stamped for the namespace come from the copies: every user can write such a record in some namespace, and must not
    /// be able to multiply the reads.
    async fn releases_in(&self, namespace: &str) -> Result<Vec<(String, CandidateRecords)>, Unavailable> {
        let secrets = self.api.records(Storage::Secret.kind(), namespace, RECORD_SELECTOR).await?;
        let config_maps = self.api.records(Storage::ConfigMap.kind(), namespace, RECORD_SELECTOR).await?;
        let secrets = secrets.iter().filter_map(|metadata| read::record(Storage::Secret.kind(), metadata));
        let records = secrets.chain(config_maps.iter().filter_map(|it| read::record(Storage::ConfigMap.kind(), it)));
        let mut entries: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (storage, release, entry) in records {
            entries.entry((release.to_owned(), storage)).or_default().push(entry);
        }
        let here = entries.into_iter().map(|((name, storage), entries)| {
            (name, RecordSet { storage, namespace: namespace.to_owned(), entries }.into_candidate())
        });
        let mut releases: Vec<_> = here.collect();
        releases.extend(self.caches.stamped_for(namespace).ok_or(STAMPED_UNKNOWN)?);
        Ok(releases)
    }

    /// The HelmReleases in a namespace. Their values can be large, so the copy serves those that have not changed, and only others
    /// are read.
    async fn helm_releases_in(&self, namespace: &str, budget: QueryBudget<'_>) -> Result<Vec<Driver>, Unavailable> {
        let listed = self.api.list_custom(HELM_RELEASES.0, HELM_RELEASES.1, namespace).await?;
        let seen = self.caches.helm_releases().seen(&listed).ok_or(HELM_RELEASES_UNKNOWN)?;
        let SeenHelmReleases { mut drivers, unseen } = seen;
        if unseen.len() > MOST_CANDIDATES {
            return Err(format!("{} HelmReleases of namespace {namespace} changed in the last moment", unseen.len()));
        }
        let reads = unseen.iter().map(|name| self.helm_release(namespace, name, budget));
        for read in side_by_side(CONCURRENT_READS, reads).await?.into_iter().flatten() {
            drivers.push(read.map_err(|unread| unread.to_string())?);
        }
        Ok(read::oldest_first(drivers))
    }

    /// Extensions have no namespace, and only their spec names that of their objects: all of them are read.
    /// The records of a name in objects of one kind and namespace, by storage: one LIST, metadata only.
    async fn record_sets(&self, kind: &str, namespace: &str, release: &str) -> Result<Vec<RecordSet>, Unavailable> {
        let selector = format!("{},name={}", read::RECORD_SELECTOR, valid_name(release)?);
        let metadata = self.api.records(kind, namespace, &selector).await?;
        let records = metadata.iter().filter_map(|metadata| read::record(kind, metadata));
        Ok(RecordSet::gather(records.map(|(storage, _, entry)| (storage, namespace.to_owned(), entry))))
    }

    /// A scaled object. The answer of a cache has no managedFields.
    async fn parent(
        &self,
        question::Parent { object, freshness }: &question::Parent,
    ) -> Result<Option<ScaledObject>, Unavailable> {
        let cached = *freshness == Freshness::Cached && self.api.reach.includes(&object.namespace);
        if let Some(marks) = self.caches.marks(object).filter(|_| cached) {
            // The copies have only objects with labels.
            if marks.is_some() || !self.api.serves(UNLABELLED).await? {
                return Ok(marks.map(|marks| ScaledObject { marks, managed_fields: None }));
            }
        }
        let Some(text) = self.api.scaled(object).await? else { return Ok(None) };
        let ScaledRef { kind, namespace, name, .. } = object;
        read::scaled(&text).map_err(|why| format!("{kind} {namespace}/{name} cannot be parsed: {why}"))
    }
}

impl Known for Cluster {
    fn in_flight(&self, limit: usize) -> (Vec<InFlight>, usize, bool) {
        self.caches.in_flight(limit)
    }

    fn drivers(&self) -> Option<Vec<Driver>> {
        self.caches.helm_releases().matching(|_| true)
    }

    fn overrides_that(&self, matches: &dyn Fn(&Override) -> bool, limit: usize) -> Option<(Vec<Override>, usize)> {
        self.caches.release_overrides().that(matches, limit)
    }

    fn freezes(&self) -> Arc<[Freeze]> {
        self.caches.freezes()
    }
}

impl World for Cluster {
    fn namespace_labels(&self) -> Option<Arc<NamespaceLabels>> {
        Some(self.caches.namespace_labels())
    }

    fn drivers_naming(&self, records: &ReleaseRef, matches: &dyn Fn(&Driver) -> bool) -> Vec<Driver> {
        self.caches.helm_releases().naming(records, matches)
    }

    fn protector_of(&self, storage: Storage, records: &ReleaseRef) -> Option<String> {
        let history = self.caches.history(storage, records).0?;
        history.protectors().next().map(|protector| protector.to_string())
    }

    fn note_loss<'w>(&'w self, noted: LossVerdict<'w>) -> NoteFuture<'w> {
        Box::pin(async move {
            match &self.losses {
                Some(losses) => losses.note(noted).await,
                None => Ok(true),
            }
        })
    }

    fn answer_for<'w>(&'w self, query: &'w Query, budget: QueryBudget<'w>) -> AnswerFuture<'w> {
        Box::pin(async move { self.look_up(query, budget).await.unwrap_or_else(Answer::Unavailable) })
    }
}

#[cfg(test)]
mod tests;
