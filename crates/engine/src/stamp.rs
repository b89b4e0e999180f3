//! The holder stamp: the user who started the transition of a record, and the time of the start.
//!
//! Helm does not store a holder, and drops annotations at every PUT. The mutating half therefore writes these
//! annotations when a transition starts, and restores them at every later write. The validating half refuses wrong
//! values. A missing stamp was lost in an outage, and is never a reason to refuse. If another user fails a record, the
//! record also gets a note about the interrupted operation. Overrides and Freezes are stamped with their [creator], and
//! a void override is marked.

mod annotations;
pub(crate) mod creator;
pub mod recording;

use jiff::{SignedDuration, Timestamp, Unit};

use super::facts::{Actor, ActorKind, Facts, RecordVersion, RecordWrite, Subject};
use super::json::Patch;
use super::owners::{self, Driver};
use super::policy::Policy;
use super::release::record::{Hooks, truncated};
use super::release::stamps::{
    CHART, DRIVER, ENDED, HOLDER, HOOKS, INTERRUPTED, PIPELINE, PROTECTED_BY, STARTED, TARGET_NAMESPACE,
};
use super::release::{InterruptedOperation, ReleaseRef, Revision, Stamps, Status, Storage};

/// The tolerance between the time stamped by one replica and the clock of the replica that checks it. The API server
/// aborts a mutating request after 34 seconds; the rest is clock skew.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(120);

/// The longest user name that is stamped, in bytes. All annotations of an object share 256 KiB, so a larger stamp could
/// make the API server reject the write. Stamps are compared, so a longer name is not stamped at all: the holder is
/// then unknown, as after a lost stamp. Names from authenticators have some hundred bytes.
const MAX_STAMPED_USER_BYTES: usize = 4 * 1024;

/// The stamps that a written record must have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) stamps: Stamps,
    pub(crate) phase: Phase,
}

/// The effect of a write on the transition of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The write starts a transition. Stamps whose values the request does not contain are left out.
    Starts,
    /// The write ends a transition.
    Ends,
    /// Neither: the stamps of the stored object stay.
    Keeps,
}

impl Phase {
    /// The stamp with the time of this write.
    fn clock(self) -> Option<&'static str> {
        match self {
            Self::Starts => Some(STARTED),
            Self::Ends => Some(ENDED),
            Self::Keeps => None,
        }
    }
}

/// The stamps that a written record must have, except those in [`ClusterStamps`].
#[must_use]
pub(crate) fn expected(facts: &Facts<'_>, write: &RecordWrite<'_>, now: Timestamp) -> Expected {
    let time = now.round(Unit::Second).unwrap_or(now).to_string();
    if write.starts(facts.actor) {
        let mut stamps = Stamps::default();
        stamps.set_or_remove(HOLDER, stamped_user(facts.actor.name).map(str::to_owned));
        stamps.set_or_remove(PIPELINE, stamped_pipeline(&facts.actor));
        stamps.set(STARTED, time);
        stamps.set_or_remove(CHART, write.after.chart());
        stamps.set_or_remove(TARGET_NAMESPACE, write.after.record().map(|record| truncated(&record.namespace)));
        stamps.set_or_remove(PROTECTED_BY, protector(facts, write));
        return Expected { stamps, phase: Phase::Starts };
    }
    let mut stamps = write.before.map(RecordVersion::stamps).unwrap_or_default();
    stamps.set_or_remove(INTERRUPTED, interrupted_note(facts, write));
    stamps.set_or_remove(HOOKS, missing_hooks(facts, write));
    stamps.set_or_remove(PROTECTED_BY, protector(facts, write));
    if !write.ends() {
        return Expected { stamps, phase: Phase::Keeps };
    }
    stamps.set(ENDED, time);
    Expected { stamps, phase: Phase::Ends }
}

/// The stamp of a user name; `None` if the name is too long.
pub(crate) fn stamped_user(user: &str) -> Option<&str> {
    (user.len() <= MAX_STAMPED_USER_BYTES).then_some(user)
}

/// The pipeline that holds an operation started by this user; `None` if the user alone holds it, or if the stamp would
/// be too long.
#[must_use]
pub(crate) fn stamped_pipeline(actor: &Actor<'_>) -> Option<String> {
    actor.session?.stamp().filter(|stamp| stamp.len() <= MAX_STAMPED_USER_BYTES)
}

