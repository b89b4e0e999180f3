//! The rule `record-tampering`.
//!
//! Status, description and the runs of hooks may change. Name, revision, namespaces, chart, values, manifest and hooks may not.
//! Changing only the description of a record at rest would make Flux upgrade again. `info.last_deployed` distinguishes records
//! with the same revision from two lives of a release: if a release is uninstalled and installed again during an upgrade, the
//! upgrade would write its old copy over the new record.

use super::binding::{self, Binding};
use super::case::RecordCase;
use super::standing::InFlight;
use crate::facts::{RecordBody, RecordChange, RecordVersion};
use crate::owners;
use crate::owners::rules::record_part;
use crate::release::record::Difference;
use crate::release::stamps::HOOKS;
use crate::release::status::Guard;
use crate::release::storage::{INDEX_LABEL, KEY_LABEL, TYPE_LABEL};
use crate::release::{DecodeError, Status, Storage};
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, Refusal, Rule, Step, WaysOut};
use crate::rules::undecided::Undecided;
use crate::rules::wording;

/// The rule `record-tampering`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "record-tampering",
        owners: owners::OF_RECORDS,
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::OnRecordCreate,
        requests: Requests { operations: &[Operation::Create, Operation::Update], kinds: &[] },
        summary: "The content of a stored record stays as it was released.",
        why: "A rollback installs the content of a stored record, and nobody reviews it again.",
        allowed: "A new status; the run of a hook; Helm 3 rewriting a record of Helm 4; a record replaced with itself.",
        refused: "A different manifest, chart, name or revision, different values or hooks in a stored record; a finalizer, an \
                  owner reference or `immutable: true` on one; another content of a record in several Secrets, by a \
                  person who does not hold it.",
        way_out: "A record is history. Start a new upgrade to change the release.",
        settings: &[],
    },
    checks: &[Check::Record(check), Check::RecordPart(record_part::write)],
};

/// The labels that Helm derives from the body.
const DERIVED_LABELS: [&str; 4] = ["name", "owner", "status", "version"];

pub(crate) fn check(case: &RecordCase<'_>) -> Checked {
    if let Some(Binding { what, pointer }) = binding::added(case) {
        let sentence = format!("Cannot add {what} to the record of {}.", case.subject());
        let words = case.words();
        let why = format!("It would delete the record later, or keep {} from writing it.", words.name());
        return Ok(Some(Refusal::new(sentence, WaysOut::default().note(why).and(words.change())).at(pointer)));
    }
    match case.change {
        RecordChange::Updated { before, after, same_payload, .. } => {
            if let Some(hidden) = hidden(case, before, after) {
                return Ok(Some(hidden));
            }
            if *same_payload {
                return Ok(relabelled(case, before, after));
            }
            match in_parts(case, before, after) {
                None => rewritten(case, before, after),
                in_parts => Ok(in_parts),
            }
        }
        RecordChange::Created(_) | RecordChange::Deleted(_) => Ok(None),
    }
}

/// The refusal of a changed label on an unchanged payload. Only a change to the value in the body is allowed: it repairs the
/// label.
fn relabelled(case: &RecordCase<'_>, before: &RecordVersion<'_>, after: &RecordVersion<'_>) -> Option<Refusal> {
    let (old, new) = (&before.stored.metadata, &after.stored.metadata);
    let said = |label: &str| match (label, after.record()) {
        ("owner", _) => Some(case.id.storage.owner().to_owned()),
        ("name", Some(record)) => Some(record.name.to_string()),
        ("version", Some(record)) => Some(record.version.to_string()),
        ("status", Some(record)) => Some(record.info.status.to_string()),
        _ => None,
    };
    let moved = DERIVED_LABELS.into_iter().filter(|label| old.label(label) != new.label(label));
    let moved: Vec<_> = moved.filter(|label| said(label).is_none_or(|said| new.label(label) != Some(&said))).collect();
    if moved.is_empty() {
        return None;
    }
    let sentence = format!("Cannot change only the label {} on the record of {}.", moved.join(", "), case.subject());
    let words = case.words();
    let why = format!("{} also reads the body of the record.", words.name());
    let refusal = Refusal::new(sentence, WaysOut::default().note(why).and(words.change()));
    Some(moved.iter().fold(refusal, |refusal, label| refusal.at(format!("/metadata/labels/{label}"))))
}

/// The refusal of a changed label that OLM needs to find the record or its parts. Setting it back is a repair.
fn hidden(case: &RecordCase<'_>, before: &RecordVersion<'_>, after: &RecordVersion<'_>) -> Option<Refusal> {
    if case.id.storage != Storage::Index {
        return None;
    }
    let (old, new) = (&before.stored.metadata, &after.stored.metadata);
    let found_by = [(TYPE_LABEL, INDEX_LABEL), (KEY_LABEL, case.id.object.as_str())];
    let is_lost =
        |&(label, value): &(&str, &str)| old.label(label) != new.label(label) && new.label(label) != Some(value);
    let (label, _) = found_by.into_iter().find(is_lost)?;
    let words = case.words();
    let (subject, name) = (case.subject(), words.name());
    let sentence =
        format!("Cannot change the label {label} on the record of {subject}: {name} finds it by this label.");
    Some(Refusal::new(sentence, words.change()).at(format!("/metadata/labels/{label}")))
}

