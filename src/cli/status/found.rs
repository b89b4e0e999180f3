//! What `status` shows: releases, the operations of other objects, and what could not be read.

use interlock_engine::release::ReleaseRef;
use jiff::Timestamp;

use crate::cli::cluster::NamedCluster;
use crate::inspect::diagnosis::Stuck;
use crate::inspect::scan::Gap;
use crate::inspect::status::{OperationSummary, ReleaseSummary, StatusOptions, Survey, operations, row, survey};
use crate::inspect::view::{ReadError, View};

/// What is to be shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    pub(super) rows: Vec<ReleaseSummary>,
    /// Operations that other objects carry.
    pub(super) carried: Vec<OperationSummary>,
    pub(super) gaps: Vec<Gap>,
}

impl Found {
    pub(super) async fn read(
        view: &View<'_>,
        options: &StatusOptions,
        only: Option<&ReleaseRef>,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let Some(release) = only else {
            let Survey { rows, mut gaps } = survey(view, options, now).await?;
            let (mut carried, unread) =
                operations(&view.client, [options.namespace.as_deref()], view.policies, now).await;
            carried.retain(|operation| !options.stuck || operation.stuck != Stuck::No);
            gaps.extend(unread);
            return Ok(Self { rows, carried, gaps });
        };
        let Survey { mut rows, gaps } = releases_named(view, release, now).await?;
        rows.retain(|row| !options.stuck || row.stuck != Stuck::No);
        Ok(Self { rows, carried: Vec::new(), gaps })
    }

    /// Names the cluster of everything.
    pub(super) fn of_cluster(mut self, cluster: &NamedCluster) -> Self {
        for row in &mut self.rows {
            row.cluster.clone_from(&cluster.name);
            row.next = row.next.take().map(|next| cluster.command(next));
        }
        for operation in &mut self.carried {
            operation.cluster.clone_from(&cluster.name);
            operation.next = operation.next.take().map(|next| cluster.command(next));
        }
        Self { gaps: self.gaps.into_iter().map(|gap| cluster.named(gap)).collect(), ..self }
    }

    pub(super) fn extend(&mut self, more: Self) {
        self.rows.extend(more.rows);
        self.carried.extend(more.carried);
        self.gaps.extend(more.gaps);
    }
}

/// The summaries of one release, one per storage.
async fn releases_named(view: &View<'_>, release: &ReleaseRef, now: Timestamp) -> Result<Survey, ReadError> {
    let mut rows = Vec::new();
    for (storage, history) in view.releases(release).await? {
        rows.extend(row(view, release, storage, &history, now).await);
    }
    Ok(Survey { rows, gaps: view.gap().into_iter().collect() })
}
