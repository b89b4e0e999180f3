//! The world as a Kubernetes API server tells it: copies that watches keep where those will do, otherwise live reads, each
//! bounded by the review's deadline.

mod caches;
mod custom;
mod definition;
pub(super) mod helm_releases;
pub(crate) mod identity;
mod index;
pub(crate) mod kinds;
pub(crate) mod listed;
mod losses;
pub mod override_definition;
mod parents;
pub(crate) mod policies;
pub(crate) mod reach;
mod records;
pub(super) mod release_overrides;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, PartialObjectMeta};
use kube::core::{NamespaceResourceScope, ObjectList, Status};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::time::sleep;

pub use caches::Watches;
pub use losses::{Loss, Losses};
pub use reach::Reach;
pub(crate) use records::Head;

use super::documents::Documents;
use super::locate::{self, Place, Sought};
use super::manifests::{Manifests, Missing};
use super::read::{self, Rollout, entry};
use super::{Answering, Newest, World};
use crate::budget::Budget;
use crate::engine::evidence::{Answer, Freshness, Knowledge, Located, Query, ScaledRef, Workload};
use crate::engine::flux::{self, Driver, HelmRelease};
use crate::engine::json::redacted;
use crate::engine::managed::{Marks, Origin};
use crate::engine::object::ObjectKey;
use crate::engine::overrides::Override;
use crate::engine::policy::Policies;
use crate::engine::release::manifest::{WorkloadKind, WorkloadRef};
use crate::engine::release::{History, ReleaseRef, Storage};
use crate::engine::sveltos::{Bundle, BundleRef};
use crate::readiness::Readiness;
use caches::Caches;
use kinds::Kinds;

/// Reads from an API server.
///
/// The client must neither retry nor wait without bound (`Config::default_retry`, a read timeout): a review has a few
/// seconds, and its answer is wanted before them or not at all.
pub struct Cluster {
    client: Client,
    reach: Reach,
    decodes: Arc<Budget>,
    caches: Caches,
    losses: Arc<Losses>,
    manifests: Manifests,
    documents: Documents,
    kinds: Kinds,
}

/// Objects read at a time, so that the hundreds of a large release fit into the time of a review.
const READS: usize = 16;

/// Bundles read at a time. Fewer, because each may be as large as an object can be, 1.5 MiB in etcd by default, and is in
/// memory until it is read through.
const BUNDLE_READS: usize = 8;

/// Why a query got no answer.
type Failed = String;

impl Cluster {
    /// A world behind a client; `decodes` bounds the memory of the record bodies that it reads. Every answer is a live one
    /// until [`Self::watch`] is called.
    #[must_use]
    pub fn new(client: Client, decodes: Arc<Budget>) -> Self {
        let losses = Arc::default();
        Self {
            client,
            reach: Reach::default(),
            decodes,
            caches: Caches::new(&losses),
            losses,
            manifests: Manifests::new(),
            documents: Documents::new(),
            kinds: Kinds::default(),
        }
    }

