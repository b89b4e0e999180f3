//! `record-deletion`: the newest deployed record of a live release stays.
//!
//! Without it Helm says "has no deployed releases" and the next upgrade is an install over live objects. Pruning and
//! purging pass: the first never takes it, the second starts by marking the newest record `uninstalling`.
//!
//! Allowed: DELETE of a superseded record; of a deployed one while the newest is `uninstalling` or `uninstalled`.
//! Denied: `kubectl delete secret` of the newest deployed record; a collection delete of records by a person.

use super::case::Case;
use super::lease;
use crate::engine::facts::{ActorKind, RecordChange};
use crate::engine::release::Status;
use crate::engine::rules::{Finding, Refusal};

const WAY_OUT: &str = "Use `helm uninstall` to remove the release, or name one superseded or failed record.";

pub(crate) fn check(case: &Case<'_>) -> Finding {
    let RecordChange::Deleted(side) = case.change else {
        return Ok(None);
    };
    if side.stored.metadata.deletion_timestamp.is_some() {
        return Ok(None);
    }
    if case.facts.collection && case.facts.actor.kind == ActorKind::Person {
        let sentence = format!("Cannot delete the record of {} together with others.", case.subject());
        return Ok(Some(Refusal::new(sentence, WAY_OUT)));
    }
    if side.label_status() != Some(Status::Deployed) {
        return Ok(None);
    }
    let history = case.history()?;
    let newest_status = history.newest().map(|newest| newest.status);
    if matches!(newest_status, Some(Status::Uninstalling | Status::Uninstalled)) {
        return Ok(None);
    }
    let is_newest = history.newest_deployed().is_none_or(|newest| newest.name == case.target.object);
    // nelm purges in no order, and says so by its lease.
    if !is_newest || lease::is_held(case)? {
        return Ok(None);
    }
    let sentence = format!("Cannot delete the newest deployed record of {}: the release is live.", case.subject());
    Ok(Some(Refusal::new(sentence, WAY_OUT)))
}
