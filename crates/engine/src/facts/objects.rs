//! The objects of a request and the bodies of its records. Three steps, from cheap to expensive: parse the metadata, decode the
//! base64, inflate.

use super::storing_kind::storing_kind;
use super::{Declaration, ManagedWrite, OwnWrite, RecordChunk};
use crate::effort::Effort;
use crate::json::{RawObject, redacted};
use crate::release::record::Payload;
use crate::release::{DecodeError, Status, Storage, Stored};
use crate::review::{BadReview, Operation, Request};

/// The objects of a request. An object is read only if it can be a record, names an owner, or declares releases.
#[derive(Debug, Default)]
pub struct RequestObjects<'a> {
    /// `None` if neither object is a record.
    pub storage: Option<Storage>,
    /// Whether the stored object is a record. An update can turn an ordinary object into one.
    pub was_record: bool,
    pub old: Option<Stored<'a>>,
    pub new: Option<Stored<'a>>,
    /// A write of an object with an owner that is not a record.
    pub managed: Option<ManagedWrite<'a>>,
    /// A write or the deletion of a further chunk of a record.
    pub chunk: Option<RecordChunk<'a>>,
    pub declaration: Option<Declaration<'a>>,
    pub own_write: Option<OwnWrite<'a>>,
}

impl<'a> RequestObjects<'a> {
    /// Reads the metadata of possible records and of objects with an owner, and the objects that declare releases.
    ///
    /// # Errors
    /// An object of the review has the wrong shape.
    pub fn read(request: &'a Request<'a>) -> Result<Self, BadReview> {
        // What it sends is stored nowhere.
        if request.operation == Operation::Connect {
            return Ok(Self::default());
        }
        let objects = Self::read_record(request)?;
        if objects.storage.is_some() {
            return Ok(objects);
        }
        let (managed, declaration) = (ManagedWrite::read(request)?, Declaration::read(request));
        let chunk = RecordChunk::read(request, objects.old.as_ref(), objects.new.as_ref());
        let own_write = OwnWrite::read(request)?;
        Ok(Self { managed, chunk, declaration, own_write, ..objects })
    }

    fn read_record(request: &'a Request<'a>) -> Result<Self, BadReview> {
        let Some(kind) = storing_kind(request) else {
            return Ok(Self::default());
        };
        let read = |object: Option<RawObject<'a>>| {
            let stored = object.map(Stored::read).transpose();
            stored.map_err(|error| BadReview::Malformed(format!("the {kind} cannot be parsed: {}", redacted(&error))))
        };
        let (old, new) = (read(request.old_object)?, read(request.object)?);
        let storage_of = |stored: &Option<Stored<'_>>| stored.as_ref().and_then(|stored| stored.storage(kind));
        let (before, after) = (storage_of(&old), storage_of(&new));
        Ok(Self { storage: before.or(after), was_record: before.is_some(), old, new, ..Self::default() })
    }

    /// Decodes the base64 of the bodies that rules will read.
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

/// The payloads of the records, not inflated yet.
#[derive(Debug, Default)]
pub struct Payloads {
    old: Option<Result<Payload, DecodeError>>,
    new: Option<Result<Payload, DecodeError>>,
    unchanged: bool,
}

impl Payloads {
    /// The maximum memory of the bodies, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.readable().map(Payload::memory).sum()
    }

    /// The maximum number of bytes of JSON that [`Self::inflate`] returns.
    #[must_use]
    pub fn inflated_size(&self) -> usize {
        self.readable().map(Payload::inflated_size).sum()
    }

    fn readable(&self) -> impl Iterator<Item = &Payload> {
        [&self.old, &self.new].into_iter().flatten().flatten()
    }

    /// Inflates the bodies.
    #[must_use]
    pub fn inflate(&self, effort: &Effort) -> RecordBodies {
        let inflate = |payload: &Result<Payload, DecodeError>| {
            payload.as_ref().map_err(DecodeError::clone).and_then(|payload| payload.inflate(effort))
        };
        let [old, new] = [&self.old, &self.new].map(|payload| payload.as_ref().map(inflate));
        RecordBodies { old, new, unchanged: self.unchanged }
    }

    /// Leaves the bodies unread, because the memory for them was not available in time.
    #[must_use]
    pub fn unread(&self) -> RecordBodies {
        RecordBodies { old: None, new: None, unchanged: self.unchanged }
    }
}

/// The bodies of the records of a request, as JSON. The facts borrow from it.
#[derive(Debug, Default)]
pub struct RecordBodies {
    pub old: Option<Result<Vec<u8>, DecodeError>>,
    /// Absent if the payloads are equal.
    pub new: Option<Result<Vec<u8>, DecodeError>>,
    /// Whether the payload is the same before and after.
    pub unchanged: bool,
}

/// Whether a rule reads the body of a deleted record. Pruning and purging delete many records, so only the body of an operation
/// in flight is decoded.
fn reads_deleted_body(stored: &Stored<'_>) -> bool {
    let status = stored.metadata.label("status").and_then(|status| status.parse::<Status>().ok());
    status.is_some_and(Status::is_pending)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::review::Review;

    /// Whether the object of a request declares something.
    fn is_declared(operation: &str) -> bool {
        let group = json!({"apiVersion": "lib.projectsveltos.io/v1beta1", "kind": "ConfigurationGroup", "metadata": {"name": "x"}});
        let text = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u", "operation": operation, "name": "x", "namespace": "shop", "object": group,
                "kind": {"group": "lib.projectsveltos.io", "version": "v1beta1", "kind": "ConfigurationGroup"},
                "resource": {"group": "lib.projectsveltos.io", "version": "v1beta1", "resource": "configurationgroups"},
                "userInfo": {"username": "alice"},
            },
        });
        let text = text.to_string();
        let review = Review::parse(text.as_bytes()).unwrap();
        RequestObjects::read(&review.request).unwrap().declaration.is_some()
    }

    #[test]
    fn a_connect_writes_nothing_whatever_it_sends() {
        assert!(is_declared("CREATE") && !is_declared("CONNECT"));
    }
}
