//! Stamps in recordings: put back where the recording was made without us, and applied as the API server would.

use jsonptr::{Assign, Delete, Pointer};
use serde_json::{Map, Value};

use crate::release::stamps::KEYS;
use crate::release::storage::storing_kind;
use crate::review::{Patch, PatchOperation, Request};

/// The review with the stamps of the world's copy on an `oldObject` that has none; `None` when nothing is to be done.
pub(super) fn restore(request: &Request<'_>, text: &str, known: Option<&str>) -> Option<String> {
    storing_kind(request)?;
    request.old_object?;
    let known: Value = serde_json::from_str(known?).ok()?;
    let stamps = known.pointer("/metadata/annotations")?.as_object()?;
    let mut review: Value = serde_json::from_str(text).ok()?;
    let metadata = review.pointer_mut("/request/oldObject/metadata")?.as_object_mut()?;
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    let annotations = annotations.as_object_mut()?;
    if KEYS.iter().any(|key| annotations.contains_key(*key)) {
        return None;
    }
    for key in KEYS {
        if let Some(value) = stamps.get(key) {
            annotations.insert(key.to_owned(), value.clone());
        }
    }
    Some(review.to_string())
}

/// The review with a patch applied to its object.
pub(super) fn patched(text: &str, patch: &Patch) -> Option<String> {
    let mut review: Value = serde_json::from_str(text).ok()?;
    let object = review.pointer_mut("/request/object")?;
    for operation in &patch.0 {
        match operation {
            PatchOperation::Add { path, value } => {
                object.assign(Pointer::parse(path).ok()?, value.clone()).ok()?;
            }
            PatchOperation::Remove { path } => {
                object.delete(Pointer::parse(path).ok()?);
            }
        }
    }
    Some(review.to_string())
}
