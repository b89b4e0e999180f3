//! What a recording leaves out, and so cannot be judged.

use std::collections::BTreeMap;
use std::fmt;

/// The resources that are named, at most.
const MAX_NAMED_RESOURCES: usize = 5;

/// What could not be judged, or only in part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayGaps {
    /// How many writes of an audit log were read.
    pub writes: usize,
    /// Writes whose objects the log leaves out, by its level or because they are large, by resource.
    pub without_objects: BTreeMap<String, usize>,
    /// Writes of objects that nobody had shown before.
    pub unseen: usize,
    /// Objects that were forgotten, because there were too many.
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

/// A paragraph for each; empty where nothing is missing.
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
                "{left_out} writes could not be judged: the audit log was kept at a level without objects, or cut them \
                 off ({}{more}). Log them at level RequestResponse, without truncation; examples/audit-policy.yaml shows \
                 how.",
                named.join(", ")
            )?;
        }
        if *unseen > 0 {
            writeln!(
                out,
                "{unseen} of {writes} writes changed or deleted objects that had not been shown before, and count as \
                 harmless. Give what was there as {{\"object\": ...}} lines in a file before the log."
            )?;
        }
        if *forgotten > 0 {
            writeln!(
                out,
                "{forgotten} objects were forgotten, because there were too many at once; some verdicts may lack them. \
                 Replay less of the log at a time."
            )?;
        }
        Ok(())
    }
}
