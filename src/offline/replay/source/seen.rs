//! Events that several logs have, because logs are copied, or rotated files overlap.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};

/// The maximum number of remembered events. The copies of an event are neighbours, because files are merged by time.
const MAX_REMEMBERED: usize = 1 << 17;

/// The last events, by their hashes, with the log that had each event first.
#[derive(Default)]
pub(super) struct SeenEvents {
    logs: HashMap<u64, usize>,
    oldest_first: VecDeque<u64>,
    repeated: usize,
}

impl SeenEvents {
    /// Whether another log had this event earlier.
    pub(super) fn is_in_another_log(&mut self, event: Option<u64>, log: usize) -> bool {
        let Some(event) = event else { return false };
        match self.logs.entry(event) {
            Entry::Occupied(first) if *first.get() != log => {
                self.repeated += 1;
                return true;
            }
            Entry::Occupied(_) => return false,
            Entry::Vacant(place) => _ = place.insert(log),
        }
        self.oldest_first.push_back(event);
        if self.oldest_first.len() > MAX_REMEMBERED
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.logs.remove(&oldest);
        }
        false
    }

    /// The number of dropped events.
    pub(super) fn repeated(&self) -> usize {
        self.repeated
    }
}
