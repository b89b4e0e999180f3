//! The documents of a manifest.
//!
//! Helm stores YAML documents with separators; OLM stores JSON documents without separators.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The longest manifest that is read, in bytes: parsing YAML takes a second for some 20 MiB, and the largest legitimate
/// manifest has about 5.
const MAX_MANIFEST_BYTES: usize = 16 << 20;

/// Parses the documents of a manifest. Of a YAML manifest only those whose text `is_wanted` accepts; an empty document
/// is the default.
///
/// # Errors
/// The manifest is longer than 16 MiB. An item is an error if its document cannot be parsed.
pub(super) fn parsed<'m, T: DeserializeOwned + Default + 'm>(
    manifest: &'m str,
    is_wanted: impl Fn(&str) -> bool + 'm,
) -> Result<Box<dyn Iterator<Item = Result<T, String>> + 'm>, String> {
    check_length(manifest)?;
    if is_json(manifest) {
        return Ok(Box::new(json_documents(manifest)));
    }
    let wanted = yaml_documents(manifest).filter(move |document| is_wanted(document));
    Ok(Box::new(wanted.map(|document| Ok(parse(document)?.unwrap_or_default()))))
}

/// # Errors
/// The manifest is longer than 16 MiB.
pub(super) fn check_length(manifest: &str) -> Result<(), String> {
    if manifest.len() > MAX_MANIFEST_BYTES {
        return Err(format!("it is longer than {} MiB", MAX_MANIFEST_BYTES >> 20));
    }
    Ok(())
}

/// Whether the documents are JSON.
pub(super) fn is_json(manifest: &str) -> bool {
    manifest.trim_start().starts_with('{')
}

/// The documents of a JSON manifest.
pub(super) fn json_documents<'m, T: Deserialize<'m> + 'm>(
    manifest: &'m str,
) -> impl Iterator<Item = Result<T, String>> + 'm {
    let documents = serde_json::Deserializer::from_str(manifest).into_iter();
    documents.map(|document| document.map_err(|error| position(&error)))
}

/// The documents of a YAML manifest, as text.
pub(super) fn yaml_documents(manifest: &str) -> impl Iterator<Item = &str> {
    // The line of a separator may end in a comment, and the first document starts with a separator of its own.
    manifest.split("\n---").map(|document| document.trim_start_matches("---"))
}

/// The kind of a document, if it is on a line of its own as charts write it.
pub(super) fn root_kind(document: &str) -> Option<&str> {
    document.lines().find_map(|line| line.strip_prefix("kind:")).map(plain_scalar)
}

/// The scalar behind a key, without quotes and comment.
pub(super) fn plain_scalar(text: &str) -> &str {
    text.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\''])
}

/// The namespace in a document, or the default if the document has none or an empty one.
pub(super) fn namespace_or(namespace: Option<String>, default: &str) -> String {
    namespace.filter(|namespace| !namespace.is_empty()).unwrap_or_else(|| default.to_owned())
}

/// Parses a YAML document as Helm does: the last of several equal keys counts.
///
/// # Errors
/// The position of the problem, never the text there: manifests contain Secrets.
pub(super) fn parse<T: DeserializeOwned>(document: &str) -> Result<Option<T>, String> {
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        with_snippet: false,
        // `263e7411` is text to Go and an infinite number to YAML 1.2. As text the value is lost, but the field is there.
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
    };
    serde_saphyr::from_str_with_options(document, options).map_err(|error| match error.location() {
        Some(at) => format!("line {}, column {} of a document", at.line(), at.column()),
        None => "a document is not YAML".to_owned(),
    })
}

/// The position of an error in JSON, without the text there.
pub(super) fn position(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}