/// The interrupted operation that a written record must note. If another user ends the operation of this record, it is
/// that operation. Otherwise it is the note on the stored record, until a promotion of this record removes the note.
/// The promotion of a later record leaves the note, which no longer counts: an operation may also die between the two
/// writes.
fn interrupted_note(facts: &Facts<'_>, write: &RecordWrite<'_>) -> Option<String> {
    let before = write.before?;
    if facts.actor.kind == ActorKind::Interlock {
        return write.after.stamps().get(INTERRUPTED).map(str::to_owned);
    }
    if !is_unlocked(facts, write) {
        let same_status = before.status() == write.after.status();
        let kept = before.stamps();
        let removed = if same_status {
            is_note_removed(facts, write, &kept)
        } else {
            write.after.status() == Some(Status::Deployed)
        };
        return kept.get(INTERRUPTED).filter(|_| !removed).map(str::to_owned);
    }
    let chart = before.stamps().chart().map(str::to_owned).or_else(|| before.chart())?;
    let revision: Revision = before.stored.metadata.label("version")?.parse().ok()?;
    Some(InterruptedOperation { chart, revision }.to_string())
}

/// The digest of the hooks that a written record must restore: a filtered test leaves some hooks out while it runs.
fn missing_hooks(facts: &Facts<'_>, write: &RecordWrite<'_>) -> Option<String> {
    let (before, after) = (write.before?, write.after);
    let stamped = before.stamps().get(HOOKS).map(str::to_owned);
    let (Some(old), Some(new)) = (before.record(), after.record()) else {
        return stamped;
    };
    if old.has_hooks_like(new) {
        return stamped;
    }
    let digest = |side: &RecordVersion<'_>| side.hooks(facts.effort).map(Hooks::digest);
    let complete = stamped.or_else(|| digest(before))?;
    (digest(after).as_ref() != Some(&complete)).then_some(complete)
}

/// Whether a person removes only the note: the interrupted operation need not be finished. Helm clients drop all
/// annotations of a record at once, together with a new body, and do not intend to remove the note.
fn is_note_removed(facts: &Facts<'_>, write: &RecordWrite<'_>, before: &Stamps) -> bool {
    let after = write.after.stamps();
    facts.actor.kind == ActorKind::Person
        && after.get(INTERRUPTED).is_none()
        && count_others(&after, INTERRUPTED) == count_others(before, INTERRUPTED)
        && (count_others(before, INTERRUPTED) > 0 || write.same_payload)
}

/// The number of other stamps.
fn count_others(stamps: &Stamps, than: &str) -> usize {
    stamps.iter().filter(|(key, _)| *key != than).count()
}

/// The object that protects the release by the stamp on the stored record. The stamp stays, unless Interlock changes it or a write
/// removes nothing else, which the rule `protected-release` judges.
fn protector(facts: &Facts<'_>, write: &RecordWrite<'_>) -> Option<String> {
    let before = write.before?.stamps();
    match facts.actor.kind {
        ActorKind::Interlock => write.after.stamps().get(PROTECTED_BY).map(str::to_owned),
        _ if removes_only_protector(write) => None,
        _ => before.get(PROTECTED_BY).map(str::to_owned),
    }
}

/// Whether a write only removes the stamp of what protects the release. A client that drops all annotations does not intend that.
pub(crate) fn removes_only_protector(write: &RecordWrite<'_>) -> bool {
    let (before, after) = (write.before.map(RecordVersion::stamps).unwrap_or_default(), write.after.stamps());
    let is_removed = before.get(PROTECTED_BY).is_some() && after.get(PROTECTED_BY).is_none();
    is_removed && write.same_payload && count_others(&before, PROTECTED_BY) == count_others(&after, PROTECTED_BY)
}

/// Whether a user other than the holder fails a pending record. Flux does so under the account of the operation, and
/// says so in the description.
fn is_unlocked(facts: &Facts<'_>, write: &RecordWrite<'_>) -> bool {
    let ends = write.before.and_then(RecordVersion::status).is_some_and(Status::is_pending);
    if !ends || write.after.status() != Some(Status::Failed) {
        return false;
    }
    let stamps = write.before.map(RecordVersion::stamps).unwrap_or_default();
    let foreign = stamps.holder().is_some() && !facts.actor.holds(&stamps);
    foreign || write.after.is_unlocked_by_controller()
}

