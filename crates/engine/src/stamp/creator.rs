//! The stamp of an object of Interlock's own kinds: its creator.

use super::{annotations, stamped_user};
use crate::facts::OwnWrite;
use crate::json::Patch;
use crate::release_override::{ARRIVED, CREATED_BY, VOID};

/// The user that the stamp must name: at the creation its user, and later the user in the stored stamp. `None` if the
/// name is too long: if a second person is required, an override without a known creator opens nothing.
fn expected<'w>(write: &'w OwnWrite<'_>, user: &'w str) -> Option<&'w str> {
    match &write.before {
        None => stamped_user(user),
        Some(before) => before.annotation(CREATED_BY),
    }
}

/// Why an object must not be stored with its stamp; `None` if it may. A missing stamp was lost in an outage.
#[must_use]
pub(crate) fn objection(write: &OwnWrite<'_>, user: &str) -> Option<String> {
    let sent = write.after.annotation(CREATED_BY)?;
    (expected(write, user) != Some(sent)).then(|| {
        let kind = write.kind();
        format!(
            "The annotation {CREATED_BY} names the user who created a {kind}, and only Interlock writes it. Do not change it."
        )
    })
}

/// The patch that corrects the stamp and the mark of a void override; `None` if both are correct. A probe gets its
/// nonce back instead.
pub(super) fn patch(write: &OwnWrite<'_>, user: &str, void: Option<&str>) -> Option<Patch> {
    if let Some(nonce) = write.probe() {
        return Some(annotations::patch(&write.after, [(ARRIVED, nonce)].into_iter(), std::iter::empty()));
    }
    let expected = [(CREATED_BY, expected(write, user)), (VOID, void)];
    let wrong: Vec<_> = expected.into_iter().filter(|(key, value)| write.after.annotation(key) != *value).collect();
    if wrong.is_empty() {
        return None;
    }
    let set = wrong.iter().filter_map(|(key, value)| Some((*key, (*value)?)));
    let removed = wrong.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| *key);
    Some(annotations::patch(&write.after, set, removed))
}
