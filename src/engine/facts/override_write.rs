//! What happens to a ReleaseOverride.

use crate::engine::json::{first_at, unquoted};
use crate::engine::object::Metadata;
use crate::engine::release_override::{GROUP, KIND, OverrideSpec};
use crate::engine::review::{BadReview, Operation, Request};

/// A ReleaseOverride that is made or written again.
#[derive(Debug)]
pub struct OverrideWrite<'r> {
    /// Its namespace.
    pub namespace: &'r str,
    /// Its metadata before; `None` on CREATE.
    pub before: Option<Metadata<'r>>,
    /// Its metadata after.
    pub after: Metadata<'r>,
    /// What it asks for, or what of that does not read.
    pub spec: Result<OverrideSpec, String>,
}

impl<'r> OverrideWrite<'r> {
    /// Reads the object of a request; `None` where it is about something else.
    ///
    /// # Errors
    /// When its metadata have the wrong shape.
    pub(super) fn read(request: &'r Request<'r>) -> Result<Option<Self>, BadReview> {
        let ours = (request.kind.group.as_ref(), request.kind.kind.as_ref()) == (GROUP, KIND);
        let written = matches!(request.operation, Operation::Create | Operation::Update);
        let Some(after) = request.object.filter(|_| ours && written && request.sub_resource().is_none()) else {
            return Ok(None);
        };
        let metadata = |object| {
            let read = Metadata::of(object);
            read.map_err(|error| {
                BadReview::Malformed(format!("the metadata of the {KIND} do not read: {}", unquoted(&error)))
            })
        };
        let spec: Result<Option<OverrideSpec>, _> = first_at(after.get().as_bytes(), &["spec"]);
        let spec = spec.map_err(|error| error.to_string()).and_then(|spec| spec.ok_or("it has no spec".to_owned()));
        Ok(Some(Self {
            namespace: request.namespace(),
            before: request.old_object.map(metadata).transpose()?,
            after: metadata(after)?,
            spec,
        }))
    }
}
