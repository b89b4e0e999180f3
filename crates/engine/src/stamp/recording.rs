//! Stamps in recordings: restored if the recording was made without Interlock, and applied as by an API server.

use jsonptr::{Assign, Delete, Pointer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::json::{Patch, PatchOperation, RawObject};
use crate::release::stamps::KEYS;

/// An object with the stamps of the known one; `None` if the object has stamps, the known one has none, or their uids
/// differ.
pub fn restored(object: RawObject<'_>, known: &str) -> Option<Box<RawValue>> {
    let known: Value = serde_json::from_str(known).ok()?;
    let stamps = known.pointer("/metadata/annotations")?.as_object()?;
    if !KEYS.iter().any(|key| stamps.contains_key(*key)) {
        return None;
    }
    let mut object: Value = serde_json::from_str(object.get()).ok()?;
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    let (known_uid, object_uid) = (uid(known.pointer("/metadata/uid")), uid(metadata.get("uid")));
    if known_uid.is_some() && object_uid.is_some() && known_uid != object_uid {
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
    to_raw_value(&object).ok()
}

fn uid(uid: Option<&Value>) -> Option<String> {
    uid.and_then(Value::as_str).map(str::to_owned)
}

/// An object with a patch applied.
pub fn patched(object: RawObject<'_>, patch: &Patch) -> Option<Box<RawValue>> {
    let mut object: Value = serde_json::from_str(object.get()).ok()?;
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
    to_raw_value(&object).ok()
}
