//! The history that the records of a release show. A record keeps its last status, its creation time, and the stamps of its last
//! operation. The rest is inferred.

use interlock_engine::decision::TransitionKind;
use interlock_engine::release::{ReleaseRef, Revision, Stamps, Status};
use jiff::Timestamp;

use super::change::{Certainty, Change, ChangeSource, ChangedRelease};

/// The part of a record that shows changes.
#[derive(Debug, Clone)]
pub(super) struct RecordTrace {
    pub(super) revision: Revision,
    pub(super) status: Status,
    /// By the API server's clock.
    pub(super) created: Timestamp,
    /// The last write of a client, by the API server's clock.
    pub(super) written: Timestamp,
    pub(super) stamps: Stamps,
    pub(super) chart: Option<String>,
    /// The client's description; empty if the body cannot be decoded.
    pub(super) description: String,
}

/// The changes that the records of one release show. All records are in objects of one kind, `storage`.
pub(super) fn changes(release: &ReleaseRef, storage: &'static str, records: &[RecordTrace]) -> Vec<Change> {
    let changes = records.iter().map(|record| {
        let mut below = records.iter().filter(|other| other.revision < record.revision);
        let is_replaced = !below.any(|other| other.status == Status::Deployed);
        Trace { release, storage, record, is_replaced }.changes()
    });
    changes.flatten().collect()
}

struct Trace<'t> {
    release: &'t ReleaseRef,
    storage: &'static str,
    record: &'t RecordTrace,
    /// Whether no earlier revision is deployed any more.
    is_replaced: bool,
}

impl Trace<'_> {
    fn changes(&self) -> Vec<Change> {
        let record = self.record;
        let mut changes = vec![self.start()];
        let pending = changes[0].to;
        match record.status {
            Status::PendingInstall | Status::PendingUpgrade | Status::PendingRollback | Status::Unknown => {}
            Status::Deployed | Status::Failed => changes.push(self.end(record.status, pending, record.written)),
            Status::Superseded => {
                let before = self.result();
                changes.push(self.end(before, pending, record.created));
                changes.push(Change {
                    range: Some((record.created, record.written)),
                    ..self.to(record.written, Some(before), Status::Superseded)
                });
            }
            Status::Uninstalling | Status::Uninstalled => {
                let before = self.result();
                changes.push(self.end(before, pending, record.created));
                let uninstall = self.uninstall(before);
                let started = uninstall.time;
                changes.push(uninstall);
                if record.status == Status::Uninstalled {
                    let seconds = seconds(started, record.stamps.ended());
                    let end = self.at_its_end(Some(Status::Uninstalling), Status::Uninstalled, record.written);
                    changes.push(Change { seconds, ..end });
                }
            }
        }
        changes
    }

    /// Whether the record was uninstalled. Its stamps then belong to the uninstall, and those of the earlier operation are gone.
    fn is_uninstalled(&self) -> bool {
        matches!(self.record.status, Status::Uninstalling | Status::Uninstalled)
    }

    fn start(&self) -> Change {
        let record = self.record;
        let operation = match record.status {
            pending if pending.is_pending() => pending,
            _ if record.description.starts_with("Rollback") => Status::PendingRollback,
            _ if record.description.starts_with("Install") || record.revision == Revision(1) => Status::PendingInstall,
            _ => Status::PendingUpgrade,
        };
        let holder = record.stamps.holder().filter(|_| !self.is_uninstalled());
        let certainty = if holder.is_some() { Certainty::Stamped } else { Certainty::Inferred };
        let user = holder.map(str::to_owned);
        Change { certainty, holder: user.clone(), user, ..self.to(record.created, None, operation) }
    }

    /// The result of the operation of a record that was superseded or uninstalled later.
    fn result(&self) -> Status {
        // An uninstall replaces the description: "Deletion in progress (or silently failed)".
        let failed = if self.is_uninstalled() { !self.is_replaced } else { self.is_described_as_failed() };
        if failed { Status::Failed } else { Status::Deployed }
    }

    /// Whether Helm wrote the description when an operation of this release failed, or Flux when it unlocked the record. Users
    /// choose any other text.
    fn is_described_as_failed(&self) -> bool {
        let description = &self.record.description;
        ["Release", "Upgrade", "Rollback"]
            .into_iter()
            .any(|act| description.starts_with(&format!("{act} \"{}\" failed: ", self.release.name)))
            || description.starts_with("Release unlocked from stale '")
    }

    /// The end of the operation that created the record.
    fn end(&self, status: Status, pending: Option<Status>, guess: Timestamp) -> Change {
        if self.is_uninstalled() {
            let last = self.record.stamps.started().unwrap_or(self.record.written);
            return Change { range: Some((self.record.created, last)), ..self.to(guess, pending, status) };
        }
        let holder = self.record.stamps.holder().map(str::to_owned);
        let seconds = seconds(self.record.created, self.record.stamps.ended());
        Change { holder, seconds, ..self.at_its_end(pending, status, guess) }
    }

    /// A change at the stamped end of an operation. Without a stamp, its time is a guess between creation and last write.
    fn at_its_end(&self, from: Option<Status>, to: Status, guess: Timestamp) -> Change {
        match self.record.stamps.ended() {
            Some(ended) => Change { certainty: Certainty::Stamped, ..self.to(ended, from, to) },
            None => Change { range: Some((self.record.created, self.record.written)), ..self.to(guess, from, to) },
        }
    }

    fn uninstall(&self, before: Status) -> Change {
        let RecordTrace { stamps, written, created, .. } = self.record;
        let user = stamps.holder().map(str::to_owned);
        match stamps.started() {
            Some(started) => {
                let certainty = if user.is_some() { Certainty::Stamped } else { Certainty::Inferred };
                let start = self.to(started, Some(before), Status::Uninstalling);
                Change { certainty, holder: user.clone(), user, ..start }
            }
            None => {
                Change { range: Some((*created, *written)), ..self.to(*written, Some(before), Status::Uninstalling) }
            }
        }
    }

    /// A change to a status, with the details that the status alone shows.
    fn to(&self, time: Timestamp, from: Option<Status>, to: Status) -> Change {
        let ReleaseRef { namespace, name } = self.release.clone();
        let revision = Some(self.record.revision.0);
        let release = ChangedRelease { namespace, release: name, revision, storage: self.storage };
        let kind = TransitionKind::of(from, Some(to)).unwrap_or(TransitionKind::Deployed);
        Change {
            from,
            to: Some(to),
            chart: self.record.chart.clone(),
            certainty: Certainty::Inferred,
            ..Change::new(time, release, kind, ChangeSource::Record)
        }
    }
}

