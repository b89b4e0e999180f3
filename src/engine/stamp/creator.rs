//! The stamp of a ReleaseOverride: its creator.

use super::{annotations, stamped_user};
use crate::engine::facts::OverrideWrite;
use crate::engine::json::Patch;
use crate::engine::release_override::{ARRIVED, CREATED_BY};

/// The user that the stamp must name: the user who creates the override, and later the user in the stored stamp. `None` if the name
/// is too long: an override without a known creator opens nothing where a second person is required.
#[must_use]
pub(crate) fn expected<'w>(write: &'w OverrideWrite<'_>, user: &'w str) -> Option<&'w str> {
    match &write.before {
        None => stamped_user(user),
        Some(before) => before.annotation(CREATED_BY),
    }
}

/// The patch that corrects the stamp; `None` if it is correct. A probe gets its nonce back instead.
pub(super) fn patch(write: &OverrideWrite<'_>, user: &str) -> Option<Patch> {
    if let Some(nonce) = write.probe() {
        return Some(annotations::patch(&write.after, [(ARRIVED, nonce)].into_iter(), std::iter::empty()));
    }
    let (expected, sent) = (expected(write, user), write.after.annotation(CREATED_BY));
    if expected == sent {
        return None;
    }
    let set = expected.map(|user| (CREATED_BY, user));
    let removed = if set.is_none() { Some(CREATED_BY) } else { None };
    Some(annotations::patch(&write.after, set.into_iter(), removed.into_iter()))
}
