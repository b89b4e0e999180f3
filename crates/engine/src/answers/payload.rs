//! The payload of a stored record, from the JSON text of one Secret or of several.

use std::borrow::Cow;

use crate::json::redacted;
use crate::release::record::{DecodeError, Payload, extra_chunks};
use crate::release::{Storage, Stored};

/// The payload of a record.
pub enum OpenedPayload {
    Whole(Payload),
    /// The first chunk of a record that OLM split, and the names of the Secrets with the other chunks, in order.
    Chunked {
        first: String,
        others: Vec<String>,
    },
}

/// Extracts the payload from the object of a record.
pub fn open(storage: Storage, text: &str) -> Result<OpenedPayload, DecodeError> {
    let index = parse(text)?;
    match Payload::decode(storage, &index.data) {
        Err(DecodeError::Chunked) => Ok(OpenedPayload::Chunked {
            first: index.data.chunk.as_deref().unwrap_or_default().to_owned(),
            others: extra_chunks(&index.data)?,
        }),
        opened => opened.map(OpenedPayload::Whole),
    }
}

/// The payload of a record in several Secrets: the first chunk, and the other Secrets by name, in order. The text is
/// `None` if a Secret does not exist.
pub fn join(first: String, others: Vec<(String, Option<String>)>) -> Result<Payload, DecodeError> {
    let (mut chunks, mut missing) = (vec![first], Vec::new());
    for (name, text) in others {
        match text {
            Some(text) => chunks.push(parse(&text)?.data.chunk.map(Cow::into_owned).ok_or(DecodeError::Missing)?),
            None => missing.push(name),
        }
    }
    if missing.is_empty() {
        Payload::join(chunks.iter().map(String::as_str))
    } else {
        Err(DecodeError::MissingChunks(missing))
    }
}

/// The message for a record that cannot be decoded.
pub fn undecodable(namespace: &str, object: &str, error: &DecodeError) -> String {
    format!("the record {namespace}/{object} cannot be decoded: {error}")
}

fn parse(text: &str) -> Result<Stored<'_>, DecodeError> {
    serde_json::from_str(text).map_err(|error| DecodeError::Json(redacted(&error)))
}
