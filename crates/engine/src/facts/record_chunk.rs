//! The additional parts of records that OLM splits. They are Secrets, which the index of a record lists.

use super::storing_kind::storing_kind;
use crate::release::Stored;
use crate::review::{Operation, Request};

/// A write or the deletion of a Secret with an additional part of a record.
#[derive(Debug)]
pub struct RecordChunk<'r> {
    pub namespace: &'r str,
    pub name: String,
    /// The names of the records that may list the Secret.
    pub indexes: Vec<String>,
    pub release: String,
    pub change: ChunkChange,
}

/// What happens to a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChunkChange {
    Created,
    /// The first changed property that OLM depends on, and its pointer: `the label key`. These are the content, the labels by
    /// which OLM finds the part, its owner and its finalizers. Labels and annotations that OLM does not read may change.
    Updated(Option<(&'static str, &'static str)>),
    Deleted {
        /// Whether a deletion of the Secret has already started.
        already: bool,
    },
}

impl<'r> RecordChunk<'r> {
    /// Reads the Secret of a request; `None` if it is not a part, before or after.
    pub(super) fn read(request: &'r Request<'r>, old: Option<&Stored<'_>>, new: Option<&Stored<'_>>) -> Option<Self> {
        if storing_kind(request) != Some("Secret") {
            return None;
        }
        // The stored labels and name come first, because an update can hide the part.
        let mut indexes: Vec<_> = [old, new].into_iter().flatten().flat_map(Stored::indexes_of_chunk).collect();
        indexes.dedup();
        let release = indexes.first()?.release.to_string();
        let change = match (request.operation, old, new) {
            (Operation::Create, _, Some(_)) => ChunkChange::Created,
            (Operation::Update, Some(old), Some(new)) => ChunkChange::Updated(changed(old, new)),
            (Operation::Delete, Some(old), _) => {
                ChunkChange::Deleted { already: old.metadata.deletion_timestamp.is_some() }
            }
            _ => return None,
        };
        let name = request.name().map(str::to_owned);
        let name = name.or_else(|| Some(old.or(new)?.metadata.name.to_string()))?;
        let indexes = indexes.iter().map(ToString::to_string).collect();
        Some(Self { namespace: request.namespace(), name, indexes, release, change })
    }
}

fn changed(old: &Stored<'_>, new: &Stored<'_>) -> Option<(&'static str, &'static str)> {
    let relabelled = |key: &str| old.metadata.label(key) != new.metadata.label(key);
    // The API server encodes equal lists the same way.
    let bound = new.metadata.finalizers.is_some() && old.metadata.finalizers != new.metadata.finalizers;
    let changes = [
        (old.data != new.data, ("the data", "/data")),
        (relabelled("owner"), ("the label owner", "/metadata/labels/owner")),
        (relabelled("key"), ("the label key", "/metadata/labels/key")),
        (relabelled("type"), ("the label type", "/metadata/labels/type")),
        (old.metadata.owner_references != new.metadata.owner_references, ("the owner", "/metadata/ownerReferences")),
        (bound, ("the finalizers", "/metadata/finalizers")),
    ];
    changes.into_iter().find_map(|(changes, what)| changes.then_some(what))
}
