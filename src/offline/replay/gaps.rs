//! What a recording does not contain, and so cannot be judged.

use std::collections::BTreeMap;
use std::fmt;

/// The maximum number of resources in the message.
const MAX_NAMED_RESOURCES: usize = 5;

/// What could not be judged, or only partly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayGaps {
    /// Writes in audit logs.
    pub writes: usize,
    /// Writes without objects, because of the audit level or truncation, by resource.
    pub without_objects: BTreeMap<String, usize>,
    /// Writes of objects that were not known before.
    pub unseen: usize,
    /// Objects that were removed from memory, because there were too many.
    pub forgotten: usize,
}

impl ReplayGaps {
    pub(super) fn count_without_objects(&mut self, resource: String) {
        *self.without_objects.entry(resource).or_default() += 1;
    }

    pub(super) fn count_write(&mut self, unseen: bool) {
        self.writes += 1;
        self.unseen += usize::from(unseen);
    }
}

/// One paragraph for each kind of gap.
impl fmt::Display for ReplayGaps {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writes, without_objects, unseen, forgotten } = self;
        let left_out: usize = without_objects.values().sum();
        if left_out > 0 {
            let mut most: Vec<_> = without_objects.iter().collect();
            most.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            let named: Vec<_> = most
                .iter()
                .take(MAX_NAMED_RESOURCES)
                .map(|(resource, count)| format!("{count} of {resource}"))
                .collect();
            let more = if most.len() > MAX_NAMED_RESOURCES { ", ..." } else { "" };
            writeln!(
                out,
                "{left_out} writes could not be checked: the audit log has no objects for them, because of its level \
                 or truncation ({}{more}). Log these resources at level RequestResponse, without truncation; see \
                 examples/audit-policy.yaml.",
                named.join(", ")
            )?;
        }
        if *unseen > 0 {
            writeln!(
                out,
                "{unseen} of {writes} writes changed or deleted objects that were not known before, and count as \
                 harmless. Add the objects as {{\"object\": ...}} lines in a file before the log."
            )?;
        }
        if *forgotten > 0 {
            writeln!(
                out,
                "{forgotten} objects were removed from memory, because there were too many; some verdicts may be \
                 wrong without them. Replay a shorter part of the log."
            )?;
        }
        Ok(())
    }
}
