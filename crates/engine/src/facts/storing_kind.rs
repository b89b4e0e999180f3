//! Which requests can be about a record.

use crate::release::RecordName;
use crate::review::Request;

/// The kind of the object of a request, if records are stored in objects of that kind.
#[must_use]
pub fn storing_kind<'r>(request: &'r Request<'_>) -> Option<&'r str> {
    let is_core_object = request.kind.group.is_empty() && request.sub_resource().is_none();
    let kind = request.kind.kind.as_ref();
    (is_core_object && matches!(kind, "Secret" | "ConfigMap")).then_some(kind)
}

/// The name of the object of a request, if it is the name of a Helm record.
#[must_use]
pub fn record_name(request: &Request<'_>) -> Option<RecordName> {
    storing_kind(request).and(request.name()).and_then(|name| name.parse().ok())
}
