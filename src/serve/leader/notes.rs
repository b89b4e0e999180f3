//! Notes on records: which operation was interrupted when a pending record was deleted.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Error};
use serde_json::json;
use tokio::time::sleep;

use crate::engine::evidence::{Answer, Knowledge, Query};
use crate::engine::release::stamps::INTERRUPTED;
use crate::engine::release::{Entry, InterruptedOperation};
use crate::world::World;
use crate::world::kubernetes::{Loss, Losses};

/// Attempts at one note. Others write the record too, each time with a new resourceVersion.
const ATTEMPTS: u32 = 8;

/// Before the second attempt; each further one waits twice as long.
const PAUSE: Duration = Duration::from_millis(250);

/// Writes a note for every loss, for ever.
pub(super) async fn write_all(client: &Client, world: &dyn World, losses: &Losses) {
    loop {
        let loss = losses.next().await;
        if let Err(why) = write(client, world, &loss).await {
            let Loss { namespace, release, record, .. } = &loss;
            tracing::error!(%namespace, %release, revision = %record.revision, %why, "nobody will know that this was interrupted");
        }
        losses.done(&loss);
    }
}

/// Writes the note of one loss, unless it is there or has had its time.
///
/// Only over the state of the record that was read: two leaders, or a promotion in between, end in a conflict, after which
/// everything is looked at anew.
async fn write(client: &Client, world: &dyn World, loss: &Loss) -> Result<(), String> {
    let Some(interrupted) = InterruptedOperation::of(&loss.record) else {
        return Ok(());
    };
    let query =
        Query::History { storage: loss.storage, namespace: loss.namespace.clone(), release: loss.release.clone() };
    let mut failure = String::new();
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            sleep(PAUSE * 2_u32.pow(attempt - 1)).await;
        }
        let history = match world.answer(&query).await {
            Answer::Known(Knowledge::History(history)) => history,
            Answer::Unavailable(why) => {
                failure = why;
                continue;
            }
            Answer::Known(_) | Answer::Absent => return Ok(()),
        };
        let Some(heir) = history.deployed_before(&loss.record) else {
            return Ok(());
        };
        let note = interrupted.to_string();
        if heir.stamps.get(INTERRUPTED) == Some(note.as_str()) {
            return Ok(());
        }
        match annotate(client, loss, heir, &note).await {
            Ok(()) => {
                let (namespace, release) = (&loss.namespace, &loss.release);
                tracing::info!(%namespace, %release, %note, "noted an interrupted operation");
                return Ok(());
            }
            // It goes, or its namespace does.
            Err(Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(error) => failure = error.to_string(),
        }
    }
    Err(failure)
}

async fn annotate(client: &Client, loss: &Loss, heir: &Entry, note: &str) -> Result<(), Error> {
    let patch = json!({
        "metadata": {"resourceVersion": heir.resource_version, "uid": heir.uid, "annotations": {INTERRUPTED: note}},
    });
    let (params, patch) =
        (PatchParams { field_manager: Some("interlock".into()), ..PatchParams::default() }, Patch::Merge(&patch));
    let client = client.clone();
    match loss.storage.kind() {
        "ConfigMap" => {
            let records: Api<ConfigMap> = Api::namespaced(client, &loss.namespace);
            records.patch_metadata(&heir.name, &params, &patch).await.map(|_| ())
        }
        _ => {
            let records: Api<Secret> = Api::namespaced(client, &loss.namespace);
            records.patch_metadata(&heir.name, &params, &patch).await.map(|_| ())
        }
    }
}

#[cfg(test)]
mod tests;
