//! The change to a ReleaseOverride.

use crate::engine::json::{first_at, redacted};
use crate::engine::object::Metadata;
use crate::engine::release_override::{GROUP, KIND, NONCE, OverrideSpec, PROBE, is_nonce};
use crate::engine::review::{BadReview, Operation, Request};

/// A ReleaseOverride that is created or updated.
#[derive(Debug)]
pub struct OverrideWrite<'r> {
    pub namespace: &'r str,
    /// `None` on CREATE.
    pub before: Option<Metadata<'r>>,
    pub after: Metadata<'r>,
    pub is_dry_run: bool,
    /// The specification, or why it cannot be parsed.
    pub spec: Result<OverrideSpec, String>,
}

impl<'r> OverrideWrite<'r> {
    /// Reads the object of a request; `None` if it is not a ReleaseOverride.
    ///
    /// # Errors
    /// Its metadata has the wrong shape.
    pub(super) fn read(request: &'r Request<'r>) -> Result<Option<Self>, BadReview> {
        let Some(after) = request.object.filter(|_| writes_override(request)) else {
            return Ok(None);
        };
        let metadata = |object| {
            let read = Metadata::of(object);
            read.map_err(|error| {
                BadReview::Malformed(format!("the metadata of the {KIND} cannot be parsed: {}", redacted(&error)))
            })
        };
        let spec: Result<Option<OverrideSpec>, _> = first_at(after.get(), &["spec"]);
        let spec = spec.map_err(|error| error.to_string()).and_then(|spec| spec.ok_or("it has no spec".to_owned()));
        Ok(Some(Self {
            namespace: request.namespace(),
            before: request.old_object.map(metadata).transpose()?,
            after: metadata(after)?,
            is_dry_run: request.dry_run.unwrap_or_default(),
            spec,
        }))
    }

    /// The nonce of a probe: a dry run that is created only to see whether its review arrives. Nothing is stored, so it is answered
    /// whoever sends it.
    #[must_use]
    pub fn probe(&self) -> Option<&str> {
        let is_probe = self.is_dry_run && self.before.is_none() && self.after.label(PROBE).is_some();
        self.after.annotation(NONCE).filter(|nonce| is_probe && is_nonce(nonce))
    }
}

/// Whether a request creates or updates a ReleaseOverride, whose object may be unread.
pub(crate) fn writes_override(request: &Request<'_>) -> bool {
    let ours = (request.kind.group.as_ref(), request.kind.kind.as_ref()) == (GROUP, KIND);
    let written = matches!(request.operation, Operation::Create | Operation::Update);
    ours && written && request.sub_resource().is_none()
}