    /// Looks nowhere else. What lies in other namespaces, or may do so, is not known then, and leaves a rule that asks for it
    /// undecided; but a HelmRelease there is as if it were not.
    #[must_use]
    pub fn within(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    /// Keeps copies of what is asked most, in tasks that end when the watches are dropped. Each adds a gate to `readiness`
    /// and opens it once it has a whole list.
    ///
    /// Watches need a client of their own with a longer read timeout than reviews have: a quiet one hears from the API
    /// server once a minute.
    pub fn watch(&self, client: &Client, readiness: &Readiness) -> Watches {
        self.caches.watch(client, &self.reach, readiness)
    }

    /// The pending records that the watches saw vanish.
    #[must_use]
    pub fn losses(&self) -> Arc<Losses> {
        Arc::clone(&self.losses)
    }

    /// The newest record of a release as far as the watches know, superseded ones left out; no read. The second value is
    /// whether they know all that there is.
    #[must_use]
    pub fn newest(&self, release: &ReleaseRef) -> (Option<Newest>, bool) {
        self.caches.newest(release)
    }

    /// How many overrides are in force at a moment by the policies of their namespaces, as far as the watch knows.
    #[must_use]
    pub fn overrides_in_force(&self, policies: &Policies, now: Timestamp) -> usize {
        self.caches.release_overrides().count(|it| it.is_in_force(&policies.of(&it.namespace).overrides, now))
    }

    async fn look_up(&self, query: &Query) -> Result<Option<Knowledge>, Failed> {
        match query {
            Query::History { storage, namespace, release } => {
                self.history(*storage, namespace, release).await.map(Knowledge::History).map(Some)
            }
            Query::Body { storage, namespace, object } => {
                Ok(self.body(*storage, namespace, object).await?.map(Knowledge::Body))
            }
            Query::Release { name, target_namespace, origin, freshness } => {
                Ok(self.release(name, target_namespace, origin.as_ref(), *freshness).await?.map(Knowledge::Release))
            }
            Query::Extension { name, freshness } => Ok(self.extension(name, *freshness).await?.map(Knowledge::Release)),
            Query::Exists { group, kind, label, value } => {
                self.exists(group, kind, label, value).await.map(Knowledge::Exists).map(Some)
            }
            Query::Document { record, object } => match self.document(record, object).await {
                Ok(found) => Ok(Some(Knowledge::Document(found))),
                Err(Missing::Absent) => Ok(None),
                Err(Missing::Failed(why)) => Err(why),
            },
            Query::Parent { object, freshness } => Ok(self.parent(object, *freshness).await?.map(Knowledge::Parent)),
            Query::HelmReleases { namespace, release } => {
                self.helm_releases(namespace, release).await.map(Knowledge::HelmReleases).map(Some)
            }
            Query::Overrides { namespace, release, freshness } => {
                self.overrides(namespace, release, *freshness).await.map(Knowledge::Overrides).map(Some)
            }
            Query::Workloads(named) => {
                let found = side_by_side(READS, named.iter().map(|reference| self.workload(reference))).await?;
                Ok(Some(Knowledge::Workloads(found)))
            }
            Query::Leases { namespace } => {
                let leases = self.get::<ConfigMap>(namespace, super::LEASES).await?;
                Ok(leases.map(|leases| Knowledge::Leases(leases.metadata.annotations.unwrap_or_default())))
            }
            Query::Object(key) => Ok(self.object(key).await?.map(Knowledge::Object)),
            Query::Bundles(named) => {
                let found = side_by_side(BUNDLE_READS, named.iter().map(|reference| self.bundle(reference))).await?;
                Ok(Some(Knowledge::Bundles(found.into_iter().map(Option::transpose).collect())))
            }
            Query::Namespace { name } => {
                let api: Api<Namespace> = Api::all(self.client.clone());
                let namespace = api.get_metadata_opt(self.reached(name)?).await.map_err(failed)?;
                Ok(namespace.map(|it| Knowledge::Terminating(it.metadata.deletion_timestamp.is_some())))
            }
        }
    }

    async fn overrides(&self, namespace: &str, release: &str, freshness: Freshness) -> Result<Vec<Override>, Failed> {
        if freshness == Freshness::Cached {
            return Ok(self.caches.release_overrides().of(namespace, release));
        }
        let (namespace, release) = (self.reached(namespace)?, checked(release)?);
        match once_served(|| release_overrides::list(&self.client, namespace, release)).await {
            Ok(found) => Ok(found),
            // Their definition is not installed.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(error) => Err(failed(error)),
        }
    }

    async fn workload(&self, reference: &WorkloadRef) -> Result<Option<Workload>, Failed> {
        let WorkloadRef { kind, namespace, name } = reference;
        if checked(namespace).is_err() || checked(name).is_err() {
            // No object can have such a name.
            return Ok(None);
        }
        Ok(match kind {
            WorkloadKind::Deployment => self.get::<Deployment>(namespace, name).await?.map(|it| it.rollout()),
            WorkloadKind::StatefulSet => self.get::<StatefulSet>(namespace, name).await?.map(|it| it.rollout()),
            WorkloadKind::DaemonSet => self.get::<DaemonSet>(namespace, name).await?.map(|it| it.rollout()),
        })
    }

    async fn bundle(&self, reference: &BundleRef) -> Result<Option<Result<Bundle, String>>, Failed> {
        if checked(&reference.namespace).is_err() || checked(&reference.name).is_err() {
            // No object can have such a name.
            return Ok(None);
        }
        let text = self.object(&ObjectKey::of_bundle(reference)).await?;
        Ok(text.map(|text| read::bundle(reference, &text)))
    }

    /// One LIST by label, metadata only: no release data in our memory. Without a resourceVersion it is consistent.
    async fn history(&self, storage: Storage, namespace: &str, release: &str) -> Result<History, Failed> {
        let selector = ListParams::default().labels(&storage.selector(checked(release)?));
        let metadata = match storage {
            Storage::Secret | Storage::OlmIndex => self.list::<Secret>(namespace, &selector).await?,
            Storage::ConfigMap => self.list::<ConfigMap>(namespace, &selector).await?,
        };
        Ok(History::new(metadata.iter().filter_map(entry).collect()))
    }

    /// The records of a release that an object names.
    async fn release(
        &self,
        name: &str,
        target_namespace: &str,
        origin: Option<&Origin>,
        freshness: Freshness,
    ) -> Result<Option<Located>, Failed> {
        let told = origin.map_or(Some(None), |origin| self.caches.helm_releases().told(origin, name));
        let origin = origin.map(|origin| origin.namespace.as_str());
        let sought = Sought { name, target_namespace, origin, told: told.as_ref().and_then(Option::as_deref) };
        let (known, complete) = self.caches.locate(sought);
        // A stamp may lead to any namespace.
        let complete = complete && told.is_some() && (known.is_some() || self.reach.is_everywhere());
        if complete && freshness == Freshness::Cached {
            return Ok(known);
        }
        if let Some(Located { storage, namespace, .. }) = known {
            let places = self.places(storage.kind(), &namespace, sought.name).await?;
            let place = places.into_iter().filter(|place| place.storage == storage);
            if let Some(located) = sought.choose(place) {
                return Ok(Some(located));
            }
            // The copy lags: the release has moved, or is gone.
        }
        for kind in [Storage::Secret.kind(), Storage::ConfigMap.kind()] {
            let mut places = Vec::new();
            for namespace in sought.namespaces() {
                places.extend(self.places(kind, namespace, sought.name).await?);
            }
            if let Some(located) = sought.choose(places) {
                return Ok(Some(located));
            }
        }
        if complete {
            return Ok(None);
        }
        // Only the index finds it where a stamp leads to another namespace.
        Err(format!("whether another namespace has records of release {} is not known at the moment", sought.name))
    }

    /// The records of a ClusterExtension: one LIST over all namespaces that are looked at, by label, metadata only.
    async fn extension(&self, name: &str, freshness: Freshness) -> Result<Option<Located>, Failed> {
        if freshness == Freshness::Cached
            && let Some(known) = self.caches.extension(name)
            && (known.is_some() || self.reach.is_everywhere())
        {
            return Ok(known);
        }
        let selector = ListParams::default().labels(&Storage::OlmIndex.selector(checked(name)?));
        let mut found = Vec::new();
        for place in self.reach.places() {
            let api: Api<Secret> = match place {
                Some(namespace) => Api::namespaced(self.client.clone(), namespace),
                None => Api::all(self.client.clone()),
            };
            found.extend(api.list_metadata(&selector).await.map_err(failed)?.items);
        }
        let records = found.iter().filter_map(|item| {
            let (storage, _, entry) = read::record(Storage::OlmIndex.kind(), &item.metadata)?;
            Some((storage, item.metadata.namespace.clone().unwrap_or_default(), entry))
        });
        match locate::of_extension(Place::gather(records)) {
            None if !self.reach.is_everywhere() => {
                Err(format!("whether ClusterExtension {name} has records elsewhere is not known: {LIMITED}"))
            }
            found => Ok(found),
        }
    }

    /// Whether there is an object with a label: a LIST of one, metadata only.
    async fn exists(&self, group: &str, kind: &str, label: &str, value: &str) -> Result<bool, Failed> {
        let Some(resource) = self.kinds.resolve(&self.client, group, kind).await.map_err(failed)? else {
            return Ok(false);
        };
        let selector = ListParams::default().labels(&format!("{label}={}", checked(value)?)).limit(1);
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        match once_served(|| api.list_metadata(&selector)).await {
            Ok(found) => Ok(!found.items.is_empty()),
            // Its definition went since it was looked up.
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.kinds.forget(group, kind);
                Ok(false)
            }
            Err(error) => Err(failed(error)),
        }
    }

