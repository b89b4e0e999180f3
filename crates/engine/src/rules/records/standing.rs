//! Who may end an operation in flight. All writes that end an operation use the same check.

use jiff::Timestamp;

use super::case::RecordCase;
use crate::facts::RecordVersion;
use crate::release::{Entry, Stamps};
use crate::rules::undecided::Undecided;

/// An operation in flight.
pub(crate) struct InFlight {
    stamps: Stamps,
    started: Option<Timestamp>,
}

impl InFlight {
    /// The operation of a record in a history.
    pub(crate) fn of_entry(entry: &Entry) -> Self {
        Self { stamps: entry.stamps.clone(), started: entry.started() }
    }

    /// The operation of a record in a request.
    pub(crate) fn of_side(side: &RecordVersion<'_>) -> Self {
        let (stamps, created) = (side.stamps(), side.stored.metadata.creation_timestamp);
        let started = stamps.operation_started(side.status(), created);
        Self { stamps, started }
    }

    pub(crate) fn holder(&self) -> Option<&str> {
        self.stamps.holder()
    }

    /// The stamps that say who holds it.
    pub(crate) fn stamps(&self) -> &Stamps {
        &self.stamps
    }

    pub(crate) fn started(&self) -> Option<Timestamp> {
        self.started
    }
}

impl<'a> RecordCase<'a> {
    /// Whether the actor is a program that continues an operation: its own service account, a session of the pipeline that holds
    /// it, a manager if a manager holds it, or Flux if it started the operation under another account. A controller knows that
    /// the run before its restart is dead. A policy that lets sessions share operations says that they run one after the other.
    /// Neither applies to a person, who may run helm in two terminals.
    pub(crate) fn resumes<'o>(&self, operation: &'o InFlight) -> Result<bool, Undecided>
    where
        'a: 'o,
    {
        let Some(holder) = operation.holder() else {
            return Ok(false);
        };
        let (actor, managers) = (self.facts.actor, &self.policy.managers);
        let itself = (actor.is_service_account() && actor.name == holder) || actor.shares(&operation.stamps);
        if itself || (managers.contains(holder) && managers.contains(actor.name)) {
            return Ok(true);
        }
        self.driven(operation.stamps()).is_handover(self.evidence, self.policy, actor)
    }

    /// Whether an operation counts as stuck.
    pub(crate) fn is_stuck<'o>(&self, operation: &'o InFlight) -> Result<bool, Undecided>
    where
        'a: 'o,
    {
        self.is_stale(operation.started(), operation.stamps())
    }

    /// Whether the actor may end an operation: its holder, a program that resumes it, and anyone if it is stuck. A lost stamp is
    /// not a reason to refuse.
    pub(crate) fn may_end<'o>(&self, operation: &'o InFlight) -> Result<bool, Undecided>
    where
        'a: 'o,
    {
        Ok(operation.holder().is_none()
            || self.facts.actor.holds(&operation.stamps)
            || self.is_stuck(operation)?
            || self.resumes(operation)?)
    }
}
