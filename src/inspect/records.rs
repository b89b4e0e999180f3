//! The records of one release, as a world answers them.

use interlock_engine::evidence::question;
use interlock_engine::release::{History, ReleaseRef, Storage};

use super::diagnosis::MissingParts;
use crate::world::kubernetes::Cluster;
use crate::world::{World, ask};

/// The history of a release in one storage, from metadata.
///
/// # Errors
/// When the API server does not answer.
pub(crate) async fn history(world: &dyn World, release: &ReleaseRef, storage: Storage) -> Result<History, String> {
    let ReleaseRef { namespace, name } = release.clone();
    Ok(ask(world, question::History { storage, namespace, release: name }).await?.unwrap_or_default())
}

/// The missing parts of the records of a release. Only OLM's records have parts.
///
/// # Errors
/// When the API server does not answer.
pub(crate) async fn missing_parts(
    cluster: &Cluster,
    release: &ReleaseRef,
    storage: Storage,
    history: &History,
) -> Result<MissingParts, String> {
    if storage != Storage::Index {
        return Ok(MissingParts::new());
    }
    cluster.missing_parts(&release.namespace, history.iter().map(|entry| entry.name.as_str())).await
}