    async fn helm_release(&self, namespace: String, name: String) -> Result<Option<Driver>, Failed> {
        let key = ObjectKey::new(flux::GROUP, flux::HELM_RELEASE, &namespace, &name);
        let Some(text) = self.object(&key).await? else {
            return Ok(None);
        };
        let read = serde_json::from_str::<HelmRelease>(&text);
        let read =
            read.map_err(|error| format!("HelmRelease {namespace}/{name} does not read: {}", redacted(&error)))?;
        Ok(Some(Driver::from(&read)))
    }

    /// The HelmReleases that drive a release: which it may be is told by a copy, what they say by the API server.
    async fn helm_releases(&self, namespace: &str, release: &str) -> Result<Vec<Driver>, Failed> {
        let named = self.caches.helm_releases().driving(namespace, release);
        let named = named.ok_or("which HelmReleases there are is not known at the moment")?;
        let reads = named.into_iter().map(|(namespace, name)| self.helm_release(namespace, name));
        let found = side_by_side(READS, reads).await?;
        let mut confirmed: Vec<_> = found.into_iter().flatten().collect();
        confirmed.retain(|driver| driver.drives(namespace, release));
        Ok(helm_releases::oldest_first(confirmed))
    }

    /// The records of a name in the objects of a kind in one namespace, by storage: one LIST, metadata only.
    async fn places(&self, kind: &str, namespace: &str, release: &str) -> Result<Vec<Place>, Failed> {
        let selector = format!("{},name={}", read::RECORDS, checked(release)?);
        let selector = ListParams::default().labels(&selector);
        let metadata = match kind {
            "ConfigMap" => self.list::<ConfigMap>(namespace, &selector).await?,
            _ => self.list::<Secret>(namespace, &selector).await?,
        };
        let records = metadata.iter().filter_map(|metadata| read::record(kind, metadata));
        Ok(Place::gather(records.map(|(storage, _, entry)| (storage, namespace.to_owned(), entry))))
    }

