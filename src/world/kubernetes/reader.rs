//! Plain reads from the API server, within the namespaces that Interlock may read.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use http::Request;
use interlock_engine::evidence::ScaledRef;
use interlock_engine::object::{MAX_NAME_LENGTH, ObjectKey, is_dns_subdomain};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ApiResource, DynamicObject, GetParams, GroupVersionKind, ListParams};
use kube::core::DynamicResourceScope;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use super::api_error::{if_found, is_missing_object, is_not_found, reason};
use super::intake::IntakeClient;
use super::kinds::Kinds;
use super::reach::Reach;
use crate::world::metadata_only::resource_of;

/// Why a query has no answer.
pub(super) type Unavailable = String;

/// Why the state of other namespaces is unknown.
pub(super) const OUT_OF_REACH: &str = "this Interlock looks into some namespaces only (--namespaces)";

/// The number of objects in one page of a LIST.
const LIST_PAGE: u32 = 500;

/// The time between two reads of a kind with a new definition.
const NEW_KIND_RETRY: Duration = Duration::from_millis(200);

/// Reads objects and lists.
pub(super) struct ApiReader {
    client: IntakeClient,
    pub(super) reach: Reach,
    kinds: Kinds,
}

impl ApiReader {
    pub(super) fn new(client: IntakeClient) -> Self {
        Self { client, reach: Reach::default(), kinds: Kinds::default() }
    }

    /// The client, for kube's functions.
    pub(super) fn client(&self) -> &Client {
        self.client.kube()
    }

