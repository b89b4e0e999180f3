//! How the kinds of manifests are served, looked up once each.

use std::collections::HashMap;

use kube::api::{ApiResource, GroupVersionKind};
use kube::discovery::{self, Scope};
use kube::{Client, Error};
use tokio::sync::Mutex;

use crate::engine::object::group_of;

/// A kind as it is served.
#[derive(Debug, Clone)]
pub(super) struct Served {
    pub(super) resource: ApiResource,
    pub(super) namespaced: bool,
}

/// What the API server serves of what was asked for.
#[derive(Debug, Default)]
pub(super) struct ServedKinds(Mutex<HashMap<(String, String), Option<Served>>>);

impl ServedKinds {
    /// How a kind of an API version is served; `None` where it is not: the chart is older than the cluster, or its
    /// definition is gone.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub(super) async fn get(&self, client: &Client, api_version: &str, kind: &str) -> Result<Option<Served>, Error> {
        // Held through the look-up, so that it is made once.
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
