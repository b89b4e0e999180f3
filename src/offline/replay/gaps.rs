//! The gaps of a recording, and what could not be judged because of them.

use std::collections::BTreeMap;
use std::fmt;

use crate::offline::log::AuditEvent;
use crate::offline::registration::{Doubt, NotSent};

/// The maximum number of named resources in the message.
const MAX_NAMED_RESOURCES: usize = 5;

/// The input that could not be judged, or only partly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayGaps {
    /// Reviews that were judged.
    pub reviews: usize,
    /// Objects that were put into the world.
    pub objects: usize,
    /// Events of audit logs.
    pub events: usize,
    /// Writes with an event at any stage before the last.
    pub begun: usize,
    /// Writes with an event at the last stage.
    pub ended: usize,
    /// Writes in audit logs.
    pub writes: usize,
    /// Writes without objects, because of the audit level or truncation, by resource.
    pub without_objects: BTreeMap<String, usize>,
    /// Writes that the API server refused, except PATCHes.
    pub refused: usize,
    /// PATCHes that the API server refused. Their events have neither the object nor the old object.
    pub refused_patches: usize,
    /// Requests that the registration does not send, by reason.
    pub not_sent: BTreeMap<String, usize>,
    /// Requests that the registration may not send, by reason. They are judged.
    pub may_be_sent: BTreeMap<String, usize>,
    /// Writes whose object before the write was unknown.
    pub unseen: usize,
    /// Objects that were removed from memory, because there were too many.
    pub forgotten: usize,
    /// Kinds that rules queried and that are nowhere in the recording.
    pub unknown: Vec<UnknownKind>,
}

/// A kind without an object in a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKind {
    /// Empty for the core group.
    pub group: String,
    pub kind: String,
    /// The number of queries for the kind.
    pub queries: usize,
}

/// Why a replay judged nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NothingJudged {
    pub why: String,
    /// Whether the input may have had something to judge.
    pub is_failure: bool,
}

impl ReplayGaps {
    pub(super) fn count_event(&mut self, event: &AuditEvent<'_>) {
        self.events += 1;
        if event.operation().is_some() {
            // A long request has several intermediate stages.
            self.begun += usize::from(event.stage == "RequestReceived");
            self.ended += usize::from(event.has_ended());
        }
    }

    pub(super) fn count_without_objects(&mut self, resource: &str) {
        *self.without_objects.entry(resource.to_owned()).or_default() += 1;
    }

    pub(super) fn count_refused(&mut self, verb: &str) {
        let count = if verb == "patch" { &mut self.refused_patches } else { &mut self.refused };
        *count += 1;
    }

    pub(super) fn count_not_sent(&mut self, why: &NotSent) {
        *self.not_sent.entry(why.to_string()).or_default() += 1;
    }

    pub(super) fn count_may_be_sent(&mut self, why: &Doubt) {
        *self.may_be_sent.entry(why.to_string()).or_default() += 1;
    }

    /// The number of requests that the registration does not send.
    #[must_use]
    pub fn all_not_sent(&self) -> usize {
        self.not_sent.values().sum()
    }

    /// Why nothing was judged; `None` if something was.
    #[must_use]
    pub fn nothing_judged(&self) -> Option<NothingJudged> {
        let Self { reviews, objects, events, begun, ended, without_objects, not_sent, .. } = self;
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
        } else if !not_sent.is_empty() {
            let all = self.all_not_sent();
            (format!("Nothing was judged: the registration sends none of the {all} requests to Interlock."), false)
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
        self.write_not_sent(out)?;
        self.write_refused(out)?;
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

impl ReplayGaps {
    fn write_not_sent(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { not_sent, may_be_sent, .. } = self;
        if !not_sent.is_empty() {
            let mut reasons: Vec<_> = not_sent.iter().collect();
            reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            let reasons: Vec<_> = reasons.iter().map(|(why, count)| format!("{count} {why}")).collect();
            let all = counted(self.all_not_sent(), "request");
            writeln!(out, "Not judged: {all} that the registration does not send ({}).", reasons.join(", "))?;
        }
        for (why, count) in may_be_sent {
            let requests = counted(*count, "request");
            writeln!(out, "Judged, though the registration may not send them: {requests} ({why}).")?;
        }
        Ok(())
    }

    fn write_refused(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let other = match self.refused_patches {
            0 => "write",
            1 => {
                writeln!(out, "Not judged: a refused PATCH, whose audit event has no object.")?;
                "other write"
            }
            many => {
                writeln!(out, "Not judged: {many} refused PATCHes, whose audit events have no object.")?;
                "other write"
            }
        };
        if self.refused > 0 {
            let writes = counted(self.refused, other);
            writeln!(out, "Not judged: {writes} that the API server refused when the log was written.")?;
        }
        Ok(())
    }
}

/// `1 request`, `2 requests`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

impl UnknownKind {
    /// The resource as kubectl accepts it.
    fn resource(&self) -> String {
        let kind = self.kind.to_lowercase();
        if self.group.is_empty() { kind } else { format!("{kind}.{}", self.group) }
    }
}
