//! The rule `illegal-transition`.
//!
//! `superseded` to `deployed` is the failure path of an upgrade that a rollback has overtaken. Refusing that write does not harm
//! helm, and keeps only one record deployed.

use jiff::SignedDuration;

use super::case::RecordCase;
use super::lease;
use super::pending_recovery::go_on;
use super::recovery::RecordCondition;
use super::standing::InFlight;
use super::unreadable;
use crate::facts::{RecordChange, RecordVersion};
use crate::owners;
use crate::release::status::Guard;
use crate::release::{Entry, Status};
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, Refusal, Rule, WaysOut};
use crate::rules::undecided::Undecided;

/// How long after its promotion a cancelled install may still mark its record as failed. Two threads of one process race, so this
/// takes milliseconds, but the stamp has whole seconds.
const CANCELLED_WITHIN: SignedDuration = SignedDuration::from_secs(10);

/// The rule `illegal-transition`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "illegal-transition",
        owners: owners::OF_RECORDS,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        requests: Requests { operations: &[Operation::Update], kinds: &[] },
        summary: "The status of a record changes only along transitions that some client makes.",
        why: "When an upgrade was overtaken by a rollback, its failure path writes its old copy back: a superseded record \
              becomes deployed again.",
        allowed: "pending-upgrade to deployed on the newest record, once the revision before is superseded; failed to superseded; any \
                  status to itself.",
        refused: "superseded to deployed; pending-upgrade to deployed below a higher revision, or while the revision before is still \
                  deployed.",
        way_out: "See `helm history`. To change the release, start a new upgrade or rollback. Where an object declares \
                  the release, change that object.",
        settings: &[],
    },
    checks: &[Check::Record(check)],
};

pub(crate) fn check(case: &RecordCase<'_>) -> Checked {
    let RecordChange::Updated { before, after, .. } = case.change else {
        return Ok(None);
    };
    let (Some(from), Some(to)) = (before.status(), after.status()) else {
        return Ok(None);
    };
    let why = match case.policy.transitions.guard(Some(from), Some(to)) {
        Guard::Unlock if to == Status::Deployed => {
            let newest = newer(case)?.and_then(|newer| newer.first().copied());
            if let Some(left) = left_deployed(case, from, before)?.filter(|_| newest.is_none()) {
                return second_deployed(case, from, before, left).map(Some);
            }
            newest.map(|newest| format!("the release has a newer record ({})", case.state(newest)))
        }
        Guard::NewerRollback => {
            let is_rollback = |entry: &&Entry| entry.status == Status::PendingRollback;
            let unasked = newer(case)?.is_some_and(|newer| !newer.iter().any(is_rollback));
            unasked.then(|| format!("no {} over this revision is pending", case.words().newer_operation()))
        }
        Guard::JustEnded => (!has_just_ended(case, before)).then(|| {
            "only a cancelled install does this, as the same user and in the instant after it was deployed".to_owned()
        }),
        Guard::Resumption => not_resumed(case, before)?,
        // helm does this to its own record after another user has marked it as failed.
        Guard::Never if (from, to) == (Status::Failed, Status::Deployed) => {
            Some("its operation has ended meanwhile".to_owned())
        }
        Guard::Never => Some(format!("no {} client does this", case.words().name())),
        Guard::NothingInFlight if to == Status::Uninstalling => {
            let newest = newer(case)?.and_then(|newer| newer.first().copied());
            // `concurrent-operation` refuses it during an operation.
            let newest = newest.filter(|newest| !newest.status.is_in_flight());
            if let Some(newest) = newest
                && let Some(refusal) = unreadable::passed_over(case, newest, "start the uninstall")?
            {
                return Ok(Some(refusal));
            }
            newest.map(|newest| format!("an uninstall starts at the newest record ({})", case.state(newest)))
        }
        Guard::Free if (from, to) == (Status::Deployed, Status::Superseded) => superseded_by_stranger(case)?,
        Guard::Free | Guard::Unlock | Guard::NothingInFlight | Guard::MappedApis | Guard::Deletion => None,
    };
    let Some(why) = why else {
        return Ok(None);
    };
    let sentence = format!("Cannot change the status of {} from {from} to {to}: {why}.", case.subject());
    let ways_out = WaysOut::from(case.words().look()).and(case.words().start_anew());
    Ok(Some(Refusal::new(sentence, ways_out).at("/metadata/labels/status")))
}

