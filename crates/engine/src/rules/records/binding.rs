//! Metadata that decides about a record later: owner references, finalizers, and `immutable`.
//!
//! Helm sets none of these, and drops them at every write. The garbage collector deletes an object whose owner does not exist,
//! without a check.

use super::case::RecordCase;
use crate::facts::{RecordChange, RecordVersion, adds_finalizer, adds_owner};

/// A part of the metadata of a record that a write adds to.
pub(super) struct Binding {
    /// `an owner reference`.
    pub(super) what: &'static str,
    pub(super) pointer: &'static str,
}

/// The metadata that a write adds to a record without permission.
///
/// Some clients create records with owners: OLM, and operators of the Operator SDK. They do so only at creation, or on records
/// that they hold.
pub(super) fn added(case: &RecordCase<'_>) -> Option<Binding> {
    let (before, after) = match case.change {
        RecordChange::Created(after) => (None, after),
        RecordChange::Updated { before, after, .. } => (Some(before), after),
        RecordChange::Deleted(_) => return None,
    };
    let actor = case.facts.actor;
    if case.policy.is_manager_or_tool(actor.name) {
        return None;
    }
    let is_program = actor.is_service_account();
    let holds = before.is_none_or(|before| actor.holds(&before.stamps()));
    let (old, new) = (before.map(|before| &before.stored.metadata), &after.stored.metadata);
    let owners = (old.and_then(|old| old.owner_references), new.owner_references);
    let finalizers = (old.and_then(|old| old.finalizers), new.finalizers);
    let is_immutable = |side: &RecordVersion<'_>| side.stored.immutable == Some(true);
    match () {
        () if !(is_program && holds) && adds_owner(owners.0, owners.1) => {
            Some(Binding { what: "an owner reference", pointer: "/metadata/ownerReferences" })
        }
        () if adds_finalizer(finalizers.0, finalizers.1) => {
            Some(Binding { what: "a finalizer", pointer: "/metadata/finalizers" })
        }
        () if is_immutable(after) && !before.is_some_and(is_immutable) => {
            Some(Binding { what: "immutable: true", pointer: "/immutable" })
        }
        () => None,
    }
}
