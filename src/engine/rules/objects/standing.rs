//! How somebody stands to a release: whether the release is at rest, or in flight in their hands or in another's.

use jiff::Timestamp;

use crate::engine::policy::Policy;
use crate::engine::release::{Entry, History, Status};
use crate::engine::rules::need::Need;

/// How an actor stands to a release.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing<'h> {
    /// There is no such release, or it is uninstalled: what bears its marks was kept, and belongs to nobody.
    Gone,
    /// The actor's own operation is in flight, or has just failed: a cancelled one ends what it has begun.
    Holder,
    /// Another's operation is in flight on this record.
    Foreign(&'h Entry),
    /// An operation is in flight on this record, and its stamp was lost.
    Unknown(&'h Entry),
    /// No operation is in flight, or one is stuck; this is the newest record.
    AtRest(&'h Entry),
}

/// How an actor stands to the release with these records. Whether the operation of a record is stuck is asked of `is_stale`,
/// where it matters.
pub(crate) fn standing<'h>(
    history: &'h History,
    actor: &str,
    policy: &Policy,
    now: Timestamp,
    is_stale: impl FnOnce(&Entry) -> Result<bool, Need>,
) -> Result<Standing<'h>, Need> {
    let Some(newest) = history.newest().filter(|newest| newest.status != Status::Uninstalled) else {
        return Ok(Standing::Gone);
    };
    let holds = newest.stamps.holder() == Some(actor);
    if newest.status.is_in_flight() {
        return Ok(match newest.stamps.holder() {
            _ if holds => Standing::Holder,
            _ if is_stale(newest)? => Standing::AtRest(newest),
            Some(_) => Standing::Foreign(newest),
            None => Standing::Unknown(newest),
        });
    }
    let recent = |failed: Timestamp| now.duration_since(failed) <= policy.grace_after_failure;
    if holds && newest.status == Status::Failed && newest.written.or(newest.created).is_some_and(recent) {
        return Ok(Standing::Holder);
    }
    Ok(Standing::AtRest(newest))
}

/// The record whose manifest says what the release declares: the one in flight, the deployed one, or the newest there is.
pub(crate) fn declaring(history: &History) -> Option<&Entry> {
    let newest = history.newest();
    newest.filter(|newest| newest.status.is_in_flight()).or(history.newest_deployed()).or(newest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::release::Stamps;
    use crate::engine::release::stamps::HOLDER;

    const NOW: &str = "2026-11-21T10:00:00Z";

    fn entry(revision: u64, status: Status, holder: &str, seconds_ago: i64) -> Entry {
        let now: Timestamp = NOW.parse().unwrap();
        let mut stamps = Stamps::default();
        if !holder.is_empty() {
            stamps.set(HOLDER, holder.to_owned());
        }
        let at = now.checked_sub(jiff::SignedDuration::from_secs(seconds_ago)).unwrap();
        Entry { created: Some(at), written: Some(at), stamps, ..Entry::of_web(revision, status) }
    }

    fn told(entries: &[Entry]) -> (&'static str, Option<u64>) {
        let history = History::new(entries.to_vec());
        let (policy, now) = (Policy::shipped().unwrap(), NOW.parse().unwrap());
        let stale = |entry: &Entry| Ok(policy.recovery.is_stale(entry.started(), now));
        let standing = match standing(&history, "alice", &policy, now, stale).unwrap() {
            Standing::Gone => "gone",
            Standing::Holder => "holder",
            Standing::Foreign(_) => "foreign",
            Standing::Unknown(_) => "unknown",
            Standing::AtRest(_) => "at rest",
        };
        (standing, declaring(&history).map(|entry| entry.revision.0))
    }

    #[test]
    fn who_may_write_and_which_record_declares() {
        use Status::{Deployed, Failed, PendingUpgrade, Superseded, Uninstalled, Uninstalling};
        let deployed = || entry(1, Deployed, "alice", 9_000);
        for (entries, wanted) in [
            (vec![], ("gone", None)),
            (vec![entry(2, Uninstalled, "alice", 5)], ("gone", Some(2))),
            (vec![deployed()], ("at rest", Some(1))),
            (vec![deployed(), entry(2, PendingUpgrade, "alice", 5)], ("holder", Some(2))),
            (vec![deployed(), entry(2, PendingUpgrade, "alice", 5_000)], ("holder", Some(2))),
            (vec![deployed(), entry(2, PendingUpgrade, "bob", 5)], ("foreign", Some(2))),
            (vec![deployed(), entry(2, PendingUpgrade, "bob", 5_000)], ("at rest", Some(2))),
            (vec![deployed(), entry(2, PendingUpgrade, "", 5)], ("unknown", Some(2))),
            (vec![entry(1, Uninstalling, "bob", 5)], ("foreign", Some(1))),
            (vec![deployed(), entry(2, Failed, "alice", 59)], ("holder", Some(1))),
            (vec![deployed(), entry(2, Failed, "alice", 61)], ("at rest", Some(1))),
            (vec![deployed(), entry(2, Failed, "bob", 5)], ("at rest", Some(1))),
            (vec![entry(1, Superseded, "alice", 5), entry(2, Failed, "", 5)], ("at rest", Some(2))),
        ] {
            assert_eq!(told(&entries), wanted, "{entries:?}");
        }
    }
}
