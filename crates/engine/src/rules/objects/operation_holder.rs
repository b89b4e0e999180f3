//! Who holds a release, from the perspective of the user who sends a request, and which of its records say what it declares.

use jiff::Timestamp;

use crate::evidence::{CandidateRecords, RecordRef};
use crate::facts::Actor;
use crate::policy::Policy;
use crate::release::{Entry, History, Status};
use crate::rules::undecided::Undecided;

/// Who holds a release: the actor of a request, another user, or nobody.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OperationHolder<'h> {
    /// The release does not exist or is uninstalled. Objects that still have its marks were kept, and belong to nobody.
    Gone,
    /// The actor's own operation is in flight, or has just failed: a cancelled operation may finish its work.
    Actor,
    /// Another user's operation is in flight on this record.
    Other(&'h Entry),
    /// An operation is in flight on this record, but its stamp is lost.
    Unknown(&'h Entry),
    /// No operation is in flight, or it is stuck. This is the newest record.
    Nobody(&'h Entry),
}

/// Who holds the release with these records. `is_stale` says whether the operation of a record is stuck, and is called only if
/// the result depends on it.
pub(crate) fn operation_holder<'h>(
    history: &'h History,
    actor: Actor<'_>,
    policy: &Policy,
    now: Timestamp,
    is_stale: impl FnOnce(&Entry) -> Result<bool, Undecided>,
) -> Result<OperationHolder<'h>, Undecided> {
    let Some(newest) = history.newest().filter(|newest| newest.status != Status::Uninstalled) else {
        return Ok(OperationHolder::Gone);
    };
    let holds = actor.holds(&newest.stamps);
    if newest.status.is_in_flight() {
        return Ok(match newest.stamps.holder() {
            _ if holds => OperationHolder::Actor,
            // The age of an uninstall is only in its stamp, which is lost.
            None if newest.status == Status::Uninstalling => OperationHolder::Unknown(newest),
            _ if is_stale(newest)? => OperationHolder::Nobody(newest),
            Some(_) => OperationHolder::Other(newest),
            None => OperationHolder::Unknown(newest),
        });
    }
    let recent = |failed: Timestamp| now.duration_since(failed) <= policy.grace_after_failure;
    if holds && newest.status == Status::Failed && newest.stamps.ended().or(newest.created).is_some_and(recent) {
        return Ok(OperationHolder::Actor);
    }
    Ok(OperationHolder::Nobody(newest))
}

/// The records whose manifests say what the release declares: during an operation the record in flight, and the newest deployed
/// one.
pub(crate) fn declaring_records(history: &History) -> impl Iterator<Item = &Entry> {
    let declaring = declaring_record(history);
    let replaced = history.newest_deployed().filter(|deployed| declaring.is_some_and(|it| it.name != deployed.name));
    declaring.into_iter().chain(replaced)
}

/// The record whose manifest counts first: the record in flight, else the newest deployed one, else the newest.
fn declaring_record(history: &History) -> Option<&Entry> {
    let newest = history.newest();
    newest.filter(|newest| newest.status.is_in_flight()).or(history.newest_deployed()).or(newest)
}

/// The record whose manifest says what a release declares.
pub(crate) fn declaring(candidate: &CandidateRecords) -> Option<RecordRef> {
    declaring_record(&candidate.history).map(|record| record_ref(candidate, record))
}

/// One of the records.
pub(super) fn record_ref(candidate: &CandidateRecords, record: &Entry) -> RecordRef {
    RecordRef {
        storage: candidate.storage,
        namespace: candidate.namespace.clone(),
        name: record.name.clone(),
        uid: record.uid.clone(),
        resource_version: record.resource_version.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::Stamps;
    use crate::release::stamps::{ENDED, HOLDER};

    const NOW: &str = "2026-11-21T10:00:00Z";

    fn entry(revision: u64, status: Status, holder: &str, seconds_ago: i64) -> Entry {
        let now: Timestamp = NOW.parse().unwrap();
        let mut stamps = Stamps::default();
        if !holder.is_empty() {
            stamps.set(HOLDER, holder.to_owned());
        }
        let at = now.checked_sub(jiff::SignedDuration::from_secs(seconds_ago)).unwrap();
        if !status.is_in_flight() {
            stamps.set(ENDED, at.to_string());
        }
        Entry { created: Some(at), stamps, ..Entry::of_web(revision, status) }
    }

    fn holder_and_declaring(entries: &[Entry]) -> (&'static str, Option<u64>) {
        let history = History::new(entries.to_vec());
        let (policy, now) = (Policy::shipped().unwrap(), NOW.parse().unwrap());
        let stale = |entry: &Entry| Ok(policy.recovery.is_stale(entry.started(), now));
        let held_by = match operation_holder(&history, Actor::named("alice", &[]), &policy, now, stale).unwrap() {
            OperationHolder::Gone => "gone",
            OperationHolder::Actor => "actor",
            OperationHolder::Other(_) => "other",
            OperationHolder::Unknown(_) => "unknown",
            OperationHolder::Nobody(_) => "nobody",
        };
        (held_by, declaring_record(&history).map(|entry| entry.revision.0))
    }

    #[test]
    fn holder_and_declaring_record_follow_the_newest_records() {
        use Status::{Deployed, Failed, PendingUpgrade, Superseded, Uninstalled, Uninstalling};
        let deployed = || entry(1, Deployed, "alice", 9_000);
        for (entries, wanted) in [
            (vec![], ("gone", None)),
            (vec![entry(2, Uninstalled, "alice", 5)], ("gone", Some(2))),
            (vec![deployed()], ("nobody", Some(1))),
            (vec![deployed(), entry(2, PendingUpgrade, "alice", 5)], ("actor", Some(2))),
            (vec![deployed(), entry(2, PendingUpgrade, "alice", 5_000)], ("actor", Some(2))),
            (vec![deployed(), entry(2, PendingUpgrade, "bob", 5)], ("other", Some(2))),
            (vec![deployed(), entry(2, PendingUpgrade, "bob", 5_000)], ("nobody", Some(2))),
            (vec![deployed(), entry(2, PendingUpgrade, "", 5)], ("unknown", Some(2))),
            (vec![deployed(), entry(2, PendingUpgrade, "", 5_000)], ("nobody", Some(2))),
            (vec![entry(1, Uninstalling, "bob", 5)], ("other", Some(1))),
            // The age of the uninstall is only in its stamp, which is lost.
            (vec![entry(1, Uninstalling, "", 5_000)], ("unknown", Some(1))),
            (vec![deployed(), entry(2, Failed, "alice", 59)], ("actor", Some(1))),
            (vec![deployed(), entry(2, Failed, "alice", 61)], ("nobody", Some(1))),
            (vec![deployed(), entry(2, Failed, "bob", 5)], ("nobody", Some(1))),
            (vec![entry(1, Superseded, "alice", 5), entry(2, Failed, "", 5)], ("nobody", Some(2))),
        ] {
            assert_eq!(holder_and_declaring(&entries), wanted, "{entries:?}");
        }
    }
}
