//! The records of one release, as a world answers them.

use interlock_engine::effort::Effort;
use interlock_engine::evidence::{Freshness, question};
use interlock_engine::release::{DecodeError, History, ReleaseRef, Storage};

use super::diagnosis::BrokenRecords;
use crate::world::kubernetes::Cluster;
use crate::world::{World, ask};

/// The history of a release in one storage, from metadata.
///
/// # Errors
/// When the API server does not answer.
pub(crate) async fn history(world: &dyn World, release: &ReleaseRef, storage: Storage) -> Result<History, String> {
    let ReleaseRef { namespace, name } = release.clone();
    Ok(ask(world, question::History { storage, namespace, release: name, freshness: Freshness::Live })
        .await?
        .unwrap_or_default())
}

/// The records of a release whose parts are missing. Only OLM's records have parts.
///
/// # Errors
/// When the API server does not answer.
pub(crate) async fn missing_parts(
    cluster: &Cluster,
    release: &ReleaseRef,
    storage: Storage,
    history: &History,
) -> Result<BrokenRecords, String> {
    if storage != Storage::Index {
        return Ok(BrokenRecords::new());
    }
    let missing = cluster.missing_parts(&release.namespace, history.iter().map(|entry| entry.name.as_str())).await?;
    Ok(missing.into_iter().map(|(index, parts)| (index, DecodeError::MissingChunks(parts))).collect())
}

/// Of the two records that clients start from, the newest and the newest deployed one, those that no client can read.
///
/// # Errors
/// When the API server does not answer, or there is no budget for a body.
pub(crate) async fn unreadable(
    world: &dyn World,
    release: &ReleaseRef,
    storage: Storage,
    history: &History,
) -> Result<BrokenRecords, String> {
    let mut broken = BrokenRecords::new();
    for entry in [history.newest(), history.newest_deployed()].into_iter().flatten() {
        let (namespace, object) = (release.namespace.clone(), entry.name.clone());
        let body = ask(world, question::Body { storage, namespace, object }).await?;
        let error = body.and_then(|body| body.why_unreadable(&Effort::of_review()));
        broken.extend(error.map(|error| (entry.name.clone(), error)));
    }
    Ok(broken)
}
