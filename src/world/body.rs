//! The payload of a stored record, given the JSON text of its object, in one Secret or in several.

use crate::engine::json::redacted;
use crate::engine::release::record::{DecodeError, Payload, extra_chunks};
use crate::engine::release::{Storage, Stored};

/// What the object of a record holds.
pub(super) enum Opened {
    /// All of it.
    Whole(Payload),
    /// The first part of a record that OLM cut up, and the names of the Secrets with the others, in order.
    Parts { first: String, others: Vec<String> },
}

/// Opens the object of a record.
pub(super) fn open(storage: Storage, text: &str) -> Result<Opened, DecodeError> {
    let index = read(text)?;
    match Payload::decode(storage, &index.data) {
        Err(DecodeError::Chunked) => Ok(Opened::Parts {
            first: index.data.chunk.as_deref().unwrap_or_default().to_owned(),
            others: extra_chunks(&index.data)?,
        }),
        opened => opened.map(Opened::Whole),
    }
}

/// The further part that a chunk Secret holds.
pub(super) fn part(text: &str) -> Result<String, DecodeError> {
    read(text)?.data.chunk.map(std::borrow::Cow::into_owned).ok_or(DecodeError::Missing)
}

/// What to say of a record that cannot be read.
pub(super) fn broken(namespace: &str, object: &str, error: &DecodeError) -> String {
    format!("the record {namespace}/{object} does not decode: {error}")
}

fn read(text: &str) -> Result<Stored<'_>, DecodeError> {
    serde_json::from_str(text).map_err(|error| DecodeError::Json(redacted(&error)))
}
