//! The rule `unusual-create`.
//!
//! Only two kinds of clients create a record that is not pending: restore tools, which the policy lists, and helm-mapkubeapis.
//! The latter supersedes the newest record, and creates a copy with mapped APIs as `deployed`. With `startedBy: managers` in the
//! policy, only managers start operations. That includes uninstalls, which create no record: they start with an update, and with
//! deletions of objects.

use super::case::RecordCase;
use super::installs_over::installs_over;
use crate::facts::{ObjectChange, RecordChange, RecordVersion, RecordWrite};
use crate::owners;
use crate::policy::StartedBy;
use crate::release::record::is_mapped_copy;
use crate::release::status::Guard;
use crate::release::{Record, Revision, Stamps, Status, Storage};
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, Refusal, Rule};
use crate::rules::objects::case::ObjectCase;
use crate::rules::undecided::Undecided;
use crate::rules::wording;

/// The rule `unusual-create`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "unusual-create",
        owners: owners::OF_RECORDS,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        requests: Requests { operations: &[Operation::Create, Operation::Update, Operation::Delete], kinds: &[] },
        summary: "A record is created in a pending status, by a user who may start operations.",
        why: "A record that is created as deployed belongs to no operation, so nothing shows that its objects exist.",
        allowed: "Records that helm and controllers create; records that a tool listed in `tools` restores; the record that helm- \
              mapkubeapis writes.",
        refused: "`kubectl create` of a record that says deployed; with `startedBy: managers`, `helm upgrade` by a person.",
        way_out: "Install or upgrade with helm, or through a manager where only managers may. Add the account of a restore \
              tool to `tools` in the policy.",
        settings: &["startedBy"],
    },
    checks: &[Check::Record(check), Check::Object(uninstalls)],
};

/// Refuses the deletions of an uninstall by a user who is not a manager. If the write of its record is refused, Helm only logs
/// that and continues to delete. It stops when a deletion is refused.
fn uninstalls(case: &ObjectCase<'_>) -> Checked {
    let only_managers = case.policy.started_by == StartedBy::Managers;
    let by_manager = case.policy.managers.contains(case.facts.actor.name);
    if !only_managers || by_manager || !matches!(case.write.change, ObjectChange::Deleted { .. }) {
        return Ok(None);
    }
    Ok(case.conflict()?.map(|conflict| {
        let sentence = format!(
            "{} is managed by {}: the policy allows only managers to start operations (startedBy), uninstalls too, and {} is \
             not a manager.",
            case.subject(),
            conflict.owner,
            wording::user(Some(case.facts.actor.name))
        );
        Refusal::new(sentence, OTHER_WAY).about(conflict.release.clone())
    }))
}

const OTHER_WAY: &str = "Make the change in the source that the managers deploy from, usually Git.";

pub(crate) fn check(case: &RecordCase<'_>) -> Checked {
    if let Some(refusal) = started_by_somebody_else(case)? {
        return Ok(Some(refusal));
    }
    let RecordChange::Created(side) = case.change else {
        return Ok(None);
    };
    if let Some(why) = made_by_hand(case, side)? {
        let sentence = format!("Cannot create the record of {}: {why}.", case.subject());
        return Ok(Some(Refusal::new(sentence, case.words().change())));
    }
    let guard = case.policy.transitions.guard(None, side.status());
    let unusual = side.status().is_none() || !matches!(guard, Guard::NothingInFlight | Guard::Free);
    if case.policy.tools.contains(case.facts.actor.name) {
        return Ok(None);
    }
    if !unusual {
        return installs_over(case, side);
    }
    let status = side.status().map_or("without a status".to_owned(), |status| format!("as {status}"));
    let why = if guard == Guard::MappedApis {
        match unlike_a_mapping(case, side)? {
            None => return Ok(None),
            Some(why) => format!(", and {why}"),
        }
    } else {
        String::new()
    };
    let words = case.words();
    let sentence = format!(
        "Cannot create the record of {} {status}: no {} operation starts like this{why}.",
        case.subject(),
        words.name()
    );
    let ways_out = words.change().note("A restore tool must be listed under `tools` in the cluster policy.");
    Ok(Some(Refusal::new(sentence, ways_out).at("/metadata/labels/status")))
}

/// Why no client can have created the record.
fn made_by_hand(case: &RecordCase<'_>, side: &RecordVersion<'_>) -> Result<Option<&'static str>, Undecided> {
    if case.policy.is_manager_or_tool(case.facts.actor.name) {
        return Ok(None);
    }
    if case.facts.operation == Operation::Update {
        return Ok(Some("it would turn an older object into a record, as old as that object"));
    }
    if case.id.storage != Storage::Index || !case.facts.actor.is_person_on_records() || is_restored(case, side)? {
        return Ok(None);
    }
    Ok(Some("only its controller starts operations of this kind"))
}

/// Whether the record is that of the interrupted operation: a person who deleted it may put it back.
fn is_restored(case: &RecordCase<'_>, side: &RecordVersion<'_>) -> Result<bool, Undecided> {
    let interrupted = case.history()?.interrupted().map(|(_, interrupted)| interrupted);
    Ok(interrupted.is_some_and(|interrupted| {
        case.id.revision == Some(interrupted.revision) && side.chart() == Some(interrupted.chart)
    }))
}

/// The refusal if only managers may start operations, and the user is not one.
fn started_by_somebody_else(case: &RecordCase<'_>) -> Checked {
    let starts = case.change.write().filter(|write: &RecordWrite<'_>| write.starts(case.facts.actor));
    let (Some(write), StartedBy::Managers, actor) = (starts, case.policy.started_by, case.facts.actor) else {
        return Ok(None);
    };
    if case.policy.is_manager_or_tool(actor.name)
        || case.driven(&Stamps::held_by(actor.name)).is_driver_account(case.evidence, case.policy, actor)?
    {
        return Ok(None);
    }
    let operation = write.after.status().map_or("operation", wording::operation);
    let sentence = format!(
        "Cannot start the {operation} of {}: the policy allows only managers to start operations (startedBy), and {} is not a \
         manager.",
        case.subject(),
        wording::user(Some(actor.name))
    );
    Ok(Some(Refusal::new(sentence, OTHER_WAY).at("/metadata/labels/status")))
}

/// Why the new record is not a mapped copy of the newest one.
fn unlike_a_mapping(case: &RecordCase<'_>, side: &RecordVersion<'_>) -> Result<Option<String>, Undecided> {
    let history = case.history()?;
    if let Some(deployed) = history.newest_deployed() {
        return Ok(Some(format!("revision {} is deployed", deployed.revision)));
    }
    let Some(newest) = history.newest() else {
        return Ok(Some("the release has no record that this one could be a copy of".to_owned()));
    };
    if newest.status != Status::Superseded {
        return Ok(Some(format!("the newest record is {}", case.state(newest))));
    }
    if case.id.revision != newest.revision.0.checked_add(1).map(Revision) {
        return Ok(Some(format!("it does not follow revision {}", newest.revision)));
    }
    let (Some(Ok(json)), Some(new)) = (case.body(&newest.name)?, side.record()) else {
        return Ok(Some("the two records cannot be compared".to_owned()));
    };
    let copied = Record::read(json, case.facts.effort).is_ok_and(|old| is_mapped_copy(&old, new, case.facts.effort));
    Ok((!copied)
        .then(|| format!("it differs from revision {} in more than the deprecated versions of APIs", newest.revision)))
}
