//! The time of a line, and the identity of its event.

use std::hash::{BuildHasher, RandomState};

use jiff::Timestamp;

use crate::offline::log::AuditEvent;
use crate::offline::replay::line::recorded_time;

/// The time of a line. The end of the request comes first, because the API server writes the line then. The start of a write
/// decides between equal ends. A watch may have started an hour ago, and many watches end at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) ended: Timestamp,
    pub(super) received: Option<Timestamp>,
}

/// The parts of a line that the merge needs.
#[derive(Debug, Default)]
pub(super) struct LineHead {
    pub(super) moment: Option<Moment>,
    /// The hash of the event.
    pub(super) event: Option<u64>,
    /// For a write: whether the request has ended.
    pub(super) has_ended: Option<bool>,
    /// The events of a list.
    pub(super) items: Option<Vec<String>>,
}

impl LineHead {
    /// Reads a line. Errors are reported when the line is judged. Without a key, no event is recognised.
    pub(super) fn of(text: &str, key: Option<&RandomState>) -> Self {
        let Ok(event) = serde_json::from_str::<AuditEvent<'_>>(text) else { return Self::default() };
        if !event.is_of_audit() {
            let moment = recorded_time(text).map(|at| Moment { ended: at, received: Some(at) });
            return Self { moment, ..Self::default() };
        }
        if event.kind == "EventList" {
            let items = event.items.iter().flatten().map(|item| item.get().to_owned());
            return Self { items: Some(items.collect()), ..Self::default() };
        }
        let is_write = event.operation().is_some();
        Self {
            moment: Moment::of(&event),
            event: key.and_then(|key| identity(&event, key)),
            has_ended: is_write.then(|| event.has_ended()),
            items: None,
        }
    }
}

impl Moment {
    fn of(event: &AuditEvent<'_>) -> Option<Self> {
        let received = event.request_received_timestamp.or(event.stage_timestamp)?;
        let ended = event.stage_timestamp.unwrap_or(received);
        Some(Self { ended, received: event.operation().map(|_| received) })
    }
}

/// The hash of an event. A client can choose the audit ID of its request, but not the time of its reception.
fn identity(event: &AuditEvent<'_>, key: &RandomState) -> Option<u64> {
    let received = event.request_received_timestamp?.as_nanosecond();
    let AuditEvent { audit_id: id, stage, verb, request_uri, .. } = event;
    (!id.is_empty()).then(|| key.hash_one((id, received, stage, verb, request_uri)))
}
