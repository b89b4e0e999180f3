//! DocumentCache of manifests, parsed once: reading YAML takes longer than all the rest of a review.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde_json::Value;

use super::manifests::RecordVersion;
use crate::engine::release::manifest::{ObjectRef, document};

/// What the kept documents may take merge_watches, in bytes. One of 3 KiB of YAML takes about 20.
const MAX_BYTES: u64 = 32 << 20;

/// The number of documents for which room is set aside.
const EXPECTED_DOCUMENTS: usize = 1024;

/// What a kept document takes besides its values, in bytes: its key and its place in the maps.
const ENTRY_BYTES: u64 = 512;

/// What a JSON value takes, in bytes, with its share of the container it is in.
const VALUE_BYTES: u64 = 80;

/// The document of an object by the state of its record; `None` where the manifest has none.
type CachedDocument = Option<Arc<Value>>;

/// The kept documents.
#[derive(Debug)]
pub(super) struct DocumentCache(Cache<(RecordVersion, ObjectRef), CachedDocument, DocumentWeight>);

#[derive(Debug, Clone)]
struct DocumentWeight;

impl Weighter<(RecordVersion, ObjectRef), CachedDocument> for DocumentWeight {
    fn weight(&self, _: &(RecordVersion, ObjectRef), found: &CachedDocument) -> u64 {
        ENTRY_BYTES + found.as_deref().map_or(0, weight)
    }
}

impl DocumentCache {
    /// Room for 32 MiB.
    pub(super) fn new() -> Self {
        Self(Cache::with_weighter(EXPECTED_DOCUMENTS, MAX_BYTES, DocumentWeight))
    }

    /// The document of an object, if it was read before.
    pub(super) fn get(&self, state: &RecordVersion, object: &ObjectRef) -> Option<CachedDocument> {
        self.0.get(&(state.clone(), object.clone()))
    }

    /// Keeps what was read.
    pub(super) fn insert(&self, state: RecordVersion, object: &ObjectRef, found: CachedDocument) {
        self.0.insert((state, object.clone()), found);
    }
}

/// Reads the document of an object in a manifest.
///
/// # Errors
/// Says which document does not read; nothing that stands in it.
pub(super) fn read(manifest: &str, object: &ObjectRef) -> Result<CachedDocument, String> {
    let found = document(manifest, object).map_err(|error| {
        let ObjectRef { kind, name, .. } = object;
        format!("the document of the {kind} {name} in the manifest does not read: {error}")
    });
    Ok(found?.map(Arc::new))
}

fn weight(value: &Value) -> u64 {
    let text = |text: &str| text.len() as u64;
    VALUE_BYTES
        + match value {
            Value::String(value) => text(value),
            Value::Array(items) => items.iter().map(weight).sum(),
            Value::Object(members) => members.iter().map(|(name, value)| text(name) + weight(value)).sum(),
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
        let object = ObjectRef {
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
        let other = ObjectRef { name: "api".to_owned(), ..object.clone() };
        assert_eq!(documents.get(&state(100), &other), None);
    }
}
