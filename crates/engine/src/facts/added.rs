//! What a write adds to the lists in the metadata of an object.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::json::RawObject;

/// The maximum length of a list that is parsed, in bytes. An object has only a few owners and finalizers.
const MAX_LIST_BYTES: usize = 64 * 1024;

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct OwnerReference {
    #[serde(default)]
    uid: String,
}

/// Whether an object gets a new owner.
pub(crate) fn adds_owner(old: Option<RawObject<'_>>, new: Option<RawObject<'_>>) -> bool {
    adds::<OwnerReference>(old, new)
}

/// Whether an object gets a new finalizer.
pub(crate) fn adds_finalizer(old: Option<RawObject<'_>>, new: Option<RawObject<'_>>) -> bool {
    adds::<String>(old, new)
}

/// Whether a list gets a new item. A list that is not parsed counts as different.
fn adds<'r, T: Deserialize<'r> + Ord>(old: Option<RawObject<'r>>, new: Option<RawObject<'r>>) -> bool {
    let (old, new) = (old.map_or("null", RawObject::get), new.map_or("null", RawObject::get));
    let read = |text: &'r str| {
        let short = Some(text).filter(|text| text.len() <= MAX_LIST_BYTES)?;
        Some(serde_json::from_str::<Option<BTreeSet<T>>>(short).ok()?.unwrap_or_default())
    };
    old != new && read(new).is_none_or(|new| !read(old).is_some_and(|old| new.is_subset(&old)))
}