fn seconds(start: Timestamp, end: Option<Timestamp>) -> Option<u64> {
    u64::try_from(end?.duration_since(start).as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use interlock_engine::release::stamps::{ENDED, HOLDER, STARTED};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_795_000_000 + second).unwrap()
    }

    /// A record that was created at a second and written last at another, with the stamps of an operation by alice.
    fn record(
        revision: u64,
        status: Status,
        [created, written]: [i64; 2],
        stamped: &[(&'static str, i64)],
    ) -> RecordTrace {
        let mut stamps = Stamps::default();
        for (key, second) in stamped {
            stamps.set(HOLDER, "alice".to_owned());
            stamps.set(key, at(*second).to_string());
        }
        let (chart, description) = (Some("demo-1.0.0".to_owned()), "Upgrade complete".to_owned());
        RecordTrace {
            revision: Revision(revision),
            status,
            created: at(created),
            written: at(written),
            stamps,
            chart,
            description,
        }
    }

    fn lines(records: &[RecordTrace]) -> Vec<String> {
        let line = |it: &Change| {
            let second = it.time.as_second() - 1_795_000_000;
            let (user, certainty) = (it.user.as_deref().unwrap_or("-"), it.certainty.as_str());
            let seconds = it.seconds.map(|seconds| format!(" {seconds}s")).unwrap_or_default();
            format!("{second} v{} {} {user} {certainty}{seconds}", it.release.revision.unwrap(), it.transition)
        };
        changes(&ReleaseRef::new("shop", "web"), "Secret", records).iter().map(line).collect()
    }

    #[test]
    fn stamps_name_the_user_and_the_end_of_an_operation() {
        let first = record(1, Status::Superseded, [0, 33], &[(STARTED, 0), (ENDED, 5)]);
        let second = record(2, Status::Deployed, [30, 40], &[(STARTED, 30), (ENDED, 34)]);
        let wanted = [
            "0 v1 install alice stamped",
            "5 v1 deployed - stamped 5s",
            "33 v1 superseded - inferred",
            "30 v2 upgrade alice stamped",
            "34 v2 deployed - stamped 4s",
        ];
        assert_eq!(lines(&[first, second]), wanted);
    }

    #[test]
    fn without_stamps_a_record_still_shows_its_history() {
        let failed = RecordTrace {
            description: "Upgrade \"web\" failed: timed out".to_owned(),
            ..record(2, Status::Failed, [30, 40], &[])
        };
        let rollback =
            RecordTrace { description: "Rollback to 1".to_owned(), ..record(3, Status::Deployed, [50, 55], &[]) };
        let pending = record(4, Status::PendingUpgrade, [60, 60], &[]);
        let wanted = [
            "30 v2 upgrade - inferred",
            "40 v2 failed - inferred",
            "50 v3 rollback - inferred",
            "55 v3 deployed - inferred",
            "60 v4 upgrade - inferred",
        ];
        assert_eq!(lines(&[failed, rollback, pending]), wanted);
    }

    #[test]
    fn stamps_of_an_uninstalled_record_belong_to_the_uninstall() {
        let gone = record(2, Status::Uninstalled, [30, 90], &[(STARTED, 80), (ENDED, 90)]);
        let wanted = [
            "30 v2 upgrade - inferred",
            "30 v2 deployed - inferred",
            "80 v2 uninstall alice stamped",
            "90 v2 uninstalled - stamped 10s",
        ];
        assert_eq!(lines(std::slice::from_ref(&gone)), wanted);
        // The newer deployed revision shows that the operation of this record failed.
        let others = [record(1, Status::Deployed, [0, 5], &[]), gone];
        assert_eq!(lines(&others)[3], "30 v2 failed - inferred");
    }

    #[test]
    fn only_the_clients_description_makes_a_past_revision_failed() {
        for (description, wanted) in [
            ("Upgrade \"web\" failed: timed out", "failed"),
            ("Release \"web\" failed: timed out", "failed"),
            ("Rollback \"web\" failed: timed out", "failed"),
            ("Release unlocked from stale 'pending-upgrade' state", "failed"),
            ("retry after failed import", "deployed"),
            ("Upgrade \"api\" failed: see the other release", "deployed"),
            ("Upgrade complete", "deployed"),
        ] {
            let past =
                RecordTrace { description: description.to_owned(), ..record(2, Status::Superseded, [30, 90], &[]) };
            assert_eq!(lines(&[past])[1], format!("30 v2 {wanted} - inferred"), "{description}");
        }
    }

    #[test]
    fn a_healthy_release_that_is_being_uninstalled_did_not_fail() {
        let description = "Deletion in progress (or silently failed)".to_owned();
        let leaving = RecordTrace { description, ..record(2, Status::Uninstalling, [30, 80], &[(STARTED, 80)]) };
        assert_eq!(lines(&[leaving])[1], "30 v2 deployed - inferred");
    }
}
