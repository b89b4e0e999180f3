//! Who may end an operation in flight: one question for every write that ends one, whatever it is called.

use jiff::Timestamp;

use super::case::RecordCase;
use crate::facts::RecordVersion;
use crate::release::{Entry, Stamps};
use crate::rules::undecided::Undecided;

/// An operation in flight.
pub(super) struct InFlight {
    stamps: Stamps,
    started: Option<Timestamp>,
}

impl InFlight {
    /// The operation of a record in a history.
    pub(super) fn of_entry(entry: &Entry) -> Self {
        Self { stamps: entry.stamps.clone(), started: entry.started() }
    }

    /// The operation of a record in a request.
    pub(super) fn of_side(side: &RecordVersion<'_>) -> Self {
        let (stamps, created) = (side.stamps(), side.stored.metadata.creation_timestamp);
        let started = stamps.operation_started(side.status(), created);
        Self { stamps, started }
    }

    pub(super) fn holder(&self) -> Option<&str> {
        self.stamps.holder()
    }

    /// The stamps that say who holds it.
    pub(super) fn stamps(&self) -> &Stamps {
        &self.stamps
    }

    pub(super) fn started(&self) -> Option<Timestamp> {
        self.started
    }
}

impl<'a> RecordCase<'a> {
    /// Whether the actor is a program that goes on with an operation of its own: the service account that holds it, a session of the
    /// pipeline that holds it, a manager over a manager's, Flux over what it started under another account. A controller knows that the
    /// run before its restart is dead, and a policy that lets sessions hold operations together says that they run one after the other.
    /// A person knows neither: the same person may run helm in two terminals.
    pub(super) fn resumes<'o>(&self, operation: &'o InFlight) -> Result<bool, Undecided>
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
        self.driven(Some(holder)).is_handover(self.evidence, self.policy, actor)
    }

    /// Whether an operation counts as stuck.
    pub(super) fn is_stuck<'o>(&self, operation: &'o InFlight) -> Result<bool, Undecided>
    where
        'a: 'o,
    {
        self.is_stale(operation.started(), operation.holder())
    }

    /// Whether the actor may end an operation: its holder, a program that resumes it, and anyone once it is stuck. A lost stamp is
    /// no reason to refuse.
    pub(super) fn may_end<'o>(&self, operation: &'o InFlight) -> Result<bool, Undecided>
    where
        'a: 'o,
    {
        Ok(operation.holder().is_none()
            || self.facts.actor.holds(&operation.stamps)
            || self.is_stuck(operation)?
            || self.resumes(operation)?)
    }
}