    /// The marks of a scaled object.
    async fn parent(&self, object: &ScaledRef, freshness: Freshness) -> Result<Option<Marks>, Failed> {
        let ScaledRef { group, version, resource, kind, namespace, name } = object;
        if freshness == Freshness::Cached
            && self.reach.includes(namespace)
            && let Some(marks) = self.caches.marks(object)
        {
            return Ok(marks);
        }
        let group = if group.is_empty() { "" } else { checked(group)? };
        let kind = GroupVersionKind::gvk(group, checked(version)?, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, checked(resource)?);
        let client = self.client.clone();
        let api: Api<DynamicObject> = match namespace.as_str() {
            "" => Api::all_with(client, &resource),
            namespace => Api::namespaced_with(client, self.reached(namespace)?, &resource),
        };
        let found = api.get_metadata_opt(checked(name)?).await.map_err(failed)?;
        Ok(found.and_then(|object| read::marks(&object.metadata)))
    }

    /// The JSON text of an object of any kind; `None` when there is no such object, or no such kind.
    async fn object(&self, key: &ObjectKey) -> Result<Option<String>, Failed> {
        let ObjectKey { group, kind, namespace, name } = key;
        // A definition may have moved on to another version since it was looked up.
        for _ in 0..2 {
            let Some(resource) = self.kinds.resolve(&self.client, group, kind).await.map_err(failed)? else {
                return Ok(None);
            };
            let namespace = (!namespace.is_empty()).then(|| self.reached(namespace)).transpose()?;
            let collection = DynamicObject::url_path(&resource, namespace);
            let path = format!("{collection}/{}", checked(name)?);
            match once_served(|| self.read(path.clone())).await {
                Ok(text) => return Ok(Some(text)),
                Err(kube::Error::Api(status)) if status.code == 404 && names_object(&status) => return Ok(None),
                Err(kube::Error::Api(status)) if status.code == 404 => self.kinds.forget(group, kind),
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(None)
    }

    /// A namespace that is looked at.
    fn reached<'n>(&self, namespace: &'n str) -> Result<&'n str, Failed> {
        let namespace = checked(namespace)?;
        if self.reach.includes(namespace) {
            return Ok(namespace);
        }
        Err(format!("namespace {namespace} was not looked at: {LIMITED}"))
    }

