//! Discovery of the kinds in manifests, once per kind.

use std::collections::HashMap;

use interlock_engine::object::group_of;
use kube::api::{ApiResource, GroupVersionKind};
use kube::discovery::{self, Scope};
use kube::{Client, Error};
use tokio::sync::Mutex;

/// A kind that the cluster serves.
#[derive(Debug, Clone)]
pub(super) struct Served {
    pub(super) resource: ApiResource,
    pub(super) namespaced: bool,
}

/// A cache of discovered kinds.
#[derive(Debug, Default)]
pub(super) struct ServedKinds(Mutex<HashMap<(String, String), Option<Served>>>);

impl ServedKinds {
    /// Discovers a kind of an API version; `None` if the cluster does not serve it: the chart is too old, or the
    /// CustomResourceDefinition was deleted.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub(super) async fn get(&self, client: &Client, api_version: &str, kind: &str) -> Result<Option<Served>, Error> {
        // Held during discovery, so that each kind is discovered once.
        let mut known = self.0.lock().await;
        let key = (api_version.to_owned(), kind.to_owned());
        if let Some(served) = known.get(&key) {
            return Ok(served.clone());
        }
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let wanted = GroupVersionKind::gvk(group_of(api_version), version, kind);
        let served = match discovery::pinned_kind(client, &wanted).await {
            Ok((resource, capabilities)) => {
                Some(Served { resource, namespaced: capabilities.scope == Scope::Namespaced })
            }
            Err(Error::Discovery(_)) => None,
            Err(Error::Api(status)) if status.code == 404 => None,
            Err(error) => return Err(error),
        };
        Ok(known.entry(key).or_insert(served).clone())
    }
}
