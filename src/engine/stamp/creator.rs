//! The stamp of a ReleaseOverride: who made it.

use serde_json::{Value, json};

use super::pointer;
use crate::engine::facts::OverrideWrite;
use crate::engine::json::{Patch, PatchOperation};
use crate::engine::release_override::CREATED_BY;

/// Whom the stamp must name, if it names somebody: whoever makes it, and from then on the same for ever.
#[must_use]
pub fn expected<'w>(write: &'w OverrideWrite<'_>, user: &'w str) -> Option<&'w str> {
    match &write.before {
        None => Some(user),
        Some(before) => before.annotation(CREATED_BY),
    }
}

/// The patch that sets the stamp, whatever the client sent; `None` where it is right.
pub(super) fn patch(write: &OverrideWrite<'_>, user: &str) -> Option<Patch> {
    let operation = match (expected(write, user), write.after.annotation(CREATED_BY)) {
        (expected, sent) if expected == sent => return None,
        (None, _) => PatchOperation::Remove { path: pointer(CREATED_BY) },
        (Some(user), _) if write.after.annotations.is_empty() => {
            PatchOperation::Add { path: "/metadata/annotations".to_owned(), value: json!({ CREATED_BY: user }) }
        }
        (Some(user), _) => PatchOperation::Add { path: pointer(CREATED_BY), value: Value::from(user) },
    };
    Some(Patch(vec![operation]))
}
