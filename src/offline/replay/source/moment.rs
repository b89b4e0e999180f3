//! The time of a line, and the identity of its event.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::offline::replay::audit::{ENDED, is_write};
use crate::offline::replay::line::timestamp;

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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadKeys<'a> {
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
    t: Option<f64>,
    #[serde(borrow, rename = "auditID")]
    audit_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    stage: Option<Cow<'a, str>>,
    #[serde(borrow)]
    verb: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "requestURI")]
    request_uri: Option<Cow<'a, str>>,
    request_received_timestamp: Option<Timestamp>,
    stage_timestamp: Option<Timestamp>,
    #[serde(borrow)]
    items: Option<&'a RawValue>,
}

impl LineHead {
    /// Reads a line. Errors are reported when the line is judged. Without a key, no event is recognised.
    pub(super) fn of(text: &str, key: Option<&RandomState>) -> Self {
        let Ok(keys) = serde_json::from_str::<HeadKeys<'_>>(text) else { return Self::default() };
        let is_audit = keys.api_version.as_deref().is_some_and(|version| version.starts_with("audit.k8s.io/"));
        if is_audit && keys.kind.as_deref() == Some("EventList") {
            let items = keys.items.and_then(|items| serde_json::from_str::<Option<Vec<&RawValue>>>(items.get()).ok());
            let items = items.flatten().unwrap_or_default();
            return Self {
                items: Some(items.into_iter().map(|item| item.get().to_owned()).collect()),
                ..Self::default()
            };
        }
        let stage = keys.stage.as_deref().filter(|_| keys.is_write());
        Self {
            moment: keys.moment(),
            event: key.and_then(|key| keys.event(key)),
            has_ended: stage.map(|stage| stage == ENDED),
            items: None,
        }
    }
}

impl HeadKeys<'_> {
    fn is_write(&self) -> bool {
        self.verb.as_deref().is_some_and(is_write)
    }

    fn moment(&self) -> Option<Moment> {
        if let Some(seconds) = self.t {
            let at = timestamp(seconds).ok()?;
            return Some(Moment { ended: at, received: Some(at) });
        }
        let received = self.request_received_timestamp.or(self.stage_timestamp)?;
        let ended = self.stage_timestamp.unwrap_or(received);
        let received = Some(received).filter(|_| self.is_write());
        Some(Moment { ended, received })
    }

    /// The hash of the event. A client can choose the audit ID of its request, but not the time of its reception.
    fn event(&self, key: &RandomState) -> Option<u64> {
        let id = self.audit_id.as_ref().filter(|id| !id.is_empty())?;
        let received = self.request_received_timestamp?.as_nanosecond();
        Some(key.hash_one((id, received, &self.stage, &self.verb, &self.request_uri)))
    }
}
