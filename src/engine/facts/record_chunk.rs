//! The further chunks of the records that OLM splits.

use super::storing_kind::storing_kind;
use crate::engine::release::storage::OLM_CHUNK_TYPE;
use crate::engine::release::{RecordName, Stored};
use crate::engine::review::{Operation, Request};

/// The deletion of a Secret with a further chunk of a record.
#[derive(Debug)]
pub struct RecordChunk<'r> {
    pub namespace: &'r str,
    pub name: String,
    /// The name of the Secret that lists the chunk, from the label of the operator-controller.
    pub index: String,
    pub release: String,
    /// Whether a deletion of the Secret has already started.
    pub being_deleted: bool,
}

impl<'r> RecordChunk<'r> {
    /// Reads the Secret that a request deletes; `None` if it is not a chunk. A chunk is immutable, so no other request
    /// can change it.
    pub(super) fn read(request: &'r Request<'r>, deleted: Option<&Stored<'_>>) -> Option<Self> {
        let deleted = deleted.filter(|it| it.secret_type.as_deref() == Some(OLM_CHUNK_TYPE))?;
        if request.operation != Operation::Delete || storing_kind(request) != Some("Secret") {
            return None;
        }
        let index = deleted.metadata.label("key")?;
        let record = index.parse::<RecordName>().ok()?;
        Some(Self {
            namespace: request.namespace(),
            name: deleted.metadata.name.to_string(),
            index: index.to_owned(),
            release: record.release.to_string(),
            being_deleted: deleted.metadata.deletion_timestamp.is_some(),
        })
    }
}
