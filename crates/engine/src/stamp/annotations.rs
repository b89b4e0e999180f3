//! The patch of the annotations of an object.

use serde_json::{Map, Value};

use crate::json::{Patch, PatchOperation};
use crate::object::{Metadata, annotation_pointer};

/// The patch that sets and removes annotations of an object. An object without annotations gets them all at once, because
/// a JSON patch cannot add to a map that does not exist.
pub(super) fn patch<'s>(
    metadata: &Metadata<'_>,
    set: impl Iterator<Item = (&'static str, &'s str)>,
    removed: impl Iterator<Item = &'static str>,
) -> Patch {
    if metadata.annotations.is_empty() {
        let value = set.map(|(key, value)| (key.to_owned(), Value::from(value))).collect::<Map<_, _>>();
        return Patch(vec![PatchOperation::Add { path: "/metadata/annotations".to_owned(), value: value.into() }]);
    }
    let set = set.map(|(key, value)| PatchOperation::Add { path: annotation_pointer(key), value: value.into() });
    let removed = removed.map(|key| PatchOperation::Remove { path: annotation_pointer(key) });
    Patch(set.chain(removed).collect())
}
