//! Notes interrupted operations on records. An operation is interrupted if its pending record was deleted.

use std::time::Duration;

use interlock_engine::evidence::question;
use interlock_engine::release::stamps::INTERRUPTED;
use interlock_engine::release::{Entry, InterruptedOperation};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Error};
use serde_json::json;
use tokio::time::sleep;

use crate::serve::ownership::FIELD_MANAGER;
use crate::world::kubernetes::{DeletedPendingRecord, DeletedPendingRecords};
use crate::world::metadata_only::{MetadataOnly, resource_of};
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
        match annotate(client, deleted, heir, &note).await {
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

async fn annotate(client: &Client, deleted: &DeletedPendingRecord, heir: &Entry, note: &str) -> Result<(), Error> {
    let patch = json!({
        "metadata": {"resourceVersion": heir.resource_version, "uid": heir.uid, "annotations": {INTERRUPTED: note}},
    });
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    let resource = match deleted.storage.kind() {
        "ConfigMap" => resource_of::<ConfigMap>(),
        _ => resource_of::<Secret>(),
    };
    let records: Api<MetadataOnly> = Api::namespaced_with(client.clone(), &deleted.namespace, &resource);
    records.patch_metadata(&heir.name, &params, &Patch::Merge(&patch)).await.map(drop)
}

#[cfg(test)]
mod tests;
