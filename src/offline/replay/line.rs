//! The formats of a line in a recording.

use std::borrow::Cow;

use interlock_engine::json::redacted;
use interlock_engine::object::Metadata;
use interlock_engine::review::Request;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::offline::log::AuditEvent;

/// One line of a recording.
pub(super) enum RecordingLine<'a> {
    /// `{"mark": "text"}`: a comment.
    Mark,
    /// `{"object": {...}}`: an existing object.
    Object(&'a RawValue),
    /// `{"remove": {...}}`: a deleted object.
    Remove(&'a RawValue),
    /// An AdmissionReview, bare or as `{"review": ..., "t": seconds}`.
    Review { review: &'a str, at: Option<Timestamp> },
    /// An event of an audit log. It has the time of its reception.
    Event(Box<AuditEvent<'a>>),
}

/// The keys of a line in a recording, apart from those of an AdmissionReview.
#[derive(Deserialize)]
struct RecordingKeys<'a> {
    #[serde(borrow)]
    review: Option<&'a RawValue>,
    t: Option<f64>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    remove: Option<&'a RawValue>,
    #[serde(borrow)]
    mark: Option<Cow<'a, str>>,
}

impl<'a> RecordingLine<'a> {
    /// Detects the format of a line. Audit logs have many lines, so their format comes first.
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        let event: AuditEvent<'a> = parsed(text)?;
        if event.kind == "AdmissionReview" {
            return Ok(Self::Review { review: text, at: None });
        }
        if event.kind.ends_with("List") {
            return Err(format!(
                "it is a {}, and each line is one object: write its items with `jq -c '.items[] | {{object: .}}'`",
                event.kind
            ));
        }
        if event.is_of_audit() {
            event.received()?;
            return Ok(Self::Event(Box::new(event)));
        }
        match parsed(text)? {
            RecordingKeys { review: Some(review), t, .. } => {
                Ok(Self::Review { review: review.get(), at: t.map(timestamp).transpose()? })
            }
            RecordingKeys { object: Some(object), .. } => Ok(Self::Object(object)),
            RecordingKeys { remove: Some(object), .. } => Ok(Self::Remove(object)),
            RecordingKeys { mark: Some(_), .. } => Ok(Self::Mark),
            _ => {
                Err("it is neither an AdmissionReview, nor an audit event, nor an object with one of the keys review, \
                      object, remove, mark"
                    .to_owned())
            }
        }
    }
}

fn parsed<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("it is not a JSON object of a known kind: {}", redacted(&error)))
}

/// The time of a line in a recording, if it has one.
pub(super) fn recorded_time(text: &str) -> Option<Timestamp> {
    let RecordingKeys { t, .. } = parsed(text).ok()?;
    timestamp(t?).ok()
}

/// A time in the format of recordings.
fn timestamp(seconds: f64) -> Result<Timestamp, String> {
    let duration = jiff::SignedDuration::try_from_secs_f64(seconds);
    let timestamp = duration.and_then(|duration| Timestamp::UNIX_EPOCH.checked_add(duration));
    timestamp.map_err(|error| format!("t: {error}"))
}

#[derive(Deserialize)]
struct ManagedFieldsTime {
    #[serde(default)]
    time: Option<Timestamp>,
}

/// The newest timestamp in the objects of a request. It is the clock of a recording without times.
pub(super) fn newest_timestamp(request: &Request<'_>) -> Option<Timestamp> {
    let objects = [request.object, request.old_object].into_iter().flatten();
    objects.filter_map(|object| Metadata::of(object).ok()).filter_map(newest_time).max()
}

fn newest_time(metadata: Metadata<'_>) -> Option<Timestamp> {
    let fields = metadata.managed_fields.and_then(|fields| serde_json::from_str(fields.get()).ok());
    let writes: Vec<ManagedFieldsTime> = fields.unwrap_or_default();
    let writes = writes.into_iter().filter_map(|write| write.time);
    writes.chain(metadata.creation_timestamp).chain(metadata.deletion_timestamp).max()
}
