//! A cache of manifests. Each version of a record is decoded once, in bounded memory.

use std::sync::Arc;

use interlock_engine::answers::ObjectVersion;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// The limit of the cache, in bytes. An ordinary manifest has some 50 KiB, so the cache holds more releases than people and
/// controllers edit at a time.
const MAX_BYTES: u64 = 32 << 20;

/// The number of manifests that the cache is sized for. The cache splits into shards of at least 32 entries, and a shard stores no
/// entry larger than its share of the limit. With 128 entries there are at most four shards of 8 MiB each, which is the size of the
/// longest readable manifest.
const EXPECTED_MANIFESTS: usize = 128;

/// The size of a cache entry besides the manifest, in bytes: its key and its place in the maps.
const ENTRY_BYTES: usize = 256;

/// The cached manifests, by record version.
#[derive(Debug)]
pub(super) struct ManifestCache(Cache<ObjectVersion, Arc<str>, ManifestWeight>);

#[derive(Debug, Clone)]
struct ManifestWeight;

impl Weighter<ObjectVersion, Arc<str>> for ManifestWeight {
    fn weight(&self, _: &ObjectVersion, manifest: &Arc<str>) -> u64 {
        (manifest.len() + ENTRY_BYTES) as u64
    }
}

impl ManifestCache {
    /// An empty cache of 32 MiB.
    pub(super) fn new() -> Self {
        Self(Cache::with_weighter(EXPECTED_MANIFESTS, MAX_BYTES, ManifestWeight))
    }

    /// The manifest of a record version, loaded if it is not cached; `None` if there is no record. Concurrent calls for the same
    /// version share one load. If this load is cancelled, the next caller takes over. Failures and absence are not cached.
    ///
    /// # Errors
    /// The error of the load.
    pub(super) async fn get_or_load(
        &self,
        state: &ObjectVersion,
        load: impl Future<Output = Result<Option<Arc<str>>, String>>,
    ) -> Result<Option<Arc<str>>, String> {
        // The cache keeps what is no error, so absence is one without a reason.
        let loaded = self.0.get_or_insert_async(state, async { load.await.map_err(Some)?.ok_or(None) }).await;
        loaded.map(Some).or_else(|why| why.map_or(Ok(None), Err))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt;

    use super::*;

    fn state(version: usize) -> ObjectVersion {
        ObjectVersion { uid: "u".to_owned(), resource_version: version.to_string() }
    }

    #[tokio::test]
    async fn one_load_serves_concurrent_and_later_callers() {
        let manifests = ManifestCache::new();
        let loads = AtomicUsize::new(0);
        let state = state(1);
        let ask = || {
            manifests.get_or_load(&state, async {
                loads.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                Ok(Some("kind: A".into()))
            })
        };
        let (one, two) = tokio::join!(ask(), ask());
        let known = Ok(Some("kind: A".into()));
        assert_eq!((&one, &two), (&known, &known));
        assert_eq!(ask().await, known);
        assert_eq!(loads.into_inner(), 1);
    }

    #[tokio::test]
    async fn a_failure_is_not_kept_and_an_abandoned_load_is_taken_over() {
        let manifests = ManifestCache::new();
        let state = state(1);
        let failed = || "no".to_owned();
        assert_eq!(manifests.get_or_load(&state, async { Err(failed()) }).await, Err(failed()));
        assert_eq!(manifests.get_or_load(&state, async { Ok(None) }).await, Ok(None));
        let mut abandoned = Box::pin(manifests.get_or_load(&state, std::future::pending()));
        assert!((&mut abandoned).now_or_never().is_none());
        let mut next = Box::pin(manifests.get_or_load(&state, async { Ok(Some("kind: A".into())) }));
        assert!((&mut next).now_or_never().is_none());
        drop(abandoned);
        assert_eq!(next.await, Ok(Some("kind: A".into())));
    }

    #[tokio::test]
    async fn the_largest_manifests_fit_and_memory_is_bounded() {
        let manifests = ManifestCache::new();
        assert!(manifests.0.shard_capacity() >= 8 << 20);
        let manifest: Arc<str> = "x".repeat(5 << 20).into();
        for version in 0..40 {
            let load = async { Ok(Some(Arc::clone(&manifest))) };
            assert!(manifests.get_or_load(&state(version), load).await.is_ok());
            assert!(manifests.0.weight() <= MAX_BYTES);
        }
        // A full cache keeps entries that are read a second time.
        let wanted = state(39);
        assert!(manifests.get_or_load(&wanted, async { Ok(Some(Arc::clone(&manifest))) }).await.is_ok());
        assert!(manifests.get_or_load(&wanted, async { Ok(None) }).await.is_ok_and(|it| it.is_some()));
        assert!(manifests.0.weight() <= MAX_BYTES);
    }
}
