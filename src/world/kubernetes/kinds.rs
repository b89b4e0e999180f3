//! The kinds of the cluster, by group and name: their served versions and resources.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use kube::api::ApiResource;
use kube::error::DiscoveryError;
use kube::{Client, discovery};

/// The resolved kinds. A kind is forgotten when its path answers 404.
#[derive(Debug, Default)]
pub(crate) struct Kinds(Mutex<HashMap<(String, String), ApiResource>>);

impl Kinds {
    /// The resource of a kind in its most stable version; `None` if its definition is not installed. The first call for an
    /// installed kind costs two small reads.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub(crate) async fn resolve(
        &self,
        client: &Client,
        group: &str,
        kind: &str,
    ) -> Result<Option<ApiResource>, kube::Error> {
        let key = (group.to_owned(), kind.to_owned());
        if let Some(known) = self.lock().get(&key) {
            return Ok(Some(known.clone()));
        }
        let served = match discovery::group(client, group).await {
            Ok(served) => served,
            Err(kube::Error::Discovery(DiscoveryError::MissingApiGroup(_))) => return Ok(None),
            // While a group is installed or removed, it may be listed although its versions cannot be read.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = served.resources_by_stability().into_iter().find(|(resource, _)| resource.kind == kind);
        Ok(found.map(|(resource, _)| self.lock().entry(key).or_insert(resource).clone()))
    }

    /// Forgets a kind whose path is gone.
    pub(crate) fn forget(&self, group: &str, kind: &str) {
        self.lock().remove(&(group.to_owned(), kind.to_owned()));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), ApiResource>> {
        // Nothing can panic while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
