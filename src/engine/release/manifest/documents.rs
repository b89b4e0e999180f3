//! The documents of a manifest.
//!
//! Helm stores YAML documents with separators; OLM stores JSON documents without separators.

use serde_json::Value;

use crate::engine::effort::Effort;

/// The longest manifest that is read, in bytes. The largest legitimate manifest has about 5 MiB.
pub(crate) const MAX_MANIFEST_BYTES: usize = 8 << 20;

/// The steps to parse a byte of YAML into a tree.
const YAML_STEPS: u64 = 120;

/// The steps to parse a byte of JSON into a tree.
const JSON_STEPS: u64 = 10;

/// The most events that the aliases of a document may repeat, and the steps that a repeated event takes. They are paid for
/// before a document with an alias is parsed. Charts use aliases rarely, and for a few dozen events.
const MAX_REPEATED_EVENTS: usize = 50_000;
const REPEATED_EVENT_STEPS: u64 = 400;

/// # Errors
/// The manifest is longer than 8 MiB.
pub(super) fn check_length(manifest: &str, effort: &Effort) -> Result<(), String> {
    if manifest.len() > MAX_MANIFEST_BYTES {
        effort.exceed();
        return Err(format!("it is longer than {} MiB", MAX_MANIFEST_BYTES >> 20));
    }
    Ok(())
}

/// Whether the documents are JSON.
pub(super) fn is_json(manifest: &str) -> bool {
    manifest.trim_start().starts_with('{')
}

/// The documents of a YAML manifest, as text.
pub(super) fn yaml_documents(manifest: &str) -> impl Iterator<Item = &str> {
    // The line of a separator may end in a comment, and the first document starts with a separator of its own.
    manifest.split("\n---").map(|document| document.trim_start_matches("---"))
}

/// The scalar behind a key, without quotes and comment.
pub(super) fn plain_scalar(text: &str) -> &str {
    text.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\''])
}

/// Parses a YAML document as Helm does: the last of several equal keys counts. An empty document is null.
///
/// # Errors
/// The position of the problem, never the text there, because manifests contain Secrets. Or it is more work than the review
/// has left.
pub(super) fn parse_yaml(document: &str, effort: &Effort) -> Result<Value, String> {
    effort.take_text(document, YAML_STEPS)?;
    if document.contains('*') {
        effort.take(MAX_REPEATED_EVENTS as u64 * REPEATED_EVENT_STEPS)?;
    }
    let mut options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        with_snippet: false,
        // `263e7411` is text to Go and an infinite number to YAML 1.2. As text the value is lost, but the field is there.
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
    };
    options.alias_limits.max_total_replayed_events = MAX_REPEATED_EVENTS;
    let parsed = serde_saphyr::from_str_with_options::<Option<Value>>(document, options);
    parsed.map(Option::unwrap_or_default).map_err(|error| match error.location() {
        Some(at) => format!("line {}, column {} of a document", at.line(), at.column()),
        None => "a document is not YAML".to_owned(),
    })
}

/// Parses a JSON document.
///
/// # Errors
/// The position of the problem, or it is more work than the review has left.
pub(super) fn parse_json(document: &str, effort: &Effort) -> Result<Value, String> {
    effort.take_text(document, JSON_STEPS)?;
    serde_json::from_str(document).map_err(|error| position(&error))
}

/// The position of an error in JSON, without the text there.
pub(super) fn position(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}
