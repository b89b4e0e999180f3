//! The marks with which other guards against deletion mark an object.

use memchr::memmem;

use crate::object::Metadata;
use crate::review::{Operation, Request};

/// Such a mark.
struct PeerMark {
    key: &'static str,
    is_label: bool,
    /// Whether the object stays with this value.
    protects: fn(&str) -> bool,
}

const PEER_MARKS: [PeerMark; 3] = [
    // OpenKruise. `Cascading` protects what still has children.
    PeerMark {
        key: "policy.kruise.io/delete-protection",
        is_label: true,
        protects: |value| ["Always", "Cascading"].contains(&value),
    },
    // Gardener refuses a deletion that is not confirmed. Objects that do not ask for one are without this mark.
    PeerMark { key: "confirmation.gardener.cloud/deletion", is_label: false, protects: |value| value != "true" },
    // Helm leaves such an object behind.
    PeerMark {
        key: "helm.sh/resource-policy",
        is_label: false,
        protects: |value| value.trim().eq_ignore_ascii_case("keep"),
    },
];

/// The mark that protects the object that a request deletes; `None` if it has none, or if its deletion has already begun.
pub(super) fn peer_mark(request: &Request<'_>) -> Option<&'static str> {
    let deleted = request.old_object.filter(|_| request.operation == Operation::Delete)?;
    let is_named = |mark: &PeerMark| memmem::find(deleted.get().as_bytes(), mark.key.as_bytes()).is_some();
    if !PEER_MARKS.iter().any(is_named) {
        return None;
    }
    let metadata = Metadata::of(deleted).ok().filter(|metadata| metadata.deletion_timestamp.is_none())?;
    let protects = |PeerMark { key, is_label, protects }: &PeerMark| {
        let value = if *is_label { metadata.label(key) } else { metadata.annotation(key) };
        value.is_some_and(protects)
    };
    PEER_MARKS.iter().find(|mark| protects(mark)).map(|mark| mark.key)
}
