//! The holder stamp: who started the transition of a record, and when.
//!
//! Helm does not record a holder and drops annotations at every PUT. The mutating half therefore writes these
//! annotations when a transition starts and restores them at every later write. The validating half refuses wrong
//! values. A missing stamp was lost in an outage and is never a reason to refuse. A record that another user fails also
//! gets a note of the interrupted operation. An override and a Freeze are stamped with their [creator], and an override that is void is
//! marked.

mod annotations;
pub(crate) mod creator;
pub mod recording;

use jiff::{SignedDuration, Timestamp, Unit};

use super::facts::{Actor, ActorKind, Facts, RecordSide, RecordWrite, Subject};
use super::json::Patch;
use super::release::record::{Hooks, truncated};
use super::release::stamps::{CHART, ENDED, HOLDER, HOOKS, INTERRUPTED, PIPELINE, STARTED, TARGET_NAMESPACE};
use super::release::{InterruptedOperation, Revision, Stamps, Status};

/// The allowed distance between the time that one replica stamped and the clock of the replica that checks it. The API
/// server cuts off a mutating request after 34 seconds; the rest is clock skew.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(120);

/// The longest user name that is stamped, in bytes. All annotations of an object share 256 KiB, so a larger stamp could make the API
/// server refuse the write that it belongs to. The stamp is compared, so a name is stamped whole or not at all: the holder is then
/// unknown, as after a lost stamp. The names that authenticators give have some hundred bytes.
const MAX_STAMPED_USER_BYTES: usize = 4 * 1024;

/// The stamps that a write of a record must carry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) stamps: Stamps,
    pub(crate) phase: Phase,
}

/// What a write does to the transition of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It starts one. Stamps whose values the request does not contain are left out.
    Starts,
    /// It ends one.
    Ends,
    /// Neither: the stamps of the stored object stay.
    Keeps,
}

impl Phase {
    /// The stamp that is the time of this write.
    fn clock(self) -> Option<&'static str> {
        match self {
            Self::Starts => Some(STARTED),
            Self::Ends => Some(ENDED),
            Self::Keeps => None,
        }
    }
}

/// The stamps that a write of a record must carry.
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
        return Expected { stamps, phase: Phase::Starts };
    }
    let mut stamps = write.before.map(RecordSide::stamps).unwrap_or_default();
    stamps.set_or_remove(INTERRUPTED, interrupted_note(facts, write));
    stamps.set_or_remove(HOOKS, missing_hooks(facts, write));
    if !write.ends() {
        return Expected { stamps, phase: Phase::Keeps };
    }
    stamps.set(ENDED, time);
    Expected { stamps, phase: Phase::Ends }
}

/// A user name as it is stamped; `None` if it is too long.
fn stamped_user(user: &str) -> Option<&str> {
    (user.len() <= MAX_STAMPED_USER_BYTES).then_some(user)
}

/// The pipeline that holds an operation which this user starts; `None` if the user alone holds it, or if the stamp would be too long.
#[must_use]
pub(crate) fn stamped_pipeline(actor: &Actor<'_>) -> Option<String> {
    actor.session?.stamp().filter(|stamp| stamp.len() <= MAX_STAMPED_USER_BYTES)
}

/// The interrupted operation that a written record must note. If another user ends the operation of this record, that
/// operation. Otherwise the note on the stored record, until a promotion of this record drops it. The promotion of a later one
/// leaves it, and it counts no more: an operation may also die between the two writes.
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

/// The digest of the hooks that a written record must come back to: a filtered test leaves some of them out while it runs.
fn missing_hooks(facts: &Facts<'_>, write: &RecordWrite<'_>) -> Option<String> {
    let (before, after) = (write.before?, write.after);
    let stamped = before.stamps().get(HOOKS).map(str::to_owned);
    let (Some(old), Some(new)) = (before.record(), after.record()) else {
        return stamped;
    };
    if old.has_hooks_like(new) {
        return stamped;
    }
    let digest = |side: &RecordSide<'_>| side.hooks(facts.effort).map(Hooks::digest);
    let whole = stamped.or_else(|| digest(before))?;
    (digest(after).as_ref() != Some(&whole)).then_some(whole)
}

/// Whether a person removes the note and no other stamp: the interrupted operation is not to be finished. Helm clients
/// drop all annotations of a record at once, with another body, and do not mean to remove the note.
fn is_note_removed(facts: &Facts<'_>, write: &RecordWrite<'_>, before: &Stamps) -> bool {
    let others = |stamps: &Stamps| stamps.iter().filter(|(key, _)| *key != INTERRUPTED).count();
    let after = write.after.stamps();
    facts.actor.kind == ActorKind::Person
        && after.get(INTERRUPTED).is_none()
        && others(&after) == others(before)
        && (others(before) > 0 || write.same_payload)
}

/// Whether somebody other than the holder fails a pending record. Flux does so under the account of the operation, and
/// says so in the description.
fn is_unlocked(facts: &Facts<'_>, write: &RecordWrite<'_>) -> bool {
    let ends = write.before.and_then(RecordSide::status).is_some_and(Status::is_pending);
    if !ends || write.after.status() != Some(Status::Failed) {
        return false;
    }
    let stamps = write.before.map(RecordSide::stamps).unwrap_or_default();
    let foreign = stamps.holder().is_some() && !facts.actor.holds(&stamps);
    foreign || write.after.is_unlocked_by_controller()
}

/// The first stamp from the client with a wrong value, and the required value. `formerly` is the pipeline by the policy before the
/// one in force: the stamping replica may not have loaded the new one.
#[must_use]
pub(crate) fn forged(
    Expected { stamps, phase }: &Expected,
    before: &Stamps,
    sent: &Stamps,
    formerly: Option<&str>,
    now: Timestamp,
) -> Option<(&'static str, Option<String>)> {
    let off = |time: &str| time.parse::<Timestamp>().map_or(true, |time| now.duration_since(time).abs() > TOLERANCE);
    let wrong = |(key, value): &(&'static str, &str)| match stamps.get(key) {
        // An outdated note is not forged.
        _ if *key == INTERRUPTED && before.get(key) == Some(value) => false,
        _ if *key == PIPELINE && *phase == Phase::Starts && formerly == Some(*value) => false,
        _ if phase.clock() == Some(*key) => off(value),
        Some(must) => must != *value,
        None => *phase != Phase::Starts || matches!(*key, PIPELINE | INTERRUPTED | ENDED | HOOKS),
    };
    sent.iter().find(wrong).map(|(key, _)| (key, stamps.get(key).map(str::to_owned)))
}

/// The patch that gives a written record, override or Freeze its stamps; `None` if it has them, or is none of these. `void` is why an
/// override opens nothing.
///
/// The patch changes only metadata: after a change of the data Flux would reinstall at every reconcile.
#[must_use]
pub fn stamp(facts: &Facts<'_>, void: Option<&str>, now: Timestamp) -> Option<Patch> {
    if let Subject::Own(write) = &facts.subject {
        return creator::patch(write, facts.actor.name, void);
    }
    let write = facts.record_write()?;
    // A record that is created in another status than pending is left to the validating half.
    let Expected { stamps, .. } =
        Some(expected(facts, &write, now)).filter(|it| it.phase == Phase::Starts || write.before.is_some())?;
    let sent = write.after.stamps();
    if sent == stamps {
        return None;
    }
    let set = stamps.iter().filter(|(key, value)| sent.get(key) != Some(value));
    let removed = sent.iter().filter(|(key, _)| stamps.get(key).is_none()).map(|(key, _)| key);
    Some(annotations::patch(&write.after.stored.metadata, set, removed))
}