/// The refusal of a changed payload that cannot be compared, because the old or new record is stored in several Secrets.
fn in_parts(case: &RecordCase<'_>, before: &RecordVersion<'_>, after: &RecordVersion<'_>) -> Option<Refusal> {
    let is_in_parts = |side: &RecordVersion<'_>| matches!(side.body, RecordBody::Broken(DecodeError::Chunked));
    if !is_in_parts(before) && !is_in_parts(after) {
        return None;
    }
    let stamps = before.stamps();
    if record_part::keeps(case.facts.actor, case.policy, &case.id.namespace, &stamps) {
        return None;
    }
    let sentence = format!(
        "Cannot change the stored record of {}: it is stored in several Secrets and cannot be compared, so only its holder ({}) or a \
         manager may change it.",
        case.subject(),
        wording::user(stamps.holder())
    );
    Some(Refusal::new(sentence, case.words().history_stays()).at("/data"))
}

/// The refusal of a payload that changes what was released.
fn rewritten(case: &RecordCase<'_>, before: &RecordVersion<'_>, after: &RecordVersion<'_>) -> Checked {
    let mut changed = case.change.differences(case.facts.effort).to_vec();
    let (from, to) = (before.status(), after.status());
    if matches!(to, Some(Status::Uninstalling | Status::Uninstalled)) {
        changed.retain(|difference| *difference != Difference::Deleted);
    }
    if to == Some(Status::Failed)
        && matches!(case.policy.transitions.guard(from, to), Guard::Unlock | Guard::Resumption)
    {
        // Unlocking tools change the date of the record. `pending-recovery` decides who may unlock.
        changed.retain(|difference| *difference != Difference::LastDeployed);
    }
    let mut members: Vec<_> = changed.into_iter().map(Difference::member).collect();
    if before.stored.data.extra_chunks.is_some() && after.stored.data.extra_chunks.is_none() {
        // OLM cannot read a record without this list, even if it is empty.
        members.push("extraChunks");
    }
    if let (Some(old), Some(new)) = (before.record(), after.record()) {
        if !old.has_hooks_like(new) && changes_hooks(case, before, after) {
            members.push("hooks");
        }
        let at_rest = from == to && matches!(from, Some(Status::Deployed | Status::Superseded | Status::Uninstalled));
        if at_rest && old.info.description != new.info.description && !is_by_owner(case, before)? {
            members.push("info.description");
        }
    }
    if members.is_empty() {
        return Ok(without_hooks(case, before, after));
    }
    let sentence = format!("Cannot change {} in the stored record of {}.", members.join(", "), case.subject());
    Ok(Some(Refusal::new(sentence, case.words().history_stays()).at("/data")))
}

/// The warning about an uninstall of a record that lacks hooks. A filtered test stores only the hooks that it runs, and writes the
/// others back at its end: not if it is killed.
fn without_hooks(case: &RecordCase<'_>, before: &RecordVersion<'_>, after: &RecordVersion<'_>) -> Option<Refusal> {
    let is_started = after.status() == Some(Status::Uninstalling) && before.status() != after.status();
    before.stamps().get(HOOKS).filter(|_| is_started)?;
    let sentence = format!(
        "The record of {} lacks hooks that a filtered test left out when it was interrupted: this uninstall does not run them.",
        case.subject()
    );
    let upgrade = Step::run("{} writes them back", case.words().upgrade_command(None));
    Some(Refusal::new(sentence, WaysOut::default().when("before an uninstall", upgrade)).into_advice())
}

/// Whether the actor is a program that writes the records of its own release: a manager, or one that may go on with its operations.
/// Flux upgrades again when the description has changed.
fn is_by_owner(case: &RecordCase<'_>, before: &RecordVersion<'_>) -> Result<bool, Undecided> {
    let actor = case.facts.actor;
    if actor.is_person_on_records() {
        return Ok(false);
    }
    Ok(case.policy.is_manager_or_tool(actor.name) || case.resumes(&InFlight::of_side(before))?)
}

/// Whether the change affects what the hooks run. A filtered test omits some hooks, and writes them back at its end.
fn changes_hooks(case: &RecordCase<'_>, before: &RecordVersion<'_>, after: &RecordVersion<'_>) -> bool {
    let effort = case.facts.effort;
    let (Some(old), Some(new)) = (before.hooks(effort), after.hooks(effort)) else {
        return true;
    };
    let is_restored = || before.stamps().get(HOOKS).is_some_and(|stored| *stored == new.digest());
    let same_status = before.status() == after.status();
    !(new.run_the_same(old) || (same_status && (new.are_tested_among(old) || is_restored())))
}
