//! The state of a cluster, from its API server: from copies that watches keep where these suffice, otherwise by live reads,
//! which the deadline of the review bounds.

pub(crate) mod api_error;
mod caches;
pub(crate) mod clock;
mod custom;
mod definition;
mod deleted_pending;
#[cfg(test)]
pub(crate) mod fake;
mod helm_releases;
pub(crate) mod identity;
mod index;
pub(crate) mod kinds;
pub(crate) mod listed;
mod namespaced_name;
pub mod override_definition;
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

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};

pub use caches::Watches;
pub use deleted_pending::{DeletedPendingRecord, DeletedPendingRecords};
pub use reach::Reach;
pub(crate) use records::RecordSummary;

use super::documents::DocumentCache;
use super::locate::{self, RecordSet, ReleaseQuery};
use super::manifests::{ManifestCache, ManifestError};
use super::metadata_only::resource_of;
use super::read::{self, RECORD_SELECTOR, entry};
use super::rollout::{self, WorkloadObject, rollout};
use super::{AnswerFuture, InFlight, Known, NewestRecord, Payer, World};
use crate::budget::Budget;
use crate::engine::evidence::{Answer, Freshness, Knowledge, Located, Query, ScaledRef, Workload};
use crate::engine::flux::{self, Driver, HelmRelease};
use crate::engine::json::redacted;
use crate::engine::managed::{Marks, Origin};
use crate::engine::object::ObjectKey;
use crate::engine::policy::Policies;
use crate::engine::release::manifest::WorkloadRef;
use crate::engine::release::{History, ReleaseRef, Storage};
use crate::engine::release_override::Override;
use crate::engine::sveltos::{Bundle, BundleRef};
use crate::readiness::Readiness;
use api_error::{is_not_found, reason};
use caches::Caches;
use helm_releases::SeenHelmReleases;
use reader::{ApiReader, OUT_OF_REACH, Unavailable, once_served, side_by_side, valid_name};

/// Answers queries from an API server.
///
/// The client must not retry, and must have a read timeout (`Config::default_retry`): a review has a few seconds, and an
/// answer after them is useless.
pub struct Cluster {
    api: ApiReader,
    decodes: Arc<Budget>,
    caches: Caches,
    deleted_pending: Arc<DeletedPendingRecords>,
    manifests: ManifestCache,
    documents: DocumentCache,
}

/// Why HelmReleases have no answer.
const HELM_RELEASES_UNKNOWN: &str = "the HelmReleases of the cluster are not known at the moment";
const EXTENSIONS_UNKNOWN: &str = "the records of extensions are not known at the moment";

/// How many objects are read at a time, so that the hundreds of objects of a large release fit into the time of a review.
const CONCURRENT_READS: usize = 16;

/// How many bundles are read at a time. Each may be as large as an object can be, 1.5 MiB in etcd by default, and is held in
/// memory until it is parsed.
const CONCURRENT_BUNDLE_READS: usize = 8;

impl Cluster {
    /// A cluster behind a client. `decodes` bounds the memory for record bodies. Every read is live until [`Self::watch`] is
    /// called.
    #[must_use]
    pub fn new(client: Client, decodes: Arc<Budget>) -> Self {
        let deleted_pending = Arc::default();
        Self {
            api: ApiReader::new(client),
            decodes,
            caches: Caches::new(&deleted_pending),
            deleted_pending,
            manifests: ManifestCache::new(),
            documents: DocumentCache::new(),
        }
    }

    /// Limits reads to some namespaces. What other namespaces may hold is then unavailable, and a rule that asks for it is
    /// undecided. A HelmRelease in another namespace is treated as absent.
    #[must_use]
    pub fn within(mut self, reach: Reach) -> Self {
        self.api.reach = reach;
        self
    }

