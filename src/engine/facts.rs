//! What a request says by itself: actor, release, operation, what changed. No policy, no cluster.

mod actor;
mod change;
mod declaration;
mod managed;
mod objects;
mod override_write;
mod record_chunk;
mod storing_kind;
mod target;

pub use actor::{Actor, ActorKind};
pub use change::{RecordBody, RecordChange, RecordSide, RecordWrite};
pub use declaration::{Declaration, DeclarationWrite};
pub use managed::{EditedObject, ManagedWrite, ObjectChange};
pub use objects::{Payloads, RecordBodies, RequestObjects};
pub use override_write::OverrideWrite;
pub use record_chunk::RecordChunk;
pub use storing_kind::storing_kind;
pub use target::Target;

use super::release::ReleaseRef;
use super::review::{Operation, Request};

/// The facts of one request.
#[derive(Debug)]
pub struct Facts<'r> {
    /// What is being done.
    pub operation: Operation,
    /// Who does it.
    pub actor: Actor<'r>,
    /// Whether this is one object of a collection delete: the only deletes without a name.
    pub collection: bool,
    /// What it is done to.
    pub subject: Subject<'r>,
    /// Whom the object says to belong to, and what it loses.
    pub managed: Option<&'r ManagedWrite<'r>>,
}

/// What a request is about.
#[derive(Debug)]
pub enum Subject<'r> {
    /// A record: which release it belongs to, and what happens to it.
    Record(Target, Box<RecordChange<'r>>),
    /// A further part of a record, which goes.
    RecordChunk(&'r RecordChunk<'r>),
    /// An object in which somebody declares what is to be released.
    Declaration(&'r Declaration<'r>),
    /// An override of rules, which no rule judges.
    Override(&'r OverrideWrite<'r>),
    /// Any other object.
    Other,
}

impl<'r> Facts<'r> {
    /// Puts the facts together from a request, its objects and their opened bodies.
    #[must_use]
    pub fn of(request: &'r Request<'r>, objects: &'r RequestObjects<'r>, bodies: &'r RecordBodies) -> Self {
        let record = objects.storage.and_then(|storage| {
            let change = RecordChange::of(request.operation, objects, bodies)?;
            Some(Subject::Record(Target::of(storage, request, change.latest()), Box::new(change)))
        });
        let part = objects.part.as_ref().map(Subject::RecordChunk);
        let declaration = objects.declaration.as_ref().map(Subject::Declaration);
        let overriding = objects.override_write.as_ref().map(Subject::Override);
        Self {
            operation: request.operation,
            actor: Actor::of(&request.user_info),
            collection: request.operation == Operation::Delete && request.name().is_none(),
            subject: record.or(part).or(declaration).or(overriding).unwrap_or(Subject::Other),
            managed: objects.managed.as_ref(),
        }
    }

    /// The record that the request is about, and what happens to it.
    #[must_use]
    pub fn record(&self) -> Option<(&Target, &RecordChange<'r>)> {
        match &self.subject {
            Subject::Record(target, change) => Some((target, change.as_ref())),
            Subject::RecordChunk(_) | Subject::Declaration(_) | Subject::Override(_) | Subject::Other => None,
        }
    }

    /// The namespace of what the request is about; `None` where that is in none, or none of our business.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        let namespace = match (&self.subject, self.managed) {
            (Subject::Record(target, _), _) => target.namespace.as_str(),
            (Subject::RecordChunk(part), _) => part.namespace,
            (Subject::Override(write), _) => write.namespace,
            (_, Some(write)) => write.namespace.as_str(),
            (Subject::Declaration(declaration), None) => declaration.namespace(),
            (Subject::Other, None) => "",
        };
        Some(namespace).filter(|namespace| !namespace.is_empty())
    }

    /// The release that the request is about, as far as it tells by itself.
    #[must_use]
    pub fn release(&self) -> Option<ReleaseRef> {
        match &self.subject {
            Subject::Record(target, _) => Some(ReleaseRef::new(&target.namespace, &target.release)),
            Subject::RecordChunk(part) => Some(ReleaseRef::new(part.namespace, &part.release)),
            Subject::Declaration(declaration) => declaration.release_ref(),
            Subject::Override(write) => {
                write.spec.as_ref().ok().map(|spec| ReleaseRef::new(write.namespace, &spec.release))
            }
            Subject::Other => self.managed.and_then(ManagedWrite::release),
        }
    }

    /// The release that the object of the request has stood for until now; a declaration can move to another one.
    #[must_use]
    pub fn former_release(&self) -> Option<ReleaseRef> {
        match &self.subject {
            Subject::Declaration(declaration) => declaration.former_release(),
            _ => None,
        }
    }

    /// The record before and after, when one is created or updated.
    #[must_use]
    pub fn record_write(&self) -> Option<RecordWrite<'_>> {
        self.record().and_then(|(_, change)| change.write())
    }
}
