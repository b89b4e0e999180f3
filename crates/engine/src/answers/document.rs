//! The document of an object in a manifest.

use std::sync::Arc;

use serde_json::Value;

use crate::effort::Effort;
use crate::release::manifest::{DocumentKey, document};

/// The document of an object; `None` if the manifest has none.
pub type FoundDocument = Option<Arc<Value>>;

/// The document of an object in a manifest. The error names a document that cannot be parsed, and nothing of its
/// content.
pub type ReadDocument = Result<FoundDocument, String>;

/// Parses the document of an object in a manifest.
///
/// # Errors
/// It is more work than the review has left.
pub fn read_document(manifest: &str, object: &DocumentKey, effort: &Effort) -> Result<ReadDocument, String> {
    let found = document(manifest, object, effort).map(|found| found.map(Arc::new)).map_err(|error| {
        let DocumentKey { kind, name, .. } = object;
        format!("the document of the {kind} {name} in the manifest cannot be parsed: {error}")
    });
    match found {
        Err(error) if effort.was_exceeded() => Err(error),
        found => Ok(found),
    }
}