    /// The namespace, if Interlock may read it.
    pub(super) fn in_reach<'n>(&self, namespace: &'n str) -> Result<&'n str, Unavailable> {
        let namespace = valid_name(namespace)?;
        if self.reach.includes(namespace) {
            return Ok(namespace);
        }
        Err(format!("namespace {namespace} was not read: {OUT_OF_REACH}"))
    }

    /// The text of the answer to a GET.
    pub(super) async fn text(&self, path: String) -> kube::Result<String> {
        let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        self.client().request_text(request).await
    }

    /// An object of a built-in kind.
    pub(super) async fn get<K>(&self, kind: &ApiResource, namespace: &str, name: &str) -> Result<Option<K>, Unavailable>
    where
        K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced_with(self.client().clone(), self.in_reach(namespace)?, kind);
        api.get_opt(valid_name(name)?).await.map_err(|error| reason(&error))
    }

    /// The metadata of the selected records in objects of a kind, `Secret` or `ConfigMap`: one LIST.
    pub(super) async fn records(
        &self,
        kind: &str,
        namespace: &str,
        labels: &str,
    ) -> Result<Vec<ObjectMeta>, Unavailable> {
        let kind = if kind == "ConfigMap" { resource_of::<ConfigMap>() } else { resource_of::<Secret>() };
        let api: Api<DynamicObject> = Api::namespaced_with(self.client().clone(), self.in_reach(namespace)?, &kind);
        let list = api.list_metadata(&ListParams::default().labels(labels)).await.map_err(|error| reason(&error))?;
        Ok(list.items.into_iter().map(|item| item.metadata).collect())
    }

    /// The JSON text of an object of any kind; `None` if the object or the kind does not exist.
    pub(super) async fn object(&self, key: &ObjectKey) -> Result<Option<String>, Unavailable> {
        let ObjectKey { group, kind, namespace, name } = key;
        // The definition may now serve another version than the resolved one.
        for _ in 0..2 {
            let resolved = self.kinds.resolve(self.client(), group, kind).await;
            let Some(resource) = resolved.map_err(|error| reason(&error))? else {
                return Ok(None);
            };
            let namespace = (!namespace.is_empty()).then(|| self.in_reach(namespace)).transpose()?;
            let collection = DynamicObject::url_path(&resource, namespace);
            let path = format!("{collection}/{}", valid_name(name)?);
            match once_served(|| self.text(path.clone())).await {
                Ok(text) => return Ok(Some(text)),
                Err(error) if is_missing_object(&error) => return Ok(None),
                Err(error) if is_not_found(&error) => self.kinds.forget(group, kind),
                Err(error) => return Err(reason(&error)),
            }
        }
        Ok(None)
    }

    /// The metadata of the objects of a custom kind in a namespace; none if the kind is not installed.
    pub(super) async fn list_custom(
        &self,
        group: &str,
        kind: &str,
        namespace: &str,
    ) -> Result<Vec<ObjectMeta>, Unavailable> {
        let namespace = self.in_reach(namespace)?;
        self.list_custom_with(group, kind, |client, resource| Api::namespaced_with(client, namespace, resource)).await
    }

    /// Whether the API server serves a kind, by group and name.
    pub(super) async fn serves(&self, (group, kind): (&str, &str)) -> Result<bool, Unavailable> {
        self.kinds.is_served(self.client(), group, kind).await.map_err(|error| reason(&error))
    }

    /// The metadata of all objects of a custom kind that is cluster-scoped; none if the kind is not installed.
    pub(super) async fn list_all_custom(&self, group: &str, kind: &str) -> Result<Vec<ObjectMeta>, Unavailable> {
        self.list_custom_with(group, kind, Api::all_with).await
    }

    async fn list_custom_with(
        &self,
        group: &str,
        kind: &str,
        api: impl FnOnce(Client, &ApiResource) -> Api<DynamicObject>,
    ) -> Result<Vec<ObjectMeta>, Unavailable> {
        let resolved = self.kinds.resolve(self.client(), group, kind).await;
        let Some(resource) = resolved.map_err(|error| reason(&error))? else {
            return Ok(Vec::new());
        };
        let api = api(self.client().clone(), &resource);
        let (mut page, mut found) = (ListParams::default().limit(LIST_PAGE), Vec::new());
        loop {
            let listed = match once_served(|| api.list_metadata(&page)).await {
                Ok(listed) => listed,
                // The definition was deleted after it was resolved.
                Err(error) if is_not_found(&error) => {
                    self.kinds.forget(group, kind);
                    return Ok(Vec::new());
                }
                Err(error) => return Err(reason(&error)),
            };
            found.extend(listed.items.into_iter().map(|item| item.metadata));
            match listed.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(found),
            }
        }
    }

    /// The JSON text of a scaled object, of which the API server sends only the metadata.
    pub(super) async fn scaled(&self, object: &ScaledRef) -> Result<Option<String>, Unavailable> {
        let ScaledRef { group, version, resource, kind, namespace, name } = object;
        let group = if group.is_empty() { "" } else { valid_name(group)? };
        let kind = GroupVersionKind::gvk(group, valid_name(version)?, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, valid_name(resource)?);
        let namespace = (!namespace.is_empty()).then(|| self.in_reach(namespace)).transpose()?;
        let collection = kube::core::Request::new(DynamicObject::url_path(&resource, namespace));
        let request =
            collection.get_metadata(valid_name(name)?, &GetParams::default()).map_err(|error| error.to_string())?;
        if_found(self.client().request_text(request).await)
    }
}

/// A valid name, for use in paths and selectors. The API server sends only valid names, but other clients can also reach this port.
pub(super) fn valid_name(name: &str) -> Result<&str, Unavailable> {
    if is_dns_subdomain(name, MAX_NAME_LENGTH) {
        return Ok(name);
    }
    Err(format!("{:?} is not the name of an object", name.chars().take(80).collect::<String>()))
}

/// Runs reads, at most `limit` at a time, until the first failure. The results have the order of the reads.
pub(super) async fn side_by_side<T, F>(limit: usize, reads: impl Iterator<Item = F>) -> Result<Vec<T>, Unavailable>
where
    F: Future<Output = Result<T, Unavailable>>,
{
    stream::iter(reads.collect::<Vec<_>>()).buffered(limit).try_collect().await
}

/// Reads objects of a custom kind. For a second or two after the installation of a definition, the API server answers 429. The
/// deadline of the review ends the retries.
pub(super) async fn once_served<T, F: Future<Output = kube::Result<T>>>(read: impl Fn() -> F) -> kube::Result<T> {
    loop {
        match read().await {
            Err(kube::Error::Api(status)) if status.code == 429 => sleep(NEW_KIND_RETRY).await,
            answered => return answered,
        }
    }
}
