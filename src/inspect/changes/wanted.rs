//! The filter for changes.

use interlock_engine::owners::Carrier;
use jiff::Timestamp;

use super::change::{Change, ChangedRelease};

/// The filter for changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) namespace: Option<String>,
    /// A release, or an object of the kind `carrier`.
    pub(crate) release: Option<String>,
    /// The kind of the wanted object that carries its operation itself.
    pub(crate) carrier: Option<&'static Carrier>,
    pub(crate) since: Option<Timestamp>,
    /// Includes changes that Interlock refused.
    pub(crate) refused: bool,
}

impl Wanted {
    /// Whether the filter can accept a change of this release, whatever its time.
    pub(crate) fn concerns(&self, release: &ChangedRelease, is_refused: bool) -> bool {
        self.includes(release.carrier())
            && accepts(&self.namespace, &release.namespace)
            && accepts(&self.release, &release.release)
            && (self.refused || !is_refused)
    }

    /// Whether the filter can accept objects of a kind, or releases. A name without a kind is that of a release.
    pub(crate) fn includes(&self, carrier: Option<&Carrier>) -> bool {
        match (self.carrier, carrier) {
            (Some(wanted), Some(carrier)) => wanted.kind == carrier.kind,
            (Some(_), None) => false,
            (None, Some(_)) => self.release.is_none(),
            (None, None) => true,
        }
    }

    /// Whether the filter accepts this change.
    pub(crate) fn contains(&self, change: &Change) -> bool {
        self.concerns(&change.release, change.is_refused()) && self.since.is_none_or(|since| change.time >= since)
    }
}

fn accepts(wanted: &Option<String>, value: &str) -> bool {
    wanted.as_deref().is_none_or(|wanted| wanted == value)
}
