//! What a recording does not contain, and so cannot be judged.

use std::collections::BTreeMap;
use std::fmt;

use super::audit::{AuditEvent, ENDED, is_write};

/// The maximum number of resources in the message.
const MAX_NAMED_RESOURCES: usize = 5;

/// What could not be judged, or only partly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayGaps {
    /// Reviews that were judged.
    pub reviews: usize,
    /// Objects that were put into the world.
    pub objects: usize,
    /// Events of audit logs.
    pub events: usize,
    /// Writes that began in the log, at any stage before the last.
    pub begun: usize,
    /// Writes that ended in the log.
    pub ended: usize,
    /// Writes in audit logs.
    pub writes: usize,
    /// Writes without objects, because of the audit level or truncation, by resource.
    pub without_objects: BTreeMap<String, usize>,
    /// Writes of objects that were not known before.
    pub unseen: usize,
    /// Objects that were removed from memory, because there were too many.
    pub forgotten: usize,
    /// Kinds that rules asked for and that are nowhere in the recording.
    pub unknown: Vec<UnknownKind>,
}

/// A kind of which a replay has no object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKind {
    /// Empty for the core group.
    pub group: String,
    pub kind: String,
    /// How often rules asked for it.
    pub queries: usize,
}

/// Why a replay has judged nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NothingJudged {
    pub why: String,
    /// Whether there may have been something to judge.
    pub is_failure: bool,
}

impl ReplayGaps {
    pub(super) fn count_event(&mut self, event: &AuditEvent<'_>) {
        self.events += 1;
        if is_write(&event.verb) {
            // A request that takes long has several stages in between.
            self.begun += usize::from(event.stage == "RequestReceived");
            self.ended += usize::from(event.stage == ENDED);
        }
    }

    pub(super) fn count_without_objects(&mut self, resource: String) {
        *self.without_objects.entry(resource).or_default() += 1;
    }

    pub(super) fn count_write(&mut self, unseen: bool) {
        self.writes += 1;
        self.unseen += usize::from(unseen);
    }

    /// Why nothing was judged; `None` if something was.
    #[must_use]
    pub fn nothing_judged(&self) -> Option<NothingJudged> {
        let Self { reviews, objects, events, begun, ended, without_objects, .. } = self;
        if *reviews > 0 {
            return None;
        }
        let (why, is_failure) = if !without_objects.is_empty() {
            ("nothing was judged: no write in the audit log has its objects".to_owned(), true)
        } else if *begun > 0 && *ended == 0 {
            let why = format!(
                "nothing was judged: the audit log has {begun} writes at the stage RequestReceived, and none at the stage \
                 ResponseComplete, which replay judges. Take that stage out of omitStages in the audit policy; see \
                 examples/audit-policy.yaml"
            );
            (why, true)
        } else if *events > 0 {
            (
                format!("Nothing was judged: the {events} audit events are reads, refused or not sent to Interlock."),
                false,
            )
        } else if *objects > 0 {
            (format!("nothing was judged: the input has {objects} objects, and no write"), true)
        } else {
            ("nothing was judged: the input has no write".to_owned(), true)
        };
        Some(NothingJudged { why, is_failure })
    }
}

/// One paragraph for each kind of gap.
impl fmt::Display for ReplayGaps {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { begun, ended, writes, without_objects, unseen, forgotten, unknown, .. } = self;
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
        if begun > ended && *ended > 0 {
            writeln!(
                out,
                "{} writes began and did not end in the log, at the stage ResponseComplete, so they could not be checked.",
                begun - ended
            )?;
        }
        if *unseen > 0 {
            writeln!(
                out,
                "{unseen} of {writes} writes changed or deleted objects that were not known before, and count as \
                 harmless. Add the objects as {{\"object\": ...}} lines in a file before this one."
            )?;
        }
        if *forgotten > 0 {
            writeln!(
                out,
                "{forgotten} objects were removed from memory, because there were too many; some verdicts may be \
                 wrong without them. Replay a shorter part of the input."
            )?;
        }
        for UnknownKind { kind, queries, .. } in unknown {
            writeln!(
                out,
                "Judged without knowing any {kind}: rules asked {queries} times, and the input has none. If the cluster \
                 has some, its verdicts may differ."
            )?;
        }
        if !unknown.is_empty() {
            let kinds: Vec<_> = unknown.iter().map(UnknownKind::resource).collect();
            writeln!(
                out,
                "To add the state from before the first write: for kind in {}; do kubectl get $kind -A -o json; done | jq -c \
                 '.items[] | {{object: .}}' > before.jsonl",
                kinds.join(" ")
            )?;
        }
        Ok(())
    }
}

impl UnknownKind {
    /// As kubectl finds it.
    fn resource(&self) -> String {
        let kind = self.kind.to_lowercase();
        if self.group.is_empty() { kind } else { format!("{kind}.{}", self.group) }
    }
}