    /// Keeps copies of what rules query most, in tasks that end when the returned value is dropped. Each watch adds a gate
    /// to `readiness` and opens it after its first complete list.
    ///
    /// Watches need a client with a longer read timeout than reviews have: on a quiet watch the API server sends a bookmark
    /// once a minute.
    pub fn watch(&self, client: &Client, readiness: &Readiness) -> Watches {
        self.caches.watch(client, &self.api.reach, readiness)
    }

    /// The pending records whose deletion the watches saw.
    #[must_use]
    pub fn deleted_pending(&self) -> Arc<DeletedPendingRecords> {
        Arc::clone(&self.deleted_pending)
    }

    /// The newest record of a release as far as the watches know, superseded records excluded. It reads nothing. The second
    /// value is whether the watches are in sync.
    #[must_use]
    pub fn newest(&self, release: &ReleaseRef) -> (Option<NewestRecord>, bool) {
        self.caches.newest(release)
    }

    /// How many overrides are in force at a moment, by the policies of their namespaces, as far as the watch knows.
    #[must_use]
    pub fn overrides_in_force(&self, policies: &Policies, now: Timestamp) -> usize {
        self.caches.release_overrides().count(|it| it.is_in_force(&policies.of(&it.namespace).overrides, now))
    }

    /// Overrides that ended longer ago than the retention and are not being deleted, as far as the watch knows: at most so many, by
    /// namespace and name, from the first one after `after`.
    #[must_use]
    pub fn past_overrides(
        &self,
        retention: SignedDuration,
        now: Timestamp,
        after: Option<&(String, String)>,
        limit: usize,
    ) -> Vec<(String, String)> {
        self.caches.release_overrides().to_delete(after, limit, |it| it.is_past(retention, now))
    }

    async fn look_up(&self, query: &Query, payer: Payer<'_>) -> Result<Option<Knowledge>, Unavailable> {
        match query {
            Query::History { storage, namespace, release } => {
                self.history(*storage, namespace, release).await.map(Knowledge::History).map(Some)
            }
            Query::Body { storage, namespace, object } => self.body(*storage, namespace, object, payer).await,
            Query::Release { name, target_namespace, origin, freshness } => self
                .release(name, target_namespace, origin.as_ref(), *freshness)
                .await
                .map(Knowledge::Release)
                .map(Some),
            Query::Extension { name, freshness } => {
                self.extension(name, *freshness).await.map(Knowledge::Release).map(Some)
            }
            Query::Document { record, object } => match self.document(record, object, payer).await {
                Ok(found) => Ok(Some(Knowledge::Document(found))),
                Err(ManifestError::Absent) => Ok(None),
                Err(ManifestError::Unavailable(why)) => Err(why),
            },
            Query::Parent { object, freshness } => Ok(self.parent(object, *freshness).await?.map(Knowledge::Parent)),
            Query::HelmReleases { namespace, release } => {
                self.helm_releases(namespace, release).await.map(Knowledge::HelmReleases).map(Some)
            }
            Query::HelmReleasesIn { namespace } => {
                self.helm_releases_in(namespace).await.map(Knowledge::HelmReleases).map(Some)
            }
            Query::Overrides { namespace, release, freshness } => {
                self.overrides(namespace, release, *freshness).await.map(Knowledge::Overrides).map(Some)
            }
            Query::Workloads(named) => {
                let found =
                    side_by_side(CONCURRENT_READS, named.iter().map(|reference| self.workload(reference))).await?;
                Ok(Some(Knowledge::Workloads(found)))
            }
            Query::Leases { namespace } => {
                let config_maps = resource_of::<ConfigMap>();
                let leases: Option<DynamicObject> = self.api.get(&config_maps, namespace, super::WERF_LEASES).await?;
                Ok(leases.map(|leases| Knowledge::Leases(leases.metadata.annotations.unwrap_or_default())))
            }
            Query::Object(key) => Ok(self.api.object(key).await?.map(Knowledge::Object)),
            Query::Bundles(named) => {
                let found =
                    side_by_side(CONCURRENT_BUNDLE_READS, named.iter().map(|reference| self.bundle(reference))).await?;
                Ok(Some(Knowledge::Bundles(found.into_iter().map(Option::transpose).collect())))
            }
            Query::Namespace { name } => {
                let api: Api<Namespace> = Api::all(self.api.client.clone());
                let namespace = api.get_metadata_opt(self.api.in_reach(name)?).await.map_err(|error| reason(&error))?;
                Ok(namespace.map(|it| read::namespace(&it.metadata)))
            }
            Query::ReleasesIn { namespace } => self.releases_in(namespace).await.map(Knowledge::Releases).map(Some),
        }
    }

