//! Which changes are wanted.

use jiff::Timestamp;

use super::change::{Change, ChangedRelease};

/// Which changes are wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) namespace: Option<String>,
    pub(crate) release: Option<String>,
    pub(crate) since: Option<Timestamp>,
    /// Also those that Interlock refused.
    pub(crate) refused: bool,
}

impl Wanted {
    /// Whether a change of this release can be wanted, whenever it took place.
    pub(crate) fn concerns(&self, release: &ChangedRelease, is_refused: bool) -> bool {
        let is = |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|wanted| wanted == value);
        is(&self.namespace, &release.namespace) && is(&self.release, &release.release) && (self.refused || !is_refused)
    }

    /// Whether this change is wanted.
    pub(crate) fn contains(&self, change: &Change) -> bool {
        self.concerns(&change.release, change.is_refused()) && self.since.is_none_or(|since| change.time >= since)
    }
}
