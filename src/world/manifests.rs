//! The manifests of records, decoded once for each version of a record and cached in bounded memory.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde::Deserialize;

use crate::engine::effort::Effort;
use crate::engine::release::{DecodeError, Record};

/// The limit of the cache, in bytes. An ordinary manifest has some 50 KiB, so the cache holds more releases than people and
/// controllers edit at a time.
const MAX_BYTES: u64 = 32 << 20;

/// The number of manifests that the cache is sized for. The cache splits into shards of at least 32 entries, and a shard
/// stores nothing larger than its share of the limit. With 128 entries there are at most four shards of 8 MiB each, as
/// long as a manifest that is read.
const EXPECTED_MANIFESTS: usize = 128;

/// The size of a cache entry besides the manifest, in bytes: its key and its place in the maps.
const ENTRY_BYTES: usize = 256;

/// One version of a record, which never changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct RecordVersion {
    pub(super) uid: String,
    pub(super) resource_version: String,
}

/// Why there is no manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ManifestError {
    /// The object of the record does not exist.
    Absent,
    /// The manifest cannot be read, for this reason.
    Unavailable(String),
}

/// The cached manifests, by record version.
#[derive(Debug)]
pub(super) struct ManifestCache(Cache<RecordVersion, Arc<str>, ManifestWeight>);

#[derive(Debug, Clone)]
struct ManifestWeight;

impl Weighter<RecordVersion, Arc<str>> for ManifestWeight {
    fn weight(&self, _: &RecordVersion, manifest: &Arc<str>) -> u64 {
        (manifest.len() + ENTRY_BYTES) as u64
    }
}

impl ManifestCache {
    /// An empty cache of 32 MiB.
    pub(super) fn new() -> Self {
        Self(Cache::with_weighter(EXPECTED_MANIFESTS, MAX_BYTES, ManifestWeight))
    }

    /// The manifest of a record version, loaded if it is not cached. Concurrent calls for the same version share one load;
    /// if that load is cancelled, the next caller takes over. Failures are not cached.
    ///
    /// # Errors
    /// The error of the load.
    pub(super) async fn get_or_load(
        &self,
        state: &RecordVersion,
        load: impl Future<Output = Result<Arc<str>, ManifestError>>,
    ) -> Result<Arc<str>, ManifestError> {
        self.0.get_or_insert_async(state, load).await
    }
}

impl RecordVersion {
    /// The version by uid and resourceVersion; `None` if either is unknown.
    pub(super) fn new(uid: &str, resource_version: &str) -> Option<Self> {
        let known = !uid.is_empty() && !resource_version.is_empty();
        known.then(|| Self { uid: uid.to_owned(), resource_version: resource_version.to_owned() })
    }

    /// Whether the JSON text of an object is this version of it.
    pub(super) fn matches(&self, object: &str) -> bool {
        #[derive(Deserialize)]
        struct Object {
            metadata: Version,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            uid: String,
            resource_version: String,
        }
        let read = serde_json::from_str::<Object>(object).map(|object| object.metadata);
        read.is_ok_and(|version| version.uid == self.uid && version.resource_version == self.resource_version)
    }
}

/// The manifest in the JSON body of a record.
///
/// # Errors
/// When the body cannot be parsed, or the review has no steps left for it.
pub(super) fn manifest(body: &[u8], effort: &Effort) -> Result<Arc<str>, DecodeError> {
    Record::read(body, effort).map(|record| record.manifest().into())
}

/// The reason for a version that is no longer the current one.
pub(super) fn changed(namespace: &str, object: &str) -> String {
    format!("the record {namespace}/{object} changed during the review")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt;

    use super::*;

    fn state(version: usize) -> RecordVersion {
        RecordVersion { uid: "u".to_owned(), resource_version: version.to_string() }
    }

    #[tokio::test]
    async fn one_load_serves_all_who_ask_at_once_and_later() {
        let manifests = ManifestCache::new();
        let loads = AtomicUsize::new(0);
        let state = state(1);
        let ask = || {
            manifests.get_or_load(&state, async {
                loads.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                Ok("kind: A".into())
            })
        };
        let (one, two) = tokio::join!(ask(), ask());
        assert_eq!((one.as_deref(), two.as_deref()), (Ok("kind: A"), Ok("kind: A")));
        assert_eq!(ask().await.as_deref(), Ok("kind: A"));
        assert_eq!(loads.into_inner(), 1);
    }

    #[tokio::test]
    async fn a_failure_is_not_kept_and_an_abandoned_load_is_taken_over() {
        let manifests = ManifestCache::new();
        let state = state(1);
        let failed = || ManifestError::Unavailable("no".to_owned());
        assert_eq!(manifests.get_or_load(&state, async { Err(failed()) }).await, Err(failed()));
        let mut abandoned = Box::pin(manifests.get_or_load(&state, std::future::pending()));
        assert!((&mut abandoned).now_or_never().is_none());
        let mut next = Box::pin(manifests.get_or_load(&state, async { Ok("kind: A".into()) }));
        assert!((&mut next).now_or_never().is_none());
        drop(abandoned);
        assert_eq!(next.await.as_deref(), Ok("kind: A"));
    }

    #[tokio::test]
    async fn the_largest_manifests_fit_and_memory_is_bounded() {
        let manifests = ManifestCache::new();
        assert!(manifests.0.shard_capacity() >= 8 << 20);
        let manifest: Arc<str> = "x".repeat(5 << 20).into();
        for version in 0..40 {
            let load = async { Ok(Arc::clone(&manifest)) };
            assert!(manifests.get_or_load(&state(version), load).await.is_ok());
            assert!(manifests.0.weight() <= MAX_BYTES);
        }
        // A full cache keeps what is asked for a second time, which is what makes room then.
        let wanted = state(39);
        assert!(manifests.get_or_load(&wanted, async { Ok(Arc::clone(&manifest)) }).await.is_ok());
        assert!(manifests.get_or_load(&wanted, async { Err(ManifestError::Absent) }).await.is_ok());
        assert!(manifests.0.weight() <= MAX_BYTES);
    }

    #[test]
    fn a_state_is_told_by_uid_and_resource_version() {
        let object = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"7"},"data":{}}"#;
        assert!(state(7).matches(object));
        assert!(!state(8).matches(object));
        assert!(!state(7).matches(&object.replace(r#""u""#, r#""other""#)));
        assert!(!state(7).matches("{}"));
        assert_eq!(RecordVersion::new("u", "7"), Some(state(7)));
        assert_eq!((RecordVersion::new("", "7"), RecordVersion::new("u", "")), (None, None));
    }
}
