//! Which release a record belongs to.

use super::change::RecordSide;
use crate::engine::release::{RecordName, Revision, Storage};
use crate::engine::review::Request;

/// A record and the release it belongs to. A release is known by the namespace of its records and its name: the
/// namespace in the body is where its objects go, which may be another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// How the record is stored.
    pub storage: Storage,
    /// The namespace of the record.
    pub namespace: String,
    /// The object's name.
    pub object: String,
    /// The release, from the object's name; from the label where the name is not a record's.
    pub release: String,
    /// The revision, likewise.
    pub revision: Option<Revision>,
}

impl Target {
    pub(super) fn of(storage: Storage, request: &Request<'_>, side: &RecordSide<'_>) -> Self {
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
