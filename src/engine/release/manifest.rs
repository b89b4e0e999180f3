//! The manifest of a record: the documents that Helm applied, hooks left out.
//!
//! Helm stores YAML documents; OLM stores JSON documents one after another without a separator.

mod hooks;
mod object;
mod objects;
mod workloads;

use serde::de::DeserializeOwned;

pub use hooks::{HookJob, hook_jobs};
pub use object::{DocumentKey, document};
pub use objects::objects;
pub use workloads::{WorkloadKind, WorkloadRef, workloads};

/// The longest manifest that is read, in bytes: reading YAML takes a second for some 20 MiB, and the
/// largest legitimate manifest has about 5.
const LONGEST: usize = 16 << 20;

/// Whether the documents are JSON.
fn is_json(manifest: &str) -> bool {
    manifest.trim_start().starts_with('{')
}

/// The documents of a YAML manifest.
fn documents(manifest: &str) -> impl Iterator<Item = &str> {
    // The rest of a separator's line may hold a comment, and the first document starts with its own separator.
    manifest.split("\n---").map(|document| document.trim_start_matches("---"))
}

/// The kind of a document, where it stands on a line of its own as charts write it.
fn root_kind(document: &str) -> Option<&str> {
    document.lines().find_map(|line| line.strip_prefix("kind:")).map(plain)
}

/// The scalar behind a key, without quotes and comment.
fn plain(text: &str) -> &str {
    text.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\''])
}

/// Reads a document as Helm does: of a repeated key the last one counts.
///
/// The error tells where, never what stands there: manifests hold Secrets.
fn read<T: DeserializeOwned>(document: &str) -> Result<Option<T>, String> {
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        with_snippet: false,
        // `263e7411` is text to Go and beyond every number to YAML 1.2. What it says is lost; that it is there is not.
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
    };
    serde_saphyr::from_str_with_options(document, options).map_err(|error| match error.location() {
        Some(at) => format!("line {}, column {} of a document", at.line(), at.column()),
        None => "a document is not YAML".to_owned(),
    })
}
