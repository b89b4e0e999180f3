//! The releases of a cluster or of a namespace, listed.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use kube::Client;

use super::row::{Row, Stuck};
use crate::budget::Budget;
use crate::engine::evidence::{Answer, Knowledge, Query};
use crate::engine::policy::Policies;
use crate::engine::release::{History, ReleaseRef, Storage};
use crate::inspect::scan::inventory::Inventory;
use crate::inspect::scan::listing::why;
use crate::inspect::scan::{Gap, gather};
use crate::world::World;
use crate::world::kubernetes::Cluster;
use crate::world::kubernetes::listed::Listed;

/// The memory that inflated bodies may take at once.
const DECODE_BYTES: usize = 64 << 20;

/// Records read at a time, whose chart or holder no stamp tells.
const SIDE_BY_SIDE: usize = 8;

/// Which releases.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Of one namespace; of all where there is none.
    pub namespace: Option<String>,
    /// Only those whose operation is stuck, or may be.
    pub stuck: bool,
}

/// How the releases stand.
#[derive(Debug, Clone)]
pub struct Survey {
    /// By namespace and name.
    pub rows: Vec<Row>,
    /// What could not be looked at.
    pub gaps: Vec<Gap>,
}

/// Why nothing is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatusError {
    /// The records in Secrets.
    #[error("failed to list the records in Secrets: {0}")]
    Records(String),
    /// The records of one release.
    #[error("failed to read the records of release {release}: {why}")]
    Release {
        /// Which.
        release: ReleaseRef,
        /// Why not.
        why: String,
    },
    /// A watch of a kind of object.
    #[error("failed to watch the records in {kind}: {why}")]
    Watch {
        /// `Secrets`.
        kind: &'static str,
        /// Why not.
        why: String,
    },
    /// Whoever reads the lines has gone.
    #[error("nobody reads any more")]
    Unread,
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
    pub(super) async fn refresh(&mut self) {
        self.world.drivers = match gather::helm_releases(&self.client, [None]).await {
            Ok(None) => Ok(Vec::new()),
            // One that does not read drives nothing, as to the webhook.
            Ok(Some((drivers, _))) => Ok(drivers),
            // The definition of the kind comes or goes at this moment.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(error) => Err(why(&error)),
        };
    }

    /// What could not be read of the HelmReleases.
    pub(crate) fn gap(&self) -> Option<Gap> {
        let why = self.world.drivers.as_ref().err()?;
        Some(Gap { what: "HelmReleases".to_owned(), times: 1, why: why.clone() })
    }

    /// A release by its records, its chart included where that needs a read.
    pub(crate) async fn row(
        &self,
        release: &ReleaseRef,
        storage: Storage,
        history: &History,
        now: Timestamp,
    ) -> Option<Row> {
        let drivers = self.world.drivers.as_deref().ok();
        let row = Row::of(release, storage, history, drivers, self.policies.of(&release.namespace), now)?;
        Some(self.completed(row, storage).await)
    }

    async fn completed(&self, row: Row, storage: Storage) -> Row {
        if !row.lacks_head() {
            return row;
        }
        // A record that went since, or that does not read, leaves what is known.
        match self.world.cluster.head(storage, &row.namespace, &row.record).await {
            Ok(Some(head)) => row.with_head(head),
            Ok(None) | Err(_) => row,
        }
    }

    /// The records of a release in one storage, by their metadata.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub(crate) async fn history(&self, release: &ReleaseRef, storage: Storage) -> Result<History, StatusError> {
        let ReleaseRef { namespace, name } = release.clone();
        let failed = |why| StatusError::Release { release: release.clone(), why };
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
    pub(crate) async fn releases(&self, release: &ReleaseRef) -> Result<Vec<(Storage, History)>, StatusError> {
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

/// Lists the releases.
///
/// # Errors
/// When the records in Secrets cannot be listed: then nothing is known. What else cannot be read is told.
pub async fn survey(view: &View<'_>, options: &Options, now: Timestamp) -> Result<Survey, StatusError> {
    let namespace = options.namespace.as_deref();
    let listed = gather::secrets(&view.client, [namespace]).await;
    let mut inventory = listed.map_err(|error| StatusError::Records(why(&error)))?;
    let mut gaps: Vec<_> = view.gap().into_iter().collect();
    match gather::config_maps(&view.client, [namespace]).await {
        Ok(more) => inventory.merge(more),
        Err(error) => {
            gaps.push(Gap { what: "records in ConfigMaps".to_owned(), times: 1, why: why(&error) });
        }
    }
    let Inventory { releases, .. } = inventory;
    let drivers = view.world.drivers.as_deref().ok();
    let rows = releases.into_iter().filter_map(|((release, _), (storage, entries))| {
        let policy = view.policies.of(&release.namespace);
        let row = Row::of(&release, storage, &History::new(entries), drivers, policy, now)?;
        (!options.stuck || row.stuck != Stuck::No).then_some((row, storage))
    });
    let rows: Vec<_> = rows.collect();
    let completed = stream::iter(rows.into_iter().map(|(row, storage)| view.completed(row, storage)));
    Ok(Survey { rows: completed.buffered(SIDE_BY_SIDE).collect().await, gaps })
}
