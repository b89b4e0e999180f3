//! What a request says by itself: actor, release, operation, what changed. No policy, no cluster.

mod actor;
mod change;
mod objects;
mod target;

pub use actor::{Actor, ActorKind};
pub use change::{Body, RecordChange, RecordWrite, Side};
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
    /// Which release the record belongs to and what happens to it; `None` when the object is no record.
    pub record: Option<(Target, RecordChange<'r>)>,
}

impl<'r> Facts<'r> {
    /// Puts the facts together from a request, its objects and their opened bodies.
    #[must_use]
    pub fn of(request: &'r Request<'r>, objects: &'r Objects<'r>, bodies: &'r Bodies) -> Self {
        let record = objects.storage.and_then(|storage| {
            let change = RecordChange::of(request.operation, objects, bodies)?;
            Some((Target::of(storage, request, change.latest()), change))
        });
        Self {
            operation: request.operation,
            actor: Actor::of(&request.user_info),
            collection: request.operation == Operation::Delete && request.name().is_none(),
            record,
        }
    }

    /// The record before and after, when one is created or updated.
    #[must_use]
    pub fn record_write(&self) -> Option<RecordWrite<'_>> {
        self.record.as_ref().and_then(|(_, change)| change.write())
    }
}
