//! The change to an object of Interlock's own kinds.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::freeze_resource;
use crate::json::{first_at, redacted};
use crate::object::Metadata;
use crate::release_override::{self, GROUP, NONCE, OverrideSpec, PROBE, is_nonce};
use crate::review::{BadReview, Operation, Request};

/// A created or updated object. The mutating half stamps its creator.
#[derive(Debug)]
pub struct OwnWrite<'r> {
    pub namespace: &'r str,
    /// `None` on CREATE.
    pub before: Option<Metadata<'r>>,
    pub after: Metadata<'r>,
    pub is_dry_run: bool,
    pub spec: OwnSpec<'r>,
}

/// The specification of an object, or why it cannot be parsed.
#[derive(Debug)]
pub enum OwnSpec<'r> {
    Override(Result<OverrideSpec, String>),
    /// As JSON text, for the checks of policy files.
    Freeze(Result<&'r str, String>),
}

impl<'r> OwnWrite<'r> {
    /// Reads the object of a request; `None` if it is of another kind.
    ///
    /// # Errors
    /// Its metadata has the wrong shape.
    pub(super) fn read(request: &'r Request<'r>) -> Result<Option<Self>, BadReview> {
        let Some(after) = request.object.filter(|_| writes_own(request)) else {
            return Ok(None);
        };
        let kind = request.kind.kind.as_ref();
        let metadata = |object| {
            let read = Metadata::of(object);
            read.map_err(|error| {
                BadReview::Malformed(format!("the metadata of the {kind} cannot be parsed: {}", redacted(&error)))
            })
        };
        let spec = if kind == release_override::KIND {
            OwnSpec::Override(spec_of(after.get()))
        } else {
            OwnSpec::Freeze(spec_of::<&RawValue>(after.get()).map(RawValue::get))
        };
        Ok(Some(Self {
            namespace: request.namespace(),
            before: request.old_object.map(metadata).transpose()?,
            after: metadata(after)?,
            is_dry_run: request.dry_run.unwrap_or_default(),
            spec,
        }))
    }

    /// The kind of the object.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.spec {
            OwnSpec::Override(_) => release_override::KIND,
            OwnSpec::Freeze(_) => freeze_resource::KIND,
        }
    }

    /// The nonce of a probe: a dry-run creation of an override, which tests whether its review arrives. Nothing is stored, so a
    /// probe from any user is answered.
    #[must_use]
    pub fn probe(&self) -> Option<&str> {
        let is_override = matches!(self.spec, OwnSpec::Override(_));
        let is_probe = is_override && self.is_dry_run && self.before.is_none() && self.after.label(PROBE).is_some();
        self.after.annotation(NONCE).filter(|nonce| is_probe && is_nonce(nonce))
    }
}

fn spec_of<'r, T: Deserialize<'r>>(object: &'r str) -> Result<T, String> {
    let spec: Result<Option<T>, _> = first_at(object, &["spec"]);
    spec.map_err(|error| error.to_string()).and_then(|spec| spec.ok_or("it has no spec".to_owned()))
}

/// Whether a request creates or updates an object of Interlock's own kinds, which may be unread.
pub(crate) fn writes_own(request: &Request<'_>) -> bool {
    let kind = request.kind.kind.as_ref();
    let is_own = request.kind.group == GROUP && [release_override::KIND, freeze_resource::KIND].contains(&kind);
    let written = matches!(request.operation, Operation::Create | Operation::Update);
    is_own && written && request.sub_resource().is_none()
}
