//! A cache of parsed documents of manifests: parsing YAML takes longer than the rest of a review.

use interlock_engine::answers::ObjectVersion;
use interlock_engine::evidence::FoundDocument;
use interlock_engine::release::manifest::DocumentKey;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde_json::Value;

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

/// The cached documents, by record version and object.
#[derive(Debug)]
pub(super) struct DocumentCache(Cache<(ObjectVersion, DocumentKey), FoundDocument, DocumentWeight>);

#[derive(Debug, Clone)]
struct DocumentWeight;

impl Weighter<(ObjectVersion, DocumentKey), FoundDocument> for DocumentWeight {
    fn weight(&self, _: &(ObjectVersion, DocumentKey), found: &FoundDocument) -> u64 {
        ENTRY_BYTES + found.as_deref().map_or(0, weight) as u64
    }
}

impl DocumentCache {
    /// An empty cache of 32 MiB.
    pub(super) fn new() -> Self {
        Self(Cache::with_weighter(EXPECTED_DOCUMENTS, MAX_BYTES, DocumentWeight))
    }

    /// The document of an object, if it is cached.
    pub(super) fn get(&self, state: &ObjectVersion, object: &DocumentKey) -> Option<FoundDocument> {
        self.0.get(&(state.clone(), object.clone()))
    }

    pub(super) fn insert(&self, state: ObjectVersion, object: &DocumentKey, found: FoundDocument) {
        self.0.insert((state, object.clone()), found);
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
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    #[test]
    fn memory_is_bounded_and_absence_is_kept_too() {
        let documents = DocumentCache::new();
        let state = |version: usize| ObjectVersion { uid: "u".to_owned(), resource_version: version.to_string() };
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
