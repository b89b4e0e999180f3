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
    restored(text, "/request/oldObject", known?)
}

/// A document with the stamps of a known copy on the object at a pointer; `None` when that has some, the copy has none, or
/// the two are of different lives.
pub(super) fn restored(text: &str, at: &str, known: &str) -> Option<String> {
    let known: Value = serde_json::from_str(known).ok()?;
    let stamps = known.pointer("/metadata/annotations")?.as_object()?;
    let mut document: Value = serde_json::from_str(text).ok()?;
    let metadata = document.pointer_mut(at)?.get_mut("metadata")?.as_object_mut()?;
    let uid = |uid: Option<&Value>| uid.and_then(Value::as_str).map(str::to_owned);
    let (ours, theirs) = (uid(known.pointer("/metadata/uid")), uid(metadata.get("uid")));
    if ours.is_some() && theirs.is_some() && ours != theirs {
        return None;
    }
    let annotations = metadata.entry("annotations").or_insert(Value::Null);
    if annotations.is_null() {
        *annotations = Value::Object(Map::new());
    }
    let annotations = annotations.as_object_mut()?;
    if KEYS.iter().any(|key| annotations.contains_key(*key)) {
        return None;
    }
    for key in KEYS {
        if let Some(value) = stamps.get(key) {
            annotations.insert(key.to_owned(), value.clone());
        }
    }
    Some(document.to_string())
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
