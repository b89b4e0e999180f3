//! Lists the releases of a cluster or a namespace.

use futures_util::{StreamExt, stream};
use interlock_engine::release::{History, ReleaseRef, Storage};
use interlock_engine::rules::RunbookCheck;
use jiff::Timestamp;

use super::assess::assess;
use super::elsewhere::elsewhere;
use super::summary::ReleaseSummary;
use crate::inspect::diagnosis::{Checks, ReleaseRecords, Stuck};
use crate::inspect::scan::inventory::histories;
use crate::inspect::scan::{Gap, gather};
use crate::inspect::view::{ReadError, View};

/// Concurrent reads: of records whose chart or holder is not stamped, and for the checks of stuck releases.
const CONCURRENT_READS: usize = 8;

/// Which releases to list.
#[derive(Debug, Clone, Default)]
pub(crate) struct StatusOptions {
    /// `None` for all namespaces.
    pub namespace: Option<String>,
    /// Only releases whose operation is, or may be, stuck.
    pub stuck: bool,
}

/// The listed releases.
#[derive(Debug, Clone)]
pub(crate) struct Survey {
    /// Sorted by namespace and name.
    pub rows: Vec<ReleaseSummary>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

/// The status of releases is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StatusError {
    /// The records in Secrets.
    #[error("failed to list the records in Secrets: {0}")]
    Records(String),
    /// The records of one release.
    #[error(transparent)]
    Release(#[from] ReadError),
    /// The records of a kind of object cannot be watched.
    #[error("failed to watch the records in {kind}: {why}")]
    Watch {
        /// `Secrets` or `ConfigMaps`.
        kind: &'static str,
        /// The reason.
        why: String,
    },
    /// The reader of the output has closed it.
    #[error("the output was closed")]
    Unread,
}

/// The summary of a release, with the chart and the holder from the body if they are not stamped.
pub(crate) async fn row(
    view: &View<'_>,
    release: &ReleaseRef,
    storage: Storage,
    history: &History,
    now: Timestamp,
) -> Option<ReleaseSummary> {
    let broken = &view.incomplete(release, storage, history).await;
    let records = ReleaseRecords { release, storage, history, broken };
    examined(view, records, (Checks::IfStuck, now)).await.map(|(row, _)| row)
}

/// The summary with the runbook's checks, and the reason if these could not be run.
pub(crate) async fn examined(
    view: &View<'_>,
    records: ReleaseRecords<'_>,
    (checks, now): (Checks, Timestamp),
) -> Option<(ReleaseSummary, (Vec<RunbookCheck>, Option<String>))> {
    let ReleaseRecords { release, storage, history, .. } = records;
    let found = view.examiner(now).examine(records, checks).await?;
    let row = assess(release, storage, history, found.diagnosis)?;
    Some((completed(view, row, storage).await, (found.checks, found.unread)))
}

async fn completed(view: &View<'_>, row: ReleaseSummary, storage: Storage) -> ReleaseSummary {
    if !row.lacks_head() {
        return row;
    }
    // Without a readable record, the summary stays incomplete.
    match view.world.cluster.head(storage, &row.namespace, &row.record).await {
        Ok(Some(head)) => row.with_head(head),
        Ok(None) | Err(_) => row,
    }
}

/// Lists the releases.
///
/// # Errors
/// When the records in Secrets cannot be listed. The survey names everything else that cannot be read.
pub(crate) async fn survey(view: &View<'_>, options: &StatusOptions, now: Timestamp) -> Result<Survey, StatusError> {
    let namespace = options.namespace.as_deref();
    let (inventory, gap) = gather::records(&view.client, [namespace]).await.map_err(StatusError::Records)?;
    let gaps = view.gap().into_iter().chain(gap).collect();
    let mut found: Vec<_> = histories(inventory.releases).collect();
    if let Some(namespace) = namespace {
        found.extend(elsewhere(view, namespace, None).await);
        found.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    }
    let rows = found.into_iter().map(|(release, storage, history)| async move {
        let row = row(view, &release, storage, &history, now).await?;
        (!options.stuck || row.stuck != Stuck::No).then_some(row)
    });
    let rows: Vec<_> = stream::iter(rows).buffered(CONCURRENT_READS).collect().await;
    Ok(Survey { rows: rows.into_iter().flatten().collect(), gaps })
}
