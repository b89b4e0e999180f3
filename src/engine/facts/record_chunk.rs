//! The further parts of records that OLM cuts up.

use super::storing_kind::storing_kind;
use crate::engine::release::storage::OLM_CHUNK_TYPE;
use crate::engine::release::{RecordName, Stored};
use crate::engine::review::{Operation, Request};

/// A Secret with a further part of a record, which goes.
#[derive(Debug)]
pub struct RecordChunk<'r> {
    /// Its namespace.
    pub namespace: &'r str,
    /// Its name.
    pub name: String,
    /// The name of the Secret that lists it, as the operator-controller labels it.
    pub index: String,
    /// The release of that record.
    pub release: String,
    /// Whether it is on its way out already.
    pub being_deleted: bool,
}

impl<'r> RecordChunk<'r> {
    /// Reads the Secret that a request deletes; `None` where it is no part of a record. A part is immutable, so nothing
    /// else can be done to it.
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