/// The first stamp from the client with a wrong value, and the required value. `formerly` is the pipeline by the former
/// policy: the stamping replica may not have loaded the new policy.
#[must_use]
pub(crate) fn forged(
    Expected { stamps, phase }: &Expected,
    before: &Stamps,
    sent: &Stamps,
    formerly: Option<&str>,
    now: Timestamp,
) -> Option<(&'static str, Option<String>)> {
    let forged = sent.iter().find(|(key, value)| match stamps.get(key) {
        // An outdated note is not forged.
        _ if *key == INTERRUPTED && before.get(key) == Some(value) => false,
        _ if *key == PIPELINE && *phase == Phase::Starts && formerly == Some(*value) => false,
        _ if phase.clock() == Some(*key) => is_off(value, now),
        Some(must) => must != *value,
        None if matches!(*key, DRIVER | PROTECTED_BY) && *phase == Phase::Starts => false,
        None => *phase != Phase::Starts || matches!(*key, PIPELINE | INTERRUPTED | ENDED | HOOKS),
    });
    forged.map(|(key, _)| (key, stamps.get(key).map(str::to_owned)))
}

fn is_off(time: &str, now: Timestamp) -> bool {
    time.parse::<Timestamp>().map_or(true, |time| now.duration_since(time).abs() > TOLERANCE)
}

/// The stamps of a record that depend on the state of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterStamps {
    /// The [`driver()`] of the operation.
    pub driver: Option<String>,
    /// What protects the release by the stamps on its other records: see [`inherits_protector`].
    pub protected_by: Option<String>,
}

/// The release whose new record inherits the stamp of what protects it; `None` for requests that create no record of an operation.
#[must_use]
pub fn inherits_protector(facts: &Facts<'_>) -> Option<(Storage, ReleaseRef)> {
    let write = facts.record_write().filter(|write| write.before.is_none() && write.starts(facts.actor));
    let (id, _) = write.and_then(|_| facts.record())?;
    Some((id.storage, ReleaseRef::new(&id.namespace, &id.release)))
}

/// The stamp of the driver of a request that starts an operation; `None` for other requests. `naming` gives the known HelmReleases
/// that name some records and match.
pub fn driver(
    facts: &Facts<'_>,
    policy: &Policy,
    naming: impl FnOnce(&ReleaseRef, &dyn Fn(&Driver) -> bool) -> Vec<Driver>,
) -> Option<String> {
    let actor = facts.actor;
    facts.record_write().filter(|write| actor.is_service_account() && write.starts(actor))?;
    let (id, _) = facts.record().filter(|(id, _)| id.storage == Storage::Secret)?;
    let records = ReleaseRef::new(&id.namespace, &id.release);
    let drivers = naming(&records, &|driver| owners::works_for(driver, actor, policy));
    owners::only_driver(&records, &drivers).map(|driver| driver.to_string())
}

/// The patch that gives a written record, override, Freeze or operation its stamps; `None` if they are correct, and for other objects. `void`
/// is the reason why an override opens nothing. A record that does not start an operation is created with stamps only by a tool that
/// restores it.
///
/// The patch changes only metadata: after a change of the data, Flux would reinstall at every reconcile. An object that carries its
/// operation has a place in that for the holder.
#[must_use]
pub fn stamp(
    facts: &Facts<'_>,
    policy: &Policy,
    void: Option<&str>,
    ClusterStamps { driver, protected_by }: ClusterStamps,
    now: Timestamp,
) -> Option<Patch> {
    if let Subject::Own(write) = &facts.subject {
        return creator::patch(write, facts.actor.name, void);
    }
    if let Subject::Declaration(declaration) = &facts.subject {
        let [holder, _] = owners::holders_of_operation(declaration, stamped_user(facts.actor.name))?;
        return owners::naming_holder(declaration, holder.as_deref());
    }
    let write = facts.record_write()?;
    let Expected { mut stamps, phase } = expected(facts, &write, now);
    if phase != Phase::Starts && write.before.is_none() && policy.tools.contains(facts.actor.name) {
        return None;
    }
    if phase == Phase::Starts {
        stamps.set_or_remove(DRIVER, driver);
        if write.before.is_none() {
            stamps.set_or_remove(PROTECTED_BY, protected_by);
        }
    }
    let sent = write.after.stamps();
    if sent == stamps {
        return None;
    }
    let set = stamps.iter().filter(|(key, value)| sent.get(key) != Some(value));
    let removed = sent.iter().filter(|(key, _)| stamps.get(key).is_none()).map(|(key, _)| key);
    Some(annotations::patch(&write.after.stored.metadata, set, removed))
}
