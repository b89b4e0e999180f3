//! The rule `pending-recovery`.
//!
//! *Unlock* (`pending-*` to `failed` by another user) is open to the holder of the operation, to a manager over a manager's record,
//! to the account that a HelmRelease names over an operation that Flux started under another account, and to anyone once the
//! operation is stale. Flux unlocks the record of a live helm run within seconds; when the unlock is refused, Flux waits. *Delete*
//! of the newest pending record is open when the checks of the runbook pass. *Rollback* is open as the policy says.

use super::case::RecordCase;
use super::{lease, runbook};
use crate::engine::facts::{ActorKind, RecordChange, RecordSide};
use crate::engine::policy::AllowRollback;
use crate::engine::release::Status;
use crate::engine::release::status::{Guard, transition};
use crate::engine::rule::{FORBIDDEN, FailsClosed, Mode, Specification};
use crate::engine::rules::check::{Check, Checked, Refusal, Rule};
use crate::engine::rules::wording;

/// The rule `pending-recovery`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "pending-recovery",
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        summary: "An operation in flight ends early only in a way that is open: unlock, delete or rollback.",
        why: "An operation that looks stuck may still run. Unlocking or deleting its record, or rolling back over it, \
              then leaves two records deployed.",
        allowed: "A rollback over an upgrade that has been pending for longer than staleAfter.",
        refused: "`helm rollback` over an upgrade that started 12 s ago; `kubectl delete secret` of its record.",
        way_out: "Wait until the operation ends, or until it is older than staleAfter by the clock of the API server.",
        settings: &["staleAfter", "rollback", "rollForwardOnly"],
    },
    checks: &[Check::Record(check)],
};

pub(crate) fn check(case: &RecordCase<'_>) -> Checked {
    match case.change {
        RecordChange::Created(side) if side.status() == Some(Status::PendingRollback) => rollback(case),
        RecordChange::Updated { before, after, .. } if transition(before.status(), after.status()) == Guard::Unlock => {
            unlock(case, before)
        }
        RecordChange::Deleted(side) if side.label_status().is_some_and(Status::is_pending) => delete(case, side),
        _ => Ok(None),
    }
}

fn rollback(case: &RecordCase<'_>) -> Checked {
    if case.policy.tools.contains(case.facts.actor.name) {
        return Ok(None);
    }
    let recovery = &case.policy.recovery;
    let Some(newest) = case.history()?.newest() else {
        return Ok(None);
    };
    let refused = |why: &str, way_out: &str| {
        let sentence = format!("Cannot roll back {}: the release is {}{why}.", case.subject(), case.state(newest));
        Ok(Some(Refusal::new(sentence, way_out)))
    };
    const FORWARD: &str = "Upgrade to a version that fixes the release instead.";
    if newest.status == Status::Failed && recovery.roll_forward_only && case.facts.actor.kind == ActorKind::Person {
        return refused(", and the policy allows only rolling forward (rollForwardOnly)", FORWARD);
    }
    let (started, holder) = (newest.started(), newest.stamps.holder());
    let way = if recovery.roll_forward_only { AllowRollback::Never } else { recovery.rollback };
    let open = match way {
        AllowRollback::Always => true,
        AllowRollback::WhenStale => !newest.status.is_in_flight() || case.is_stale(started, holder)?,
        AllowRollback::Never => false,
    };
    if !newest.status.is_in_flight() || open || case.in_flight()?.is_none() || lease::is_held(case)? {
        return Ok(None);
    }
    match way {
        AllowRollback::Never => {
            let delete = format!(
                "Wait until the operation ends. Once it counts as stuck, check the workloads, delete only the record {} with \
                 kubectl, and upgrade again.",
                newest.name
            );
            refused(", and the policy allows no rollback over an operation in flight", &delete)
        }
        AllowRollback::WhenStale | AllowRollback::Always => {
            let stale_after = wording::span(case.stale_after(started, holder)?);
            let wait = format!(
                "Wait until the operation ends. If it does not end, you can roll back {stale_after} after it started."
            );
            refused("", &wait)
        }
    }
}

fn unlock(case: &RecordCase<'_>, before: &RecordSide<'_>) -> Checked {
    let stamps = before.stamps();
    let Some(holder) = stamps.holder() else {
        return Ok(None);
    };
    let actor = case.facts.actor.name;
    let managers = &case.policy.managers;
    let created = before.stored.metadata.creation_timestamp;
    if holder == actor
        || (managers.contains(holder) && managers.contains(actor))
        || case.is_stale(created, Some(holder))?
        || case.flux_release(Some(holder)).is_flux_handover(case.evidence, case.policy, case.facts.actor)?
    {
        return Ok(None);
    }
    let (Some(status), Some(revision)) = (before.status(), case.target.revision) else {
        return Ok(None);
    };
    let state = wording::state(status, revision, Some(holder), created, case.now);
    let sentence = format!(
        "Cannot unlock release {}/{}: the release is {state}, and that operation may still be running.",
        case.target.namespace, case.target.release
    );
    let stale_after = wording::span(case.stale_after(created, Some(holder))?);
    let way_out = format!(
        "Wait until the operation ends. If it does not end, anyone can unlock the release {stale_after} after it started."
    );
    Ok(Some(Refusal::new(sentence, way_out)))
}

fn delete(case: &RecordCase<'_>, side: &RecordSide<'_>) -> Checked {
    let history = case.history()?;
    // Pruning deletes stuck records of past operations in the middle of the history.
    let Some(revision) = case.target.revision else {
        return Ok(None);
    };
    if history.above(revision).next().is_some() {
        return Ok(None);
    }
    let failed = runbook::failed_checks(case, side)?;
    if failed.is_empty() {
        return Ok(None);
    }
    let status = side.label_status().map_or("pending", Status::as_str);
    let sentence =
        format!("Cannot delete the {status} record of {}. These checks fail: {}.", case.subject(), failed.join("; "));
    let way_out =
        "Wait until the operation ends or the checks pass. Then delete only this record and run the upgrade again.";
    Ok(Some(Refusal::new(sentence, way_out)))
}
