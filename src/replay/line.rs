//! The shapes that a line of a recording may have.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::audit::Event;
use crate::review::Request;

/// One line of a recording.
pub(super) enum Line<'a> {
    /// `{"mark": "text"}`: for the reader.
    Mark,
    /// `{"object": {...}}`: an object that was there.
    Object(&'a RawValue),
    /// `{"remove": {...}}`: an object that went.
    Remove(&'a RawValue),
    /// An AdmissionReview, bare or as `{"review": ..., "t": seconds}`.
    Review { review: Cow<'a, RawValue>, at: Option<Timestamp> },
    /// An event of an API server's audit log.
    Event(Box<Event<'a>>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Keys<'a> {
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
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
}

impl<'a> Line<'a> {
    /// Tells which shape a line has.
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        let keys: Keys<'a> = serde_json::from_str(text).map_err(|error| format!("it is not a JSON object: {error}"))?;
        match (keys.kind.as_deref(), keys.api_version.as_deref()) {
            (Some("AdmissionReview"), _) => {
                let review = serde_json::from_str::<&RawValue>(text).map_err(|error| error.to_string())?;
                return Ok(Self::Review { review: Cow::Borrowed(review), at: None });
            }
            (Some("Event"), Some("audit.k8s.io/v1")) => {
                let event = serde_json::from_str(text).map_err(|error| format!("the audit event: {error}"))?;
                return Ok(Self::Event(Box::new(event)));
            }
            _ => {}
        }
        match keys {
            Keys { review: Some(review), t, .. } => {
                let at = t.map(timestamp).transpose()?;
                Ok(Self::Review { review: Cow::Borrowed(review), at })
            }
            Keys { object: Some(object), .. } => Ok(Self::Object(object)),
            Keys { remove: Some(object), .. } => Ok(Self::Remove(object)),
            Keys { mark: Some(_), .. } => Ok(Self::Mark),
            _ => {
                Err("it is neither an AdmissionReview, nor an audit event, nor an object with one of the keys review, \
                      object, remove, mark"
                    .to_owned())
            }
        }
    }
}

fn timestamp(seconds: f64) -> Result<Timestamp, String> {
    let duration = jiff::SignedDuration::try_from_secs_f64(seconds);
    let timestamp = duration.and_then(|duration| Timestamp::UNIX_EPOCH.checked_add(duration));
    timestamp.map_err(|error| format!("t: {error}"))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Dated {
    metadata: Dates,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Dates {
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
    managed_fields: Vec<Write>,
}

#[derive(Deserialize)]
struct Write {
    #[serde(default)]
    time: Option<Timestamp>,
}

/// The newest timestamp in the objects of a request: the clock of a recording without one.
pub(super) fn newest_timestamp(request: &Request<'_>) -> Option<Timestamp> {
    let objects = [request.object, request.old_object].into_iter().flatten();
    let dated = objects.filter_map(|object| serde_json::from_str::<Dated>(object.get()).ok());
    let dates = dated.flat_map(|dated| {
        let Dates { creation_timestamp, deletion_timestamp, managed_fields } = dated.metadata;
        let writes = managed_fields.into_iter().filter_map(|write| write.time);
        writes.chain(creation_timestamp).chain(deletion_timestamp)
    });
    dates.max()
}