    async fn overrides(
        &self,
        namespace: &str,
        release: &str,
        freshness: Freshness,
    ) -> Result<Vec<Override>, Unavailable> {
        if freshness == Freshness::Cached {
            return Ok(self.caches.release_overrides().of(namespace, release));
        }
        let (namespace, release) = (self.api.in_reach(namespace)?, valid_name(release)?);
        match once_served(|| release_overrides::list(&self.api.client, namespace, release)).await {
            Ok(found) => Ok(found),
            // Their definition is not installed.
            Err(error) if is_not_found(&error) => Ok(Vec::new()),
            Err(error) => Err(reason(&error)),
        }
    }

    async fn workload(&self, reference: &WorkloadRef) -> Result<Option<Workload>, Unavailable> {
        let WorkloadRef { kind, namespace, name } = reference;
        if valid_name(namespace).is_err() || valid_name(name).is_err() {
            // No object can have such a name.
            return Ok(None);
        }
        let found: Option<WorkloadObject> = self.api.get(&rollout::resource(*kind), namespace, name).await?;
        Ok(found.map(|object| rollout(*kind, object)))
    }

    async fn bundle(&self, reference: &BundleRef) -> Result<Option<Result<Bundle, String>>, Unavailable> {
        if valid_name(&reference.namespace).is_err() || valid_name(&reference.name).is_err() {
            // No object can have such a name.
            return Ok(None);
        }
        let text = self.api.object(&ObjectKey::of_bundle(reference)).await?;
        Ok(text.map(|text| read::bundle(reference, &text)))
    }

    /// One LIST by label, metadata only, so that no release data is held in memory. Without a resourceVersion it is
    /// consistent.
    async fn history(&self, storage: Storage, namespace: &str, release: &str) -> Result<History, Unavailable> {
        let selector = ListParams::default().labels(&storage.selector(valid_name(release)?));
        let metadata = match storage {
            Storage::Secret | Storage::OlmIndex => self.api.list::<Secret>(namespace, &selector).await?,
            Storage::ConfigMap => self.api.list::<ConfigMap>(namespace, &selector).await?,
        };
        Ok(History::new(metadata.iter().filter_map(entry).collect()))
    }

    /// What may be the records of the release that an object belongs to. Live records in Secrets at home count before all others, so
    /// nothing else is read then.
    async fn release(
        &self,
        name: &str,
        target_namespace: &str,
        origin: Option<&Origin>,
        freshness: Freshness,
    ) -> Result<Vec<Located>, Unavailable> {
        let helm_releases = self.caches.helm_releases();
        let installed_in =
            origin.map_or(Some(None), |origin| helm_releases.installed_in(origin, name, target_namespace));
        let query =
            ReleaseQuery { name, target_namespace, installed_in: installed_in.as_ref().and_then(Option::as_deref) };
        let (known, complete) = self.caches.locate(query);
        // A stamp may point to any namespace.
        let complete = complete && installed_in.is_some() && (!known.is_empty() || self.api.reach.is_everywhere());
        if complete && freshness == Freshness::Cached {
            return Ok(known);
        }
        let at_home = self.record_sets(Storage::Secret.kind(), target_namespace, name).await?;
        let mut found = query.candidates(at_home);
        if found.iter().any(|located| located.storage == Storage::Secret && located.history.is_live()) {
            return Ok(found);
        }
        let elsewhere = known.iter().map(|located| (located.storage.kind(), located.namespace.as_str()));
        let elsewhere = elsewhere.chain(query.installed_in.map(|namespace| (Storage::Secret.kind(), namespace)));
        let mut places: Vec<_> = [(Storage::ConfigMap.kind(), target_namespace)].into_iter().chain(elsewhere).collect();
        places.sort_unstable();
        places.dedup();
        places.retain(|place| *place != (Storage::Secret.kind(), target_namespace));
        for (kind, namespace) in places {
            found.extend(query.candidates(self.record_sets(kind, namespace, name).await?));
        }
        if complete || !found.is_empty() {
            return Ok(found);
        }
        // Only the index finds records whose stamp points to another namespace.
        Err(format!("it is not known at the moment whether another namespace has records of release {name}"))
    }

