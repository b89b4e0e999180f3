//! Documents of manifests, parsed once: reading YAML takes longer than all the rest of a review.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde_json::Value;

use super::manifests::State;
use crate::engine::release::manifest::{DocumentKey, document};

/// What the kept documents may take together, in bytes. One of 3 KiB of YAML takes about 20.
const LIMIT: u64 = 32 << 20;

/// The number of documents for which room is set aside.
const EXPECTED: usize = 1024;

/// What a kept document takes besides its values, in bytes: its key and its place in the maps.
const OVERHEAD: u64 = 512;

/// What a JSON value takes, in bytes, with its share of the container it is in.
const VALUE: u64 = 80;

/// The document of an object by the state of its record; `None` where the manifest has none.
type Found = Option<Arc<Value>>;

/// The kept documents.
#[derive(Debug)]
pub(super) struct Documents(Cache<(State, DocumentKey), Found, Size>);

#[derive(Debug, Clone)]
struct Size;

impl Weighter<(State, DocumentKey), Found> for Size {
    fn weight(&self, _: &(State, DocumentKey), found: &Found) -> u64 {
        OVERHEAD + found.as_deref().map_or(0, weight)
    }
}

impl Documents {
    /// Room for 32 MiB.
    pub(super) fn new() -> Self {
        Self(Cache::with_weighter(EXPECTED, LIMIT, Size))
    }

    /// The document of an object, if it was read before.
    pub(super) fn get(&self, state: &State, object: &DocumentKey) -> Option<Found> {
        self.0.get(&(state.clone(), object.clone()))
    }

    /// Keeps what was read.
    pub(super) fn keep(&self, state: State, object: &DocumentKey, found: Found) {
        self.0.insert((state, object.clone()), found);
    }
}

/// Reads the document of an object in a manifest.
///
/// # Errors
/// Says which document does not read; nothing that stands in it.
pub(super) fn read(manifest: &str, object: &DocumentKey) -> Result<Found, String> {
    let found = document(manifest, object).map_err(|error| {
        let DocumentKey { kind, name, .. } = object;
        format!("the document of the {kind} {name} in the manifest does not read: {error}")
    });
    Ok(found?.map(Arc::new))
}

fn weight(value: &Value) -> u64 {
    let text = |text: &str| text.len() as u64;
    VALUE
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
        let documents = Documents::new();
        let state = |version: usize| State { uid: "u".to_owned(), resource_version: version.to_string() };
        let object = DocumentKey {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            default_namespace: "shop".to_owned(),
        };
        let large = Arc::new(json!({"data": {"key": "x".repeat(1 << 20)}}));
        for version in 0..100 {
            documents.keep(state(version), &object, Some(large.clone()));
            assert!(documents.0.weight() <= LIMIT);
        }
        documents.keep(state(100), &object, None);
        assert_eq!(documents.get(&state(101), &object), None);
        let other = DocumentKey { name: "api".to_owned(), ..object.clone() };
        assert_eq!(documents.get(&state(100), &other), None);
    }
}
