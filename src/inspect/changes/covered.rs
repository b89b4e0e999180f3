//! The times that audit logs cover.

use jiff::{SignedDuration, Timestamp};

/// The times that audit logs cover, one range for each log: from its first event to its last one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Covered(Vec<(Timestamp, Timestamp)>);

impl Covered {
    /// Adds the range of a log.
    pub(crate) fn add(&mut self, first: Timestamp, last: Timestamp) {
        self.0.push((first, last));
    }

    /// Cuts off everything before a time.
    pub(crate) fn starts_at(&mut self, start: Timestamp) {
        self.0.iter_mut().for_each(|(first, _)| *first = start.max(*first));
    }

    /// Whether a log has all events of a time. Near its ends a log may lack some, because the API server writes an event when its
    /// request ends.
    pub(crate) fn contains(&self, time: Timestamp, margin: SignedDuration) -> bool {
        self.0.iter().any(|(first, last)| time.duration_since(*first) >= margin && last.duration_since(time) >= margin)
    }
}
