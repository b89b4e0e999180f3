//! The stamp of a ReleaseOverride: its creator.

use super::{annotations, stamped_user};
use crate::engine::facts::OverrideWrite;
use crate::engine::json::Patch;
use crate::engine::release_override::CREATED_BY;

/// The user that the stamp must name: the user who creates the override, and later the user in the stored stamp. `None` if the name
/// is too long: an override without a known creator opens nothing where a second person is required.
#[must_use]
pub(crate) fn expected<'w>(write: &'w OverrideWrite<'_>, user: &'w str) -> Option<&'w str> {
    match &write.before {
        None => stamped_user(user),
        Some(before) => before.annotation(CREATED_BY),
    }
}

/// The patch that corrects the stamp; `None` if it is correct.
pub(super) fn patch(write: &OverrideWrite<'_>, user: &str) -> Option<Patch> {
    let (expected, sent) = (expected(write, user), write.after.annotation(CREATED_BY));
    if expected == sent {
        return None;
    }
    let set = expected.map(|user| (CREATED_BY, user));
    let removed = if set.is_none() { Some(CREATED_BY) } else { None };
    Some(annotations::patch(&write.after, set.into_iter(), removed.into_iter()))
}
