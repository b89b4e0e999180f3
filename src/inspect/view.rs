//! A cluster as the user of a kubeconfig sees it: the HelmReleases, and the records of one release at a time.

use std::sync::Arc;

use interlock_engine::policy::Policies;
use interlock_engine::release::{History, ReleaseRef, Storage};
use jiff::Timestamp;
use kube::Client;

use super::diagnosis::{BrokenRecords, Examiner};
use super::records::{history, missing_parts, unreadable};
use super::scan::{DECODE_BYTES, Gap, gather};
use super::wait::Starter;
use crate::budget::Budget;
use crate::world::kubernetes::Cluster;
use crate::world::kubernetes::api_error::reason;
use crate::world::kubernetes::listed::Listed;

/// The records of a release cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to read the records of release {release}: {why}")]
pub(crate) struct ReadError {
    release: ReleaseRef,
    why: String,
}

/// A cluster as the user of a kubeconfig sees it, at one moment.
pub(crate) struct View<'p> {
    pub(crate) client: Client,
    pub(crate) world: Listed,
    pub(crate) policies: &'p Policies,
    /// The user of the kubeconfig; `None` if the API server does not say.
    pub(crate) reader: Option<Starter>,
}

impl<'p> View<'p> {
    /// Reads the HelmReleases. Everything else is read on demand.
    pub(crate) async fn open(client: &Client, policies: &'p Policies) -> Self {
        let cluster = Cluster::new(client.clone(), Arc::new(Budget::new(DECODE_BYTES)));
        let (world, reader) = (Listed { cluster, drivers: Ok(Vec::new()) }, Starter::of(client).await.ok());
        let mut view = Self { client: client.clone(), world, policies, reader };
        view.refresh().await;
        view
    }

    /// Reads the HelmReleases again.
    pub(crate) async fn refresh(&mut self) {
        self.world.drivers = match gather::helm_releases(&self.client, [None]).await {
            Ok(None) => Ok(Vec::new()),
            // A HelmRelease that cannot be parsed manages nothing, as for the webhook.
            Ok(Some((drivers, _))) => Ok(drivers),
            // The CustomResourceDefinition has just been created or deleted.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(error) => Err(reason(&error)),
        };
    }

    /// The inputs for examinations in this view.
    pub(crate) fn examiner(&self, now: Timestamp) -> Examiner<'_> {
        let drivers = self.world.drivers.as_deref().ok();
        Examiner { world: &self.world, policies: self.policies, drivers, reader: self.reader.as_ref(), now, copy: None }
    }

    /// The records of a release whose parts are missing. If the parts of a record cannot be read, none of them count as missing.
    pub(crate) async fn incomplete(&self, release: &ReleaseRef, storage: Storage, history: &History) -> BrokenRecords {
        missing_parts(&self.world.cluster, release, storage, history).await.unwrap_or_default()
    }

    /// The records of a release that no client can read. The bodies of two records are read, so this is for one release.
    pub(crate) async fn broken(&self, release: &ReleaseRef, storage: Storage, history: &History) -> BrokenRecords {
        let mut broken = unreadable(&self.world, release, storage, history).await.unwrap_or_default();
        broken.extend(self.incomplete(release, storage, history).await);
        broken
    }

    /// The gap, if the HelmReleases cannot be read.
    pub(crate) fn gap(&self) -> Option<Gap> {
        Some(Gap::new("HelmReleases", self.world.drivers.as_ref().err()?.clone()))
    }

    /// The history of a release in one storage, from metadata.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub(crate) async fn history(&self, release: &ReleaseRef, storage: Storage) -> Result<History, ReadError> {
        let history = history(&self.world, release, storage).await;
        history.map_err(|why| ReadError { release: release.clone(), why })
    }

    /// The histories of a release, by storage; usually one.
    ///
    /// # Errors
    /// When the records in Secrets cannot be read, or those in ConfigMaps if there are no others.
    pub(crate) async fn releases(&self, release: &ReleaseRef) -> Result<Vec<(Storage, History)>, ReadError> {
        let mut found = Vec::new();
        for storage in [Storage::Secret, Storage::Index, Storage::ConfigMap] {
            match self.history(release, storage).await {
                Ok(history) => found.extend(history.newest().is_some().then_some((storage, history))),
                Err(_) if storage == Storage::ConfigMap && !found.is_empty() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}
