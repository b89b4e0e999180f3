//! From the objects of a request to the bodies of its records, in steps that each cost more than the one before: read
//! the metadata, take the base64 off, inflate.

use super::storing_kind::storing_kind;
use super::{Declaration, ManagedWrite, OverrideWrite, RecordChunk};
use crate::engine::json::redacted;
use crate::engine::release::record::Payload;
use crate::engine::release::{DecodeError, Status, Storage, Stored};
use crate::engine::review::{BadReview, Operation, Request};

/// The objects of a request, read only where they can be records, say to be managed by somebody, or declare releases.
#[derive(Debug, Default)]
pub struct RequestObjects<'a> {
    /// `None` when neither object is a record.
    pub storage: Option<Storage>,
    /// Whether the stored object is a record already: an update can turn an ordinary object into one.
    pub was_record: bool,
    /// The stored object.
    pub old: Option<Stored<'a>>,
    /// The object as it would be stored.
    pub new: Option<Stored<'a>>,
    /// What happens to an object that is no record and that somebody may manage.
    pub managed: Option<ManagedWrite<'a>>,
    /// A further part of a record that is deleted.
    pub part: Option<RecordChunk<'a>>,
    /// What happens to an object that declares releases.
    pub declaration: Option<Declaration<'a>>,
    /// What happens to an override.
    pub override_write: Option<OverrideWrite<'a>>,
}

impl<'a> RequestObjects<'a> {
    /// Reads the metadata of what may be a record, and of what bears marks of a manager; and what declares releases.
    ///
    /// # Errors
    /// When an object of the review has the wrong shape.
    pub fn read(request: &'a Request<'a>) -> Result<Self, BadReview> {
        let objects = Self::read_record(request)?;
        if objects.storage.is_some() {
            return Ok(objects);
        }
        let (managed, declaration) = (ManagedWrite::read(request)?, Declaration::read(request));
        let part = RecordChunk::read(request, objects.old.as_ref());
        let override_write = OverrideWrite::read(request)?;
        Ok(Self { managed, part, declaration, override_write, ..objects })
    }

    fn read_record(request: &'a Request<'a>) -> Result<Self, BadReview> {
        let Some(kind) = storing_kind(request) else {
            return Ok(Self::default());
        };
        let read = |object: Option<&'a serde_json::value::RawValue>| {
            let stored = object.map(Stored::read).transpose();
            stored.map_err(|error| BadReview::Malformed(format!("the {kind} does not read: {}", redacted(&error))))
        };
        let (old, new) = (read(request.old_object)?, read(request.object)?);
        let storage_of = |stored: &Option<Stored<'_>>| stored.as_ref().and_then(|stored| stored.storage(kind));
        let (before, after) = (storage_of(&old), storage_of(&new));
        Ok(Self { storage: before.or(after), was_record: before.is_some(), old, new, ..Self::default() })
    }

    /// Takes the base64 off the bodies that rules will read.
    #[must_use]
    pub fn payloads(&self, operation: Operation) -> Payloads {
        let Some(storage) = self.storage else {
            return Payloads::default();
        };
        let decode = |stored: &Stored<'_>| Payload::decode(storage, &stored.data);
        let unchanged = match (&self.old, &self.new) {
            (Some(old), Some(new)) => old.data == new.data,
            _ => false,
        };
        let wanted = |stored: &&Stored<'_>| operation != Operation::Delete || reads_deleted_body(stored);
        Payloads {
            old: self.old.as_ref().filter(wanted).map(decode),
            new: self.new.as_ref().filter(|_| !unchanged).map(decode),
            unchanged,
        }
    }
}

/// Bodies with their base64 off, not yet inflated.
#[derive(Debug, Default)]
pub struct Payloads {
    old: Option<Result<Payload, DecodeError>>,
    new: Option<Result<Payload, DecodeError>>,
    unchanged: bool,
}

impl Payloads {
    /// The memory that [`Self::inflate`] takes at most, in bytes.
    #[must_use]
    pub fn inflated_size(&self) -> usize {
        let size = |payload: &Option<Result<Payload, DecodeError>>| match payload {
            Some(Ok(payload)) => payload.inflated_size(),
            _ => 0,
        };
        size(&self.old) + size(&self.new)
    }

    /// Inflates the bodies.
    #[must_use]
    pub fn inflate(self) -> RecordBodies {
        let inflate = |payload: Result<Payload, DecodeError>| payload.and_then(Payload::inflate);
        RecordBodies { old: self.old.map(inflate), new: self.new.map(inflate), unchanged: self.unchanged }
    }

    /// Leaves the bodies unread, where there was no memory for them in time.
    #[must_use]
    pub fn unread(self) -> RecordBodies {
        RecordBodies { old: None, new: None, unchanged: self.unchanged }
    }
}

/// The JSON of the records of a request, which the facts borrow from.
#[derive(Debug, Default)]
pub struct RecordBodies {
    /// Of the stored object.
    pub old: Option<Result<Vec<u8>, DecodeError>>,
    /// Of the new object; absent when the payloads are equal.
    pub new: Option<Result<Vec<u8>, DecodeError>>,
    /// Whether the payload is the same before and after.
    pub unchanged: bool,
}

/// Whether a rule reads the body of a record that is deleted: pruning and purging delete many, and only the record of an
/// operation in flight is worth decoding.
fn reads_deleted_body(stored: &Stored<'_>) -> bool {
    let status = stored.metadata.label("status").and_then(|status| status.parse::<Status>().ok());
    status.is_some_and(Status::is_pending)
}
