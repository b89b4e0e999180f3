//! Notes interrupted operations on records. An operation is interrupted if its pending record was deleted.

use std::time::Duration;

use interlock_engine::evidence::{Freshness, question};
use interlock_engine::release::InterruptedOperation;
use interlock_engine::release::stamps::INTERRUPTED;
use kube::{Client, Error};
use tokio::time::sleep;

use crate::inspect::annotation::annotate;
use crate::world::kubernetes::{DeletedPendingRecord, DeletedPendingRecords};
use crate::world::{World, ask};

/// The attempts to write one note. Other clients write the record too, and each write changes its resourceVersion.
const MAX_ATTEMPTS: u32 = 8;

/// The pause before the second attempt. Each further pause is twice as long.
const FIRST_RETRY: Duration = Duration::from_millis(250);

/// Writes a note for every deleted pending record, forever.
pub(super) async fn write_all(client: &Client, world: &dyn World, deleted_pending: &DeletedPendingRecords) {
    loop {
        let deleted = deleted_pending.next().await;
        if let Err(why) = write(client, world, &deleted).await {
            let DeletedPendingRecord { namespace, release, record, .. } = &deleted;
            tracing::error!(%namespace, %release, revision = %record.revision, %why, "the note on an interrupted operation cannot be written");
        }
        deleted_pending.done(&deleted);
    }
}

/// Writes the note about one deletion, unless the note exists or is no longer needed.
///
/// The write applies only to the version that was read. A second leader or a deployment in between causes a conflict. Then everything is
/// read again.
async fn write(client: &Client, world: &dyn World, deleted: &DeletedPendingRecord) -> Result<(), String> {
    let Some(interrupted) = InterruptedOperation::of(&deleted.record) else {
        return Ok(());
    };
    let question = question::History {
        storage: deleted.storage,
        namespace: deleted.namespace.clone(),
        release: deleted.release.clone(),
        freshness: Freshness::Live,
    };
    let mut failure = String::new();
    for attempt in 0..MAX_ATTEMPTS {
        if attempt > 0 {
            sleep(FIRST_RETRY * 2_u32.pow(attempt - 1)).await;
        }
        let history = match ask(world, question.clone()).await {
            Ok(history) => history.unwrap_or_default(),
            Err(why) => {
                failure = why;
                continue;
            }
        };
        let Some(heir) = history.heir_of(&deleted.record) else {
            return Ok(());
        };
        let note = interrupted.to_string();
        if heir.stamps.get(INTERRUPTED) == Some(note.as_str()) {
            return Ok(());
        }
        match annotate(client, (deleted.storage, &deleted.namespace), heir, (INTERRUPTED, Some(&note)), false).await {
            Ok(()) => {
                let (namespace, release) = (&deleted.namespace, &deleted.release);
                tracing::info!(%namespace, %release, %note, "noted an interrupted operation");
                return Ok(());
            }
            // The record or its namespace is being deleted.
            Err(Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(error) => failure = error.to_string(),
        }
    }
    Err(failure)
}

#[cfg(test)]
mod tests;