    async fn read(&self, path: String) -> kube::Result<String> {
        let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        self.client.request_text(request).await
    }

    async fn get<K>(&self, namespace: &str, name: &str) -> Result<Option<K>, Failed>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), self.reached(namespace)?);
        api.get_opt(checked(name)?).await.map_err(failed)
    }

    async fn list<K>(&self, namespace: &str, selector: &ListParams) -> Result<Vec<ObjectMeta>, Failed>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), self.reached(namespace)?);
        let list: ObjectList<PartialObjectMeta<K>> = api.list_metadata(selector).await.map_err(failed)?;
        Ok(list.items.into_iter().map(|item| item.metadata).collect())
    }
}

/// Why something is not known that others could have told.
const LIMITED: &str = "this Interlock looks into some namespaces only (--namespaces)";

impl World for Cluster {
    fn answer<'w>(&'w self, query: &'w Query) -> Answering<'w> {
        Box::pin(async move {
            match self.look_up(query).await {
                Ok(Some(knowledge)) => Answer::Known(knowledge),
                Ok(None) => Answer::Absent,
                Err(why) => Answer::Unavailable(why),
            }
        })
    }
}

/// Names become parts of paths and selectors. The API server sends only valid ones, but it is not the only one that can
/// reach this port.
fn checked(name: &str) -> Result<&str, Failed> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if !name.is_empty() && name.len() <= 253 && name.bytes().all(plain) {
        return Ok(name);
    }
    Err(format!("{:?} is not the name of an object", name.chars().take(80).collect::<String>()))
}

/// Makes reads, so many at a time, up to the first that fails; what they found is in their order.
async fn side_by_side<T, F>(most: usize, reads: impl Iterator<Item = F>) -> Result<Vec<T>, Failed>
where
    F: Future<Output = Result<T, Failed>>,
{
    stream::iter(reads.collect::<Vec<_>>()).buffered(most).try_collect().await
}

/// Reads what a definition serves. The API server answers 429 for the second or two that it takes to begin with a new one; the
/// review's deadline is what ends the patience with it.
async fn once_served<T, F: Future<Output = kube::Result<T>>>(read: impl Fn() -> F) -> kube::Result<T> {
    const PAUSE: Duration = Duration::from_millis(200);
    loop {
        match read().await {
            Err(kube::Error::Api(status)) if status.code == 429 => sleep(PAUSE).await,
            answered => return answered,
        }
    }
}

/// Whether a 404 is that of an object, and not that of a path which the API server does not serve.
fn names_object(status: &Status) -> bool {
    status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}

fn failed(error: kube::Error) -> Failed {
    match error {
        kube::Error::Api(status) => format!("the API server answered {}: {}", status.code, status.message),
        error => format!("the API server did not answer: {error}"),
    }
}

#[cfg(test)]
mod tests;
