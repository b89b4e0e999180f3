//! The change to a record.

use std::sync::OnceLock;

use super::actor::Actor;
use super::objects::{RecordBodies, RequestObjects};
use crate::effort::Effort;
use crate::release::manifest::WorkloadRef;
use crate::release::record::{Difference, Hooks, chart_at_start, differences};
use crate::release::{DecodeError, Record, Stamps, Status, Storage, Stored};
use crate::review::Operation;

/// A record before or after the request.
#[derive(Debug)]
pub struct RecordVersion<'r> {
    pub stored: &'r Stored<'r>,
    pub body: RecordBody<'r>,
    /// The workloads in the manifest, or why they are unknown. Computed only if a rule needs them, and only once.
    pub workloads: OnceLock<Result<Vec<WorkloadRef>, String>>,
    hooks: OnceLock<Option<Hooks>>,
}

/// The body of a record, if it was read.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a review has two at most, and they are boxed with their change")]
pub enum RecordBody<'r> {
    /// The body can be decoded.
    Read(Record<'r>),
    /// The body cannot be decoded.
    Broken(DecodeError),
    /// No rule needs it in this request.
    Unread,
}

impl<'r> RecordBody<'r> {
    fn of(bytes: Option<&'r Result<Vec<u8>, DecodeError>>, effort: &Effort) -> Self {
        match bytes {
            None => Self::Unread,
            Some(Err(error)) => Self::Broken(error.clone()),
            Some(Ok(json)) => Record::read(json, effort).map_or_else(Self::Broken, Self::Read),
        }
    }
}

impl<'r> RecordVersion<'r> {
    /// A record with its body.
    #[must_use]
    pub fn of(stored: &'r Stored<'r>, body: RecordBody<'r>) -> Self {
        Self { stored, body, workloads: OnceLock::new(), hooks: OnceLock::new() }
    }

    /// The body, if it can be decoded.
    #[must_use]
    pub fn record(&self) -> Option<&Record<'_>> {
        match &self.body {
            RecordBody::Read(record) => Some(record),
            RecordBody::Broken(_) | RecordBody::Unread => None,
        }
    }

    /// The status in the label.
    #[must_use]
    pub fn label_status(&self) -> Option<Status> {
        self.stored.metadata.label("status").and_then(|status| status.parse().ok())
    }

    /// The status in the body, which Helm uses, or the status in the label if the body was not read.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        self.record().map_or_else(|| self.label_status(), |record| record.info.status.parse().ok())
    }

    /// `name-version` of the chart, if the body can be decoded. For a record in several Secrets the first chunk is enough if the
    /// chart has a name. The name of a bundle is at the end of the record.
    #[must_use]
    pub fn chart(&self) -> Option<String> {
        match &self.body {
            RecordBody::Read(record) => record.chart(),
            RecordBody::Broken(DecodeError::Chunked) => chart_at_start(Storage::Index, &self.stored.data),
            RecordBody::Broken(_) | RecordBody::Unread => None,
        }
    }

    /// The namespace of the release's objects: from the body, or from the stamp if the body was not read.
    #[must_use]
    pub fn target_namespace(&self) -> Option<String> {
        let stamped = || self.stamps().target_namespace().map(str::to_owned);
        let namespace = self.record().map(|record| record.namespace.to_string()).or_else(stamped);
        namespace.filter(|namespace| !namespace.is_empty())
    }

    /// The hooks, parsed once for the stamps and all steps of a decision. `None` if they cannot be compared, or if the body was
    /// not read.
    pub fn hooks(&self, effort: &Effort) -> Option<&Hooks> {
        self.hooks.get_or_init(|| self.record()?.hooks(effort)).as_ref()
    }

    /// Whether the record says that Flux has unlocked it.
    #[must_use]
    pub fn is_unlocked_by_controller(&self) -> bool {
        self.record().is_some_and(|record| record.info.description.starts_with("Release unlocked from stale "))
    }

    /// The stamps on the object.
    #[must_use]
    pub fn stamps(&self) -> Stamps {
        Stamps::of(|key| self.stored.metadata.annotation(key).map(str::to_owned))
    }
}

