//! The formats of a line in a recording.

use std::borrow::Cow;

use interlock_engine::json::redacted;
use interlock_engine::review::Request;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::audit::{AuditEvent, parse_field};

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
    /// An event of an API server's audit log.
    Event(Box<AuditEvent<'a>>),
}

/// The keys of all formats, so that each line is parsed only once: audit logs have many lines.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LineKeys<'a> {
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    review: Option<&'a RawValue>,
    t: Option<f64>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    remove: Option<&'a RawValue>,
    #[serde(borrow)]
    mark: Option<Cow<'a, str>>,
    #[serde(borrow)]
    level: Option<&'a RawValue>,
    #[serde(borrow, rename = "auditID")]
    audit_id: Option<&'a RawValue>,
    #[serde(borrow)]
    stage: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestURI")]
    request_uri: Option<&'a RawValue>,
    #[serde(borrow)]
    verb: Option<&'a RawValue>,
    #[serde(borrow)]
    user: Option<&'a RawValue>,
    #[serde(borrow)]
    impersonated_user: Option<&'a RawValue>,
    #[serde(borrow)]
    object_ref: Option<&'a RawValue>,
    #[serde(borrow)]
    response_status: Option<&'a RawValue>,
    #[serde(borrow)]
    request_object: Option<&'a RawValue>,
    #[serde(borrow)]
    response_object: Option<&'a RawValue>,
    #[serde(borrow)]
    request_received_timestamp: Option<&'a RawValue>,
}

impl<'a> RecordingLine<'a> {
    /// Detects the format of a line.
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        let keys: LineKeys<'a> =
            serde_json::from_str(text).map_err(|error| format!("it is not a JSON object: {}", redacted(&error)))?;
        match (keys.kind.as_deref(), keys.api_version.as_deref()) {
            (Some("AdmissionReview"), _) => return Ok(Self::Review { review: text, at: None }),
            (Some("Event"), Some("audit.k8s.io/v1")) => return keys.event().map(|event| Self::Event(Box::new(event))),
            // The items of a list have no kind of their own.
            (None, None) if keys.audit_id.is_some() && keys.stage.is_some() => {
                return keys.event().map(|event| Self::Event(Box::new(event)));
            }
            (Some(kind), _) if kind.ends_with("List") => {
                return Err(format!(
                    "it is a {kind}, and each line is one object: write its items with `jq -c '.items[] | {{object: .}}'`"
                ));
            }
            _ => {}
        }
        match keys {
            LineKeys { review: Some(review), t, .. } => {
                Ok(Self::Review { review: review.get(), at: t.map(timestamp).transpose()? })
            }
            LineKeys { object: Some(object), .. } => Ok(Self::Object(object)),
            LineKeys { remove: Some(object), .. } => Ok(Self::Remove(object)),
            LineKeys { mark: Some(_), .. } => Ok(Self::Mark),
            _ => {
                Err("it is neither an AdmissionReview, nor an audit event, nor an object with one of the keys review, \
                      object, remove, mark"
                    .to_owned())
            }
        }
    }
}

impl<'a> LineKeys<'a> {
    fn event(self) -> Result<AuditEvent<'a>, String> {
        Ok(AuditEvent {
            level: text(self.level, "level")?,
            audit_id: text(self.audit_id, "auditID")?,
            stage: text(self.stage, "stage")?,
            verb: text(self.verb, "verb")?,
            request_uri: text(self.request_uri, "requestURI")?,
            received: self.request_received_timestamp.ok_or("the audit event has no requestReceivedTimestamp")?,
            user: self.impersonated_user.or(self.user),
            object_ref: self.object_ref,
            response_status: self.response_status,
            request_object: self.request_object,
            response_object: self.response_object,
        })
    }
}

/// A string of an audit event; empty if missing.
fn text<'a>(value: Option<&'a RawValue>, key: &str) -> Result<Cow<'a, str>, String> {
    value.map_or(Ok(Cow::Borrowed("")), |value| parse_field(value, key))
}

/// A time in the format of recordings.
pub(super) fn timestamp(seconds: f64) -> Result<Timestamp, String> {
    let duration = jiff::SignedDuration::try_from_secs_f64(seconds);
    let timestamp = duration.and_then(|duration| Timestamp::UNIX_EPOCH.checked_add(duration));
    timestamp.map_err(|error| format!("t: {error}"))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectTimes {
    metadata: MetadataTimes,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MetadataTimes {
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
    managed_fields: Vec<ManagedFieldsTime>,
}

#[derive(Deserialize)]
struct ManagedFieldsTime {
    #[serde(default)]
    time: Option<Timestamp>,
}

/// The newest timestamp in the objects of a request. It is the clock of a recording without times.
pub(super) fn newest_timestamp(request: &Request<'_>) -> Option<Timestamp> {
    let objects = [request.object, request.old_object].into_iter().flatten();
    let dated = objects.filter_map(|object| serde_json::from_str::<ObjectTimes>(object.get()).ok());
    let dates = dated.flat_map(|dated| {
        let MetadataTimes { creation_timestamp, deletion_timestamp, managed_fields } = dated.metadata;
        let writes = managed_fields.into_iter().filter_map(|write| write.time);
        writes.chain(creation_timestamp).chain(deletion_timestamp)
    });
    dates.max()
}
