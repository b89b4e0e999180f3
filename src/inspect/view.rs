//! A cluster as the user of a kubeconfig sees it: the HelmReleases, and the records of one release at a time.

use std::sync::Arc;

use kube::Client;

use super::api_error::reason;
use super::scan::{DECODE_BYTES, Gap, gather};
use crate::budget::Budget;
use crate::engine::evidence::{Answer, Knowledge, Query};
use crate::engine::policy::Policies;
use crate::engine::release::{History, ReleaseRef, Storage};
use crate::world::World;
use crate::world::kubernetes::Cluster;
use crate::world::kubernetes::listed::Listed;

/// The records of a release cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to read the records of release {release}: {why}")]
pub struct ReadError {
    release: ReleaseRef,
    why: String,
}

/// A cluster as somebody with a kubeconfig sees it, for a moment.
pub struct View<'p> {
    pub(crate) client: Client,
    pub(crate) world: Listed,
    pub(crate) policies: &'p Policies,
}

impl<'p> View<'p> {
    /// Reads the HelmReleases; everything else is read where it is wanted.
    pub async fn open(client: &Client, policies: &'p Policies) -> Self {
        let cluster = Cluster::new(client.clone(), Arc::new(Budget::new(DECODE_BYTES)));
        let mut view = Self { client: client.clone(), world: Listed { cluster, drivers: Ok(Vec::new()) }, policies };
        view.refresh().await;
        view
    }

    /// Reads the HelmReleases again.
    pub(crate) async fn refresh(&mut self) {
        self.world.drivers = match gather::helm_releases(&self.client, [None]).await {
            Ok(None) => Ok(Vec::new()),
            // One that does not read drives nothing, as to the webhook.
            Ok(Some((drivers, _))) => Ok(drivers),
            // The definition of the kind comes or goes at this moment.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(error) => Err(reason(&error)),
        };
    }

    /// What could not be read of the HelmReleases.
    pub(crate) fn gap(&self) -> Option<Gap> {
        let why = self.world.drivers.as_ref().err()?;
        Some(Gap { what: "HelmReleases".to_owned(), times: 1, why: why.clone() })
    }

    /// The records of a release in one storage, by their metadata.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub(crate) async fn history(&self, release: &ReleaseRef, storage: Storage) -> Result<History, ReadError> {
        let ReleaseRef { namespace, name } = release.clone();
        let failed = |why| ReadError { release: release.clone(), why };
        match self.world.answer(&Query::History { storage, namespace, release: name }).await {
            Answer::Known(Knowledge::History(history)) => Ok(history),
            Answer::Unavailable(why) => Err(failed(why)),
            Answer::Known(_) | Answer::Absent => Err(failed("the API server answered something else".to_owned())),
        }
    }

    /// The releases of a name, by how they are stored: as a rule one.
    ///
    /// # Errors
    /// When the records in Secrets cannot be read; those in ConfigMaps only where there are no others.
    pub(crate) async fn releases(&self, release: &ReleaseRef) -> Result<Vec<(Storage, History)>, ReadError> {
        let mut found = Vec::new();
        for storage in [Storage::Secret, Storage::OlmIndex, Storage::ConfigMap] {
            match self.history(release, storage).await {
                Ok(history) => found.extend(history.newest().is_some().then_some((storage, history))),
                Err(_) if storage == Storage::ConfigMap && !found.is_empty() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}