/// The change to a record.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one a review, and it is boxed as a whole")]
pub enum RecordChange<'r> {
    /// A CREATE, or an UPDATE that turns an ordinary object into a record.
    Created(RecordVersion<'r>),
    /// An UPDATE of a record.
    Updated {
        before: RecordVersion<'r>,
        after: RecordVersion<'r>,
        /// Whether the payload is the same, byte by byte.
        same_payload: bool,
        /// Computed once: it is the most expensive part of a decision, and a decision has several steps.
        differences: OnceLock<Vec<Difference>>,
    },
    /// A DELETE.
    Deleted(RecordVersion<'r>),
}

/// A record that is written, and the record before it.
#[derive(Debug, Clone, Copy)]
pub struct RecordWrite<'c> {
    /// `None` if the record is created.
    pub before: Option<&'c RecordVersion<'c>>,
    pub after: &'c RecordVersion<'c>,
    /// Whether the payload stays the same, byte by byte.
    pub same_payload: bool,
}

impl RecordWrite<'_> {
    /// Whether this user starts an operation: creates a pending record, marks a record as uninstalling, or takes over the
    /// uninstall of another user.
    #[must_use]
    pub fn starts(&self, actor: Actor<'_>) -> bool {
        let after = self.after.status();
        match self.before {
            None => after.is_some_and(Status::is_pending),
            // Replacing every Secret with itself, to encrypt it again, is not an uninstall.
            Some(before) if before.status() == after => {
                after == Some(Status::Uninstalling) && !self.same_payload && !actor.holds(&before.stamps())
            }
            Some(_) => after == Some(Status::Uninstalling),
        }
    }

    /// Whether the write newly marks the release as uninstalling or uninstalled. The label counts as well as the body, because
    /// records are listed by it.
    #[must_use]
    pub fn uninstalls(&self) -> bool {
        let is_uninstall = |status: Option<Status>| matches!(status, Some(Status::Uninstalling | Status::Uninstalled));
        let marked = |side: &RecordVersion<'_>| is_uninstall(side.status()) || is_uninstall(side.label_status());
        marked(self.after) && !self.before.is_some_and(marked)
    }

    /// Whether an operation ends: the record is at rest after the write.
    #[must_use]
    pub fn ends(&self) -> bool {
        let in_flight = |side: &RecordVersion<'_>| side.status().is_some_and(Status::is_in_flight);
        self.before.is_some_and(in_flight) && self.after.status().is_some() && !in_flight(self.after)
    }
}

impl<'r> RecordChange<'r> {
    pub(super) fn of(
        operation: Operation,
        objects: &'r RequestObjects<'r>,
        bodies: &'r RecordBodies,
        effort: &Effort,
    ) -> Option<Self> {
        let old =
            objects.old.as_ref().map(|stored| RecordVersion::of(stored, RecordBody::of(bodies.old.as_ref(), effort)));
        let new = objects.new.as_ref().map(|stored| {
            let body = match (&old, bodies.unchanged) {
                (Some(old), true) => old.body.clone(),
                _ => RecordBody::of(bodies.new.as_ref(), effort),
            };
            RecordVersion::of(stored, body)
        });
        match (operation, old, new) {
            (Operation::Create, _, Some(new)) => Some(Self::Created(new)),
            (Operation::Update, Some(_), Some(new)) if !objects.was_record => Some(Self::Created(new)),
            (Operation::Update, Some(before), Some(after)) => {
                Some(Self::Updated { before, after, same_payload: bodies.unchanged, differences: OnceLock::new() })
            }
            (Operation::Delete, Some(old), _) => Some(Self::Deleted(old)),
            _ => None,
        }
    }

    /// The record as it would be stored, or as it was before the deletion.
    #[must_use]
    pub fn latest(&self) -> &RecordVersion<'r> {
        match self {
            Self::Created(side) | Self::Deleted(side) | Self::Updated { after: side, .. } => side,
        }
    }

    /// The differences in the content that must never change. Empty unless the request is an update and both bodies can be
    /// decoded.
    #[must_use]
    pub fn differences(&self, effort: &Effort) -> &[Difference] {
        match self {
            Self::Updated { before, after, differences: found, .. } => {
                found.get_or_init(|| match (before.record(), after.record()) {
                    (Some(old), Some(new)) => differences(old, new, effort),
                    _ => Vec::new(),
                })
            }
            Self::Created(_) | Self::Deleted(_) => &[],
        }
    }

    /// Whether the request creates the record.
    #[must_use]
    pub fn is_creation(&self) -> bool {
        matches!(self, Self::Created(_))
    }

    /// The record before and after, unless it is deleted.
    #[must_use]
    pub fn write(&self) -> Option<RecordWrite<'_>> {
        match self {
            Self::Created(after) => Some(RecordWrite { before: None, after, same_payload: false }),
            Self::Updated { before, after, same_payload, .. } => {
                Some(RecordWrite { before: Some(before), after, same_payload: *same_payload })
            }
            Self::Deleted(_) => None,
        }
    }
}
