//! The documents of manifests, parsed once: parsing YAML takes longer than the rest of a review.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde_json::Value;

use super::manifests::RecordVersion;
use crate::engine::effort::Effort;
use crate::engine::release::manifest::{DocumentKey, document};

/// The limit of the cache, in bytes. A document of 3 KiB of YAML takes about 20 KiB.
const MAX_BYTES: u64 = 32 << 20;

/// The number of documents that the cache is sized for.
const EXPECTED_DOCUMENTS: usize = 1024;

/// The size of a cache entry besides the document, in bytes: its key and its place in the maps.
const ENTRY_BYTES: u64 = 512;

/// The size of a JSON value, in bytes, with its share of its container.
const VALUE_BYTES: usize = 80;

/// The least size of a map that is not empty, in bytes.
const MAP_BYTES: usize = 640;

/// The document of an object; `None` if the manifest has none.
type CachedDocument = Option<Arc<Value>>;

/// What a manifest says of an object. The error names a document that nobody can parse, and nothing of its content.
pub(super) type ReadDocument = Result<CachedDocument, String>;

/// The cached documents, by record version and object.
#[derive(Debug)]
pub(super) struct DocumentCache(Cache<(RecordVersion, DocumentKey), CachedDocument, DocumentWeight>);

#[derive(Debug, Clone)]
struct DocumentWeight;

impl Weighter<(RecordVersion, DocumentKey), CachedDocument> for DocumentWeight {
    fn weight(&self, _: &(RecordVersion, DocumentKey), found: &CachedDocument) -> u64 {
        ENTRY_BYTES + found.as_deref().map_or(0, weight) as u64
    }
}

impl DocumentCache {
    /// An empty cache of 32 MiB.
    pub(super) fn new() -> Self {
        Self(Cache::with_weighter(EXPECTED_DOCUMENTS, MAX_BYTES, DocumentWeight))
    }

    /// The document of an object, if it is cached.
    pub(super) fn get(&self, state: &RecordVersion, object: &DocumentKey) -> Option<CachedDocument> {
        self.0.get(&(state.clone(), object.clone()))
    }

    pub(super) fn insert(&self, state: RecordVersion, object: &DocumentKey, found: CachedDocument) {
        self.0.insert((state, object.clone()), found);
    }
}

/// Parses the document of an object in a manifest.
///
/// # Errors
/// It is more work than the review has left.
pub(super) fn read(manifest: &str, object: &DocumentKey, effort: &Effort) -> Result<ReadDocument, String> {
    let found = document(manifest, object, effort).map(|found| found.map(Arc::new)).map_err(|error| {
        let DocumentKey { kind, name, .. } = object;
        format!("the document of the {kind} {name} in the manifest cannot be parsed: {error}")
    });
    match found {
        Err(error) if effort.was_exceeded() => Err(error),
        found => Ok(found),
    }
}

/// The memory of a document, in bytes.
pub(super) fn weight(value: &Value) -> usize {
    VALUE_BYTES
        + match value {
            Value::String(value) => value.len(),
            Value::Array(items) => items.iter().map(weight).sum(),
            Value::Object(members) if members.is_empty() => 0,
            Value::Object(members) => {
                MAP_BYTES + members.iter().map(|(name, value)| name.len() + weight(value)).sum::<usize>()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn memory_is_bounded_and_absence_is_kept_too() {
        let documents = DocumentCache::new();
        let state = |version: usize| RecordVersion { uid: "u".to_owned(), resource_version: version.to_string() };
        let object = DocumentKey {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            default_namespace: "shop".to_owned(),
        };
        let large = Arc::new(json!({"data": {"key": "x".repeat(1 << 20)}}));
        for version in 0..100 {
            documents.insert(state(version), &object, Some(large.clone()));
            assert!(documents.0.weight() <= MAX_BYTES);
        }
        documents.insert(state(100), &object, None);
        assert_eq!(documents.get(&state(101), &object), None);
        let other = DocumentKey { name: "api".to_owned(), ..object.clone() };
        assert_eq!(documents.get(&state(100), &other), None);
    }
}