    /// What may be the records of a ClusterExtension: one LIST in each namespace in reach, by label, metadata only.
    async fn extension(&self, name: &str, freshness: Freshness) -> Result<Vec<Located>, Unavailable> {
        if freshness == Freshness::Cached
            && let Some(known) = self.caches.extension(name)
            && (!known.is_empty() || self.api.reach.is_everywhere())
        {
            return Ok(known);
        }
        let selector = ListParams::default().labels(&Storage::OlmIndex.selector(valid_name(name)?));
        let mut found = Vec::new();
        for api in self.api.reach.apis::<Secret>(&self.api.client) {
            found.extend(api.list_metadata(&selector).await.map_err(|error| reason(&error))?.items);
        }
        let records = found.iter().filter_map(|item| {
            let (storage, _, entry) = read::record(Storage::OlmIndex.kind(), &item.metadata)?;
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

    async fn helm_release(&self, namespace: String, name: String) -> Result<Option<Driver>, Unavailable> {
        let key = ObjectKey::new(flux::GROUP, flux::HELM_RELEASE, &namespace, &name);
        let Some(text) = self.api.object(&key).await? else {
            return Ok(None);
        };
        let read = serde_json::from_str::<HelmRelease>(&text);
        let read =
            read.map_err(|error| format!("HelmRelease {namespace}/{name} cannot be parsed: {}", redacted(&error)))?;
        Ok(Some(Driver::from(&read)))
    }

    /// The HelmReleases that drive a release: a copy names the candidates, the API server confirms them.
    async fn helm_releases(&self, namespace: &str, release: &str) -> Result<Vec<Driver>, Unavailable> {
        let named = self.caches.helm_releases().driving(namespace, release);
        let named = named.ok_or(HELM_RELEASES_UNKNOWN)?;
        let reads = named.into_iter().map(|(namespace, name)| self.helm_release(namespace, name));
        let found = side_by_side(CONCURRENT_READS, reads).await?;
        let mut confirmed: Vec<_> = found.into_iter().flatten().collect();
        confirmed.retain(|driver| driver.drives(namespace, release));
        Ok(read::oldest_first(confirmed))
    }

    /// The releases whose records are in a namespace, and those that Flux or OLM has installed into it: one LIST of each kind of record,
    /// metadata only, and one for each release elsewhere.
    async fn releases_in(&self, namespace: &str) -> Result<Vec<(String, Located)>, Unavailable> {
        let selector = ListParams::default().labels(RECORD_SELECTOR);
        let secrets = self.api.list::<Secret>(namespace, &selector).await?;
        let config_maps = self.api.list::<ConfigMap>(namespace, &selector).await?;
        let secrets = secrets.iter().filter_map(|metadata| read::record(Storage::Secret.kind(), metadata));
        let records = secrets.chain(config_maps.iter().filter_map(|it| read::record(Storage::ConfigMap.kind(), it)));
        let mut entries: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (storage, release, entry) in records {
            entries.entry((release.to_owned(), storage)).or_default().push(entry);
        }
        let here = entries.into_iter().map(|((name, storage), entries)| {
            (name, RecordSet { storage, namespace: namespace.to_owned(), entries }.located(false))
        });
        let mut releases: Vec<_> = here.collect();
        let of_flux = self.caches.helm_releases().installed_into(namespace).ok_or(HELM_RELEASES_UNKNOWN)?;
        let of_olm = self.caches.extensions_in(namespace).ok_or(EXTENSIONS_UNKNOWN)?;
        let elsewhere = of_flux.into_iter().map(|release| (release, Storage::Secret));
        let elsewhere = elsewhere.chain(of_olm.into_iter().map(|release| (release, Storage::OlmIndex)));
        let elsewhere = elsewhere.filter(|(release, _)| release.namespace != namespace);
        let reads = elsewhere.map(async |(release, storage)| {
            let history = self.history(storage, &release.namespace, &release.name).await?;
            let installed = storage == Storage::Secret;
            Ok((release.name, Located { storage, namespace: release.namespace, history, installed }))
        });
        releases.extend(side_by_side(CONCURRENT_READS, reads).await?);
        Ok(releases)
    }

    /// The HelmReleases in a namespace. Their values can be large, so only those are read that the copy has not seen as they are now.
    async fn helm_releases_in(&self, namespace: &str) -> Result<Vec<Driver>, Unavailable> {
        let listed = self.api.list_custom(flux::GROUP, flux::HELM_RELEASE, namespace).await?;
        let seen = self.caches.helm_releases().seen(&listed).ok_or(HELM_RELEASES_UNKNOWN)?;
        let SeenHelmReleases { mut drivers, unseen } = seen;
        let reads = unseen.into_iter().map(|name| self.helm_release(namespace.to_owned(), name));
        drivers.extend(side_by_side(CONCURRENT_READS, reads).await?.into_iter().flatten());
        Ok(read::oldest_first(drivers))
    }

    /// The records of a name in objects of one kind and namespace, by storage: one LIST, metadata only.
    async fn record_sets(&self, kind: &str, namespace: &str, release: &str) -> Result<Vec<RecordSet>, Unavailable> {
        let selector = format!("{},name={}", read::RECORD_SELECTOR, valid_name(release)?);
        let selector = ListParams::default().labels(&selector);
        let metadata = match kind {
            "ConfigMap" => self.api.list::<ConfigMap>(namespace, &selector).await?,
            _ => self.api.list::<Secret>(namespace, &selector).await?,
        };
        let records = metadata.iter().filter_map(|metadata| read::record(kind, metadata));
        Ok(RecordSet::gather(records.map(|(storage, _, entry)| (storage, namespace.to_owned(), entry))))
    }

    /// The marks of a scaled object.
    async fn parent(&self, object: &ScaledRef, freshness: Freshness) -> Result<Option<Marks>, Unavailable> {
        let cached = freshness == Freshness::Cached && self.api.reach.includes(&object.namespace);
        if let Some(marks) = self.caches.marks(object).filter(|_| cached) {
            return Ok(marks);
        }
        Ok(self.api.scaled(object).await?.and_then(|metadata| read::marks(&metadata)))
    }
}

impl Known for Cluster {
    fn in_flight(&self, limit: usize) -> (Vec<InFlight>, usize, bool) {
        self.caches.in_flight(limit)
    }

    fn drivers(&self) -> Option<Vec<Driver>> {
        self.caches.helm_releases().all()
    }

    fn overrides_that(&self, matches: &dyn Fn(&Override) -> bool, limit: usize) -> Option<(Vec<Override>, usize)> {
        self.caches.release_overrides().that(matches, limit)
    }
}

impl World for Cluster {
    fn answer_for<'w>(&'w self, query: &'w Query, payer: Payer<'w>) -> AnswerFuture<'w> {
        Box::pin(async move {
            match self.look_up(query, payer).await {
                Ok(Some(knowledge)) => Answer::Known(knowledge),
                Ok(None) => Answer::Absent,
                Err(why) => Answer::Unavailable(why),
            }
        })
    }
}

#[cfg(test)]
mod tests;
