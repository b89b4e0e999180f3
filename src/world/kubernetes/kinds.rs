//! The kinds of the cluster, by group and name: their served versions and resources.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kube::api::ApiResource;
use kube::error::DiscoveryError;
use kube::{Client, discovery};
use tokio::time::Instant;

/// How long [`Kinds::is_served`] takes a kind for absent after the API server did not know it.
const ABSENT_FOR: Duration = Duration::from_secs(60);

/// The resolved kinds. A kind is forgotten when its path answers 404.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    resolved: Mutex<HashMap<(String, String), ApiResource>>,
    /// When a kind was last found to be absent.
    absent: Mutex<HashMap<(String, String), Instant>>,
}

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

    /// Whether the API server serves a kind, as of the last minute: at most one read a minute while it does not.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub(crate) async fn is_served(&self, client: &Client, group: &str, kind: &str) -> Result<bool, kube::Error> {
        let key = (group.to_owned(), kind.to_owned());
        let is_absent = |since: &Instant| since.elapsed() < ABSENT_FOR;
        if self.absent().get(&key).is_some_and(is_absent) {
            return Ok(false);
        }
        let is_served = self.resolve(client, group, kind).await?.is_some();
        if !is_served {
            self.absent().insert(key, Instant::now());
        }
        Ok(is_served)
    }

    /// Forgets a kind whose path is gone.
    pub(crate) fn forget(&self, group: &str, kind: &str) {
        self.lock().remove(&(group.to_owned(), kind.to_owned()));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), ApiResource>> {
        // Nothing can panic while the lock is held.
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn absent(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), Instant>> {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
