//! `concurrent-operation`: no install or upgrade starts while another operation holds the release.
//!
//! Helm looks for a pending record only in `upgrade`, and only in its own process. A rollback over an operation in flight
//! is [`super::pending_recovery`]'s matter, since it is also the official way out of a dead one.
//!
//! Allowed: CREATE of `pending-upgrade` revision 6 while revision 5 is `deployed` or `failed`.
//! Denied: the same while revision 5 is `pending-upgrade` or `uninstalling`, however old, unless nelm or werf hold an
//! unexpired lease of the release: they ignore pending records on purpose and rely on that lock.

use super::case::Case;
use super::lease;
use crate::engine::facts::RecordChange;
use crate::engine::release::Status;
use crate::engine::rules::need::Need;
use crate::engine::rules::{Finding, Refusal};

pub(crate) fn check(case: &Case<'_>) -> Finding {
    let RecordChange::Created(side) = case.change else {
        return Ok(None);
    };
    let Some(status @ (Status::PendingInstall | Status::PendingUpgrade)) = side.status() else {
        return Ok(None);
    };
    if case.policy.tools.contains(case.facts.actor.name) {
        return Ok(None);
    }
    let Some(newest) = case.in_flight()? else { return Ok(None) };
    if lease::is_held(case)? {
        return Ok(None);
    }
    let sentence = format!("Cannot start {status} of {}: it is {}.", case.subject(), case.state(newest));
    let stale = match case.is_stale(newest.started(), newest.stamps.holder()) {
        // Only the advice depends on it.
        Err(Need::Unavailable(_) | Need::Unclear { .. }) => false,
        stale => stale?,
    };
    let way_out = if stale {
        format!(
            "That operation counts as stuck: {}check the workloads and delete only the record {} with kubectl, then run \
             this again.",
            if case.policy.recovery.closes_rollback() { "" } else { "roll back, or " },
            newest.name
        )
    } else {
        "Wait until it ends, then run this again; it would have been computed from what is stale by then.".to_owned()
    };
    Ok(Some(Refusal::new(sentence, way_out)))
}
