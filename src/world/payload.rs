//! The payload of a stored record, given the JSON text of its object, in one Secret or in several.

use crate::engine::json::redacted;
use crate::engine::release::record::{DecodeError, Payload, extra_chunks};
use crate::engine::release::{Storage, Stored};

/// The payload of a record.
pub(super) enum OpenedPayload {
    Whole(Payload),
    /// The first chunk of a record that OLM split, and the names of the Secrets with the other chunks, in order.
    Chunked {
        first: String,
        others: Vec<String>,
    },
}

/// Extracts the payload from the object of a record.
pub(super) fn open(storage: Storage, text: &str) -> Result<OpenedPayload, DecodeError> {
    let index = parse(text)?;
    match Payload::decode(storage, &index.data) {
        Err(DecodeError::Chunked) => Ok(OpenedPayload::Chunked {
            first: index.data.chunk.as_deref().unwrap_or_default().to_owned(),
            others: extra_chunks(&index.data)?,
        }),
        opened => opened.map(OpenedPayload::Whole),
    }
}

/// The chunk in a Secret.
pub(super) fn chunk(text: &str) -> Result<String, DecodeError> {
    parse(text)?.data.chunk.map(std::borrow::Cow::into_owned).ok_or(DecodeError::Missing)
}

/// The message for a record that cannot be decoded.
pub(super) fn undecodable(namespace: &str, object: &str, error: &DecodeError) -> String {
    format!("the record {namespace}/{object} cannot be decoded: {error}")
}

fn parse(text: &str) -> Result<Stored<'_>, DecodeError> {
    serde_json::from_str(text).map_err(|error| DecodeError::Json(redacted(&error)))
}
