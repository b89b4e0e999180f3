//! What a request says by itself: actor, release, operation, what changed. No policy, no cluster.

mod actor;
mod change;
mod managed;
mod objects;
mod target;

pub use actor::{Actor, ActorKind};
pub use change::{Body, RecordChange, RecordWrite, Side};
pub use managed::{ManagedWrite, ObjectChange, Sides};
pub use objects::{Bodies, Objects, Sealed};
pub use target::Target;

use crate::review::{Operation, Request};

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
}

/// What a request is about.
#[derive(Debug)]
pub enum Subject<'r> {
    /// A record: which release it belongs to, and what happens to it.
    Record(Target, Box<RecordChange<'r>>),
    /// An object that says to be managed by somebody, or one that is scaled.
    Managed(&'r ManagedWrite<'r>),
    /// None of our business.
    Other,
}

impl<'r> Facts<'r> {
    /// Puts the facts together from a request, its objects and their opened bodies.
    #[must_use]
    pub fn of(request: &'r Request<'r>, objects: &'r Objects<'r>, bodies: &'r Bodies) -> Self {
        let record = objects.storage.and_then(|storage| {
            let change = RecordChange::of(request.operation, objects, bodies)?;
            Some(Subject::Record(Target::of(storage, request, change.latest()), Box::new(change)))
        });
        let subject = record.or(objects.managed.as_ref().map(Subject::Managed)).unwrap_or(Subject::Other);
        Self {
            operation: request.operation,
            actor: Actor::of(&request.user_info),
            collection: request.operation == Operation::Delete && request.name().is_none(),
            subject,
        }
    }

    /// The record that the request is about, and what happens to it.
    #[must_use]
    pub fn record(&self) -> Option<(&Target, &RecordChange<'r>)> {
        match &self.subject {
            Subject::Record(target, change) => Some((target, change.as_ref())),
            Subject::Managed(_) | Subject::Other => None,
        }
    }

    /// The namespace of what the request is about; `None` where that is in none, or none of our business.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        let namespace = match &self.subject {
            Subject::Record(target, _) => target.namespace.as_str(),
            Subject::Managed(write) => write.namespace.as_str(),
            Subject::Other => "",
        };
        Some(namespace).filter(|namespace| !namespace.is_empty())
    }

    /// The record before and after, when one is created or updated.
    #[must_use]
    pub fn record_write(&self) -> Option<RecordWrite<'_>> {
        self.record().and_then(|(_, change)| change.write())
    }
}
