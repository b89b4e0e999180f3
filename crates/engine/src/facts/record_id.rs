//! The release of a record.

use super::change::RecordVersion;
use crate::release::{RecordName, Revision, Storage};
use crate::review::Request;

/// A record and its release. A release is identified by the namespace of the records and its name. The namespace in the body is
/// that of the release's objects, and may differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordId {
    pub storage: Storage,
    pub namespace: String,
    pub object: String,
    /// From the object's name, or from the label if the object does not have the name of a record.
    pub release: String,
    /// From the same source.
    pub revision: Option<Revision>,
}

impl RecordId {
    pub(super) fn of(storage: Storage, request: &Request<'_>, side: &RecordVersion<'_>) -> Self {
        let metadata = &side.stored.metadata;
        let object = request.name().unwrap_or(&metadata.name).to_owned();
        let (release, revision) = match object.parse::<RecordName>() {
            Ok(name) => (name.release.as_str().to_owned(), Some(name.revision)),
            Err(_) => (
                metadata.label("name").unwrap_or_default().to_owned(),
                metadata.label("version").and_then(|version| version.parse().ok()),
            ),
        };
        Self { storage, namespace: request.namespace().to_owned(), object, release, revision }
    }
}
