//! What a request itself says: actor, release, operation, change. Uses neither policy nor cluster.

mod actor;
mod added;
mod change;
mod managed;
mod objects;
mod own_write;
mod peer_mark;
mod record_chunk;
mod record_id;
mod storing_kind;

pub use crate::owners::declaration::{Declaration, DeclarationWrite, DefinitionDeletion, Namespace};
pub(crate) use actor::may_be_platform;
pub use actor::{Actor, ActorKind, Session, SharedHolder};
pub(crate) use added::{adds_finalizer, adds_owner};
pub use change::{RecordBody, RecordChange, RecordVersion, RecordWrite};
pub use managed::{EditedObject, ManagedWrite, ObjectChange};
pub use objects::{Payloads, RecordBodies, RequestObjects};
pub(crate) use own_write::writes_own;
pub use own_write::{OwnSpec, OwnWrite};
pub use record_chunk::{ChunkChange, RecordChunk};
pub use record_id::RecordId;
pub use storing_kind::{record_name, storing_kind};

use super::effort::Effort;
use super::release::ReleaseRef;
use super::review::{Operation, Request};

/// The facts of a request.
#[derive(Debug)]
pub struct Facts<'r> {
    pub operation: Operation,
    pub actor: Actor<'r>,
    /// Whether this is one object of a collection delete. Only such a delete has no name.
    pub collection: bool,
    pub subject: Subject<'r>,
    /// The owner that the object names, and the change to the object.
    pub managed: Option<&'r ManagedWrite<'r>>,
    /// The mark of another guard that protects the deleted object.
    pub peer_mark: Option<&'static str>,
    /// The remaining budget of the review.
    pub effort: &'r Effort,
}

/// The object of a request.
#[derive(Debug)]
pub enum Subject<'r> {
    /// A record: its release, and the change to it.
    Record(RecordId, Box<RecordChange<'r>>),
    /// A write or the deletion of a further chunk of a record.
    RecordChunk(&'r RecordChunk<'r>),
    /// An object that declares a release.
    Declaration(&'r Declaration<'r>),
    /// An override or a Freeze, which no rule judges.
    Own(&'r OwnWrite<'r>),
    /// Any other object.
    Other,
}

impl<'r> Facts<'r> {
    /// Collects the facts from a request, its objects and their inflated bodies.
    #[must_use]
    pub fn of(
        request: &'r Request<'r>,
        objects: &'r RequestObjects<'r>,
        bodies: &'r RecordBodies,
        effort: &'r Effort,
    ) -> Self {
        let record = objects.storage.and_then(|storage| {
            let change = RecordChange::of(request.operation, objects, bodies, effort)?;
            Some(Subject::Record(RecordId::of(storage, request, change.latest()), Box::new(change)))
        });
        let chunk = objects.chunk.as_ref().map(Subject::RecordChunk);
        let declaration = objects.declaration.as_ref().map(Subject::Declaration);
        let own = objects.own_write.as_ref().map(Subject::Own);
        Self {
            operation: request.operation,
            actor: Actor::of(&request.user_info),
            collection: request.operation == Operation::Delete && request.name().is_none(),
            subject: record.or(chunk).or(declaration).or(own).unwrap_or(Subject::Other),
            managed: objects.managed.as_ref(),
            peer_mark: peer_mark::peer_mark(request),
            effort,
        }
    }

    /// The record of the request, and the change to it.
    #[must_use]
    pub fn record(&self) -> Option<(&RecordId, &RecordChange<'r>)> {
        match &self.subject {
            Subject::Record(id, change) => Some((id, change.as_ref())),
            Subject::RecordChunk(_) | Subject::Declaration(_) | Subject::Own(_) | Subject::Other => None,
        }
    }

    /// The namespace of the object; `None` if it has none, or if no rule concerns the object.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        let namespace = match (&self.subject, self.managed) {
            (Subject::Record(id, _), _) => id.namespace.as_str(),
            (Subject::RecordChunk(chunk), _) => chunk.namespace,
            (Subject::Own(write), _) => write.namespace,
            (_, Some(write)) => write.namespace.as_str(),
            (Subject::Declaration(declaration), None) => declaration.namespace(),
            (Subject::Other, None) => "",
        };
        Some(namespace).filter(|namespace| !namespace.is_empty())
    }

    /// The release that the request names by itself.
    #[must_use]
    pub fn release(&self) -> Option<ReleaseRef> {
        match &self.subject {
            Subject::Record(id, _) => Some(ReleaseRef::new(&id.namespace, &id.release)),
            Subject::RecordChunk(chunk) => Some(ReleaseRef::new(chunk.namespace, &chunk.release)),
            Subject::Declaration(declaration) => declaration.release_ref(),
            Subject::Own(write) => match &write.spec {
                OwnSpec::Override(Ok(spec)) => Some(ReleaseRef::new(write.namespace, &spec.release)),
                OwnSpec::Override(Err(_)) | OwnSpec::Freeze(_) => None,
            },
            Subject::Other => self.managed.and_then(ManagedWrite::release),
        }
    }

    /// The release that the stored object stands for. A declaration can change to another release.
    #[must_use]
    pub fn former_release(&self) -> Option<ReleaseRef> {
        match &self.subject {
            Subject::Declaration(declaration) => declaration.former_release(),
            _ => None,
        }
    }

    /// The record before and after, if the request creates or updates one.
    #[must_use]
    pub fn record_write(&self) -> Option<RecordWrite<'_>> {
        self.record().and_then(|(_, change)| change.write())
    }
}
