//! The filter for changes.

use jiff::Timestamp;

use super::change::{Change, ChangedRelease};

/// The filter for changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) namespace: Option<String>,
    pub(crate) release: Option<String>,
    pub(crate) since: Option<Timestamp>,
    /// Includes changes that Interlock refused.
    pub(crate) refused: bool,
}

impl Wanted {
    /// Whether the filter can accept a change of this release, whatever its time.
    pub(crate) fn concerns(&self, release: &ChangedRelease, is_refused: bool) -> bool {
        accepts(&self.namespace, &release.namespace)
            && accepts(&self.release, &release.release)
            && (self.refused || !is_refused)
    }

    /// Whether the filter accepts this change.
    pub(crate) fn contains(&self, change: &Change) -> bool {
        self.concerns(&change.release, change.is_refused()) && self.since.is_none_or(|since| change.time >= since)
    }
}

fn accepts(wanted: &Option<String>, value: &str) -> bool {
    wanted.as_deref().is_none_or(|wanted| wanted == value)
}
