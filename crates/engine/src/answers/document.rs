//! The document of an object in a manifest.

use std::sync::Arc;

use crate::effort::Effort;
use crate::evidence::ReadDocument;
use crate::release::manifest::{DocumentKey, document};

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