/// The revision that a promotion replaces, if it is still deployed. Helm supersedes it first, but continues if that write fails.
/// The write fails, for example, if the release was uninstalled and installed again since the operation read it.
///
/// Old clients and `helm install --replace` can leave an older record deployed for good. The holder's program supersedes before
/// it promotes, so for the holder only the newest record that was ever deployed counts. An install replaces nothing. nelm, which
/// holds a lease, writes in any order.
fn left_deployed<'c>(
    case: &RecordCase<'c>,
    from: Status,
    before: &RecordVersion<'_>,
) -> Result<Option<&'c Entry>, Undecided> {
    let Some(revision) = case.id.revision.filter(|_| from != Status::PendingInstall) else {
        return Ok(None);
    };
    let stamps = before.stamps();
    let is_holders = stamps.holder().is_none() || case.facts.actor.holds(&stamps);
    let counts = |entry: &&Entry| entry.status == Status::Deployed || is_holders && entry.status == Status::Superseded;
    let left = case.history()?.below(revision).find(counts).filter(|counted| counted.status == Status::Deployed);
    Ok(if left.is_some() && is_holders && lease::is_held(case)? { None } else { left })
}

/// The refusal of a promotion that would leave two records deployed. It only warns the holder if the other record is older than the
/// operation: then the holder's own write that superseded it was lost. Helm uses the newer of the two, and without the promotion the
/// release would wait until the operation is stuck.
fn second_deployed(
    case: &RecordCase<'_>,
    from: Status,
    before: &RecordVersion<'_>,
    left: &Entry,
) -> Result<Refusal, Undecided> {
    let started = before.stored.metadata.creation_timestamp;
    let is_older = left.created.zip(started).is_some_and(|(created, started)| created < started);
    if is_older && case.facts.actor.holds(&before.stamps()) {
        let sentence = format!(
            "Revision {} of {} stays deployed too: the write that superseded it was lost.",
            left.revision,
            case.subject()
        );
        let note = format!("{} uses the newer one.", case.words().name());
        return Ok(Refusal::new(sentence, WaysOut::default().note(note)).into_advice());
    }
    let sentence = format!(
        "Cannot change the status of {} from {from} to deployed: revision {} is still deployed.",
        case.subject(),
        left.revision
    );
    let history = case.history()?;
    let promoted = history.iter().find(|entry| entry.name == case.id.object);
    let ways_out = match promoted {
        None => case.words().look().into(),
        Some(promoted) => {
            let go_on = go_on(case, promoted, RecordCondition::Unknown)?;
            WaysOut::default().when("once that operation counts as stuck", go_on)
        }
    };
    Ok(Refusal::new(sentence, ways_out).at("/metadata/labels/status"))
}

/// Why a deployed record does not become superseded: the operation that replaces it is that of somebody else, who does so itself.
fn superseded_by_stranger(case: &RecordCase<'_>) -> Result<Option<String>, Undecided> {
    let in_flight =
        case.history()?.newest().filter(|newest| newest.status.is_pending() && newest.name != case.id.object);
    let Some(newest) = in_flight else { return Ok(None) };
    let may_end = case.may_end(&InFlight::of_entry(newest))? || lease::is_held(case)?;
    Ok((!may_end).then(|| format!("another operation replaces it ({})", case.state(newest))))
}

/// The records above the written one, newest first; `None` if its revision is unknown.
fn newer<'c>(case: &RecordCase<'c>) -> Result<Option<Vec<&'c Entry>>, Undecided> {
    let Some(revision) = case.id.revision else {
        return Ok(None);
    };
    Ok(Some(case.history()?.above(revision).collect()))
}

/// Whether the actor's own operation on this record ended within [`CANCELLED_WITHIN`].
fn has_just_ended(case: &RecordCase<'_>, before: &RecordVersion<'_>) -> bool {
    let stamps = before.stamps();
    let recent = |ended| case.now.duration_since(ended) <= CANCELLED_WITHIN;
    case.facts.actor.holds(&stamps) && stamps.ended().is_some_and(recent)
}

/// Why a superseded record must not be deployed again; `None` if its own controller resumes it.
fn not_resumed(case: &RecordCase<'_>, before: &RecordVersion<'_>) -> Result<Option<String>, Undecided> {
    let operation = InFlight::of_side(before);
    // The record is older than Interlock, or has lost its stamp.
    let unknown = operation.holder().is_none() && case.facts.actor.is_service_account();
    if !unknown && !case.resumes(&operation)? {
        return Ok(Some("only a controller that goes on with its own release does this".to_owned()));
    }
    let history = case.history()?;
    if let Some(deployed) = history.newest_deployed() {
        return Ok(Some(format!("revision {} is deployed", deployed.revision)));
    }
    let newer = history.newest().filter(|newest| newest.name != case.id.object);
    Ok(newer.map(|newest| format!("the release has a newer record ({})", case.state(newest))))
}
