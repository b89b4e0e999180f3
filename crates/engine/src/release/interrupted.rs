//! The note about an interrupted operation: the chart that it was installing.
//!
//! If the record of a dead operation is deleted or unlocked, the release looks as if the operation had never started,
//! although parts of it are applied. A later version may assume that all parts are.

use std::fmt;
use std::str::FromStr;

use super::stamps::INTERRUPTED;
use super::{Entry, History, Revision, Status};

/// An interrupted operation: `<chart>-<version>@<revision>` in the annotation
/// [`interlock.dev/interrupted`](INTERRUPTED).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptedOperation {
    /// `name-version` of the chart.
    pub chart: String,
    /// The revision of the pending record.
    pub revision: Revision,
}

/// The note cannot be parsed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected <chart>-<version>@<revision>")]
pub struct InvalidNote;

impl fmt::Display for InterruptedOperation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}@{}", self.chart, self.revision)
    }
}

impl FromStr for InterruptedOperation {
    type Err = InvalidNote;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (chart, revision) = text.rsplit_once('@').ok_or(InvalidNote)?;
        Ok(Self { chart: chart.to_owned(), revision: revision.parse().map_err(|_| InvalidNote)? })
    }
}

impl InterruptedOperation {
    /// The operation of a deleted pending record; `None` for other records, and if the stamp was lost. An uninstall
    /// first writes `uninstalling`, so only a manual deletion removes a pending record.
    #[must_use]
    pub fn of(lost: &Entry) -> Option<Self> {
        let chart = lost.stamps.chart().filter(|_| lost.status.is_pending())?;
        Some(Self { chart: chart.to_owned(), revision: lost.revision })
    }
}

impl History {
    /// The record that gets the note about a deleted pending record: the newest remaining record, with any status. A
    /// crash between the last two writes of an upgrade leaves a superseded record. `None` if a newer record exists
    /// (pruning deletes old records from the middle), if no record remains, or if the release was reinstalled since.
    #[must_use]
    pub fn heir_of(&self, lost: &Entry) -> Option<&Entry> {
        if self.above(lost.revision).next().is_some() {
            return None;
        }
        let heir = self.below(lost.revision).next()?;
        (heir.created <= lost.created).then_some(heir)
    }

    /// The newest interrupted operation that no later operation completed, and the record with its note.
    ///
    /// The next promotion removes a note, so no record below the newest deployed one has a note that counts. If no
    /// record is deployed, the newest superseded or uninstalled record was promoted last.
    #[must_use]
    pub fn interrupted(&self) -> Option<(&Entry, InterruptedOperation)> {
        let promoted = self
            .newest_deployed()
            .or_else(|| self.iter().find(|entry| matches!(entry.status, Status::Superseded | Status::Uninstalled)));
        let last = promoted.map(|entry| entry.revision);
        let mut since = self.iter().take_while(|entry| last.is_none_or(|last| entry.revision >= last));
        since.find_map(|entry| Some((entry, entry.stamps.get(INTERRUPTED)?.parse().ok()?)))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::release::Stamps;
    use crate::release::stamps::CHART;

    fn entry(revision: u64, status: Status, key: &'static str, stamp: &str) -> Entry {
        let mut stamps = Stamps::default();
        if !stamp.is_empty() {
            stamps.set(key, stamp.to_owned());
        }
        let created = Timestamp::from_second(1_000 + i64::try_from(revision).unwrap()).ok();
        Entry { created, stamps, ..Entry::of_web(revision, status) }
    }

    #[test]
    fn a_note_survives_a_round_trip() {
        let note = InterruptedOperation { chart: "shop-2.0.0@rc".to_owned(), revision: Revision(3) };
        assert_eq!(note.to_string().parse(), Ok(note));
        for wrong in ["", "shop-2.0.0", "shop@", "shop@x"] {
            assert_eq!(wrong.parse::<InterruptedOperation>(), Err(InvalidNote), "{wrong}");
        }
    }

    #[test]
    fn the_newest_record_below_a_deleted_one_gets_the_note() {
        let heir = |records: Vec<Entry>, lost: &Entry| History::new(records).heir_of(lost).map(|heir| heir.revision.0);
        let lost = entry(5, Status::PendingUpgrade, CHART, "shop-2.0.0");
        let deployed = || entry(3, Status::Deployed, CHART, "");
        for status in Status::ALL {
            assert_eq!(heir(vec![deployed(), entry(4, status, CHART, "")], &lost), Some(4), "{status}");
        }
        assert_eq!(heir(vec![deployed()], &lost), Some(3));
        // Another operation has used the revision before the note was written.
        assert_eq!(heir(vec![deployed(), entry(5, Status::PendingUpgrade, CHART, "")], &lost), Some(3));
        assert_eq!(heir(vec![deployed(), entry(6, Status::Failed, CHART, "")], &lost), None);
        assert_eq!(heir(vec![entry(5, Status::Deployed, CHART, "")], &lost), None);
        assert_eq!(heir(vec![], &lost), None);
        let reborn = Entry { created: Timestamp::from_second(9_000).ok(), ..entry(1, Status::Deployed, CHART, "") };
        assert_eq!(heir(vec![reborn], &lost), None);
    }

    #[test]
    fn only_a_pending_record_with_its_chart_leaves_a_note() {
        let noted = |entry: &Entry| InterruptedOperation::of(entry).map(|note| note.to_string());
        assert_eq!(noted(&entry(5, Status::PendingUpgrade, CHART, "shop-2.0.0")).as_deref(), Some("shop-2.0.0@5"));
        assert_eq!(noted(&entry(5, Status::PendingUpgrade, CHART, "")), None);
        assert_eq!(noted(&entry(5, Status::Uninstalling, CHART, "shop-2.0.0")), None);
    }

    #[test]
    fn a_note_counts_until_a_newer_revision_is_deployed() {
        let interrupted = |records: Vec<Entry>| History::new(records).interrupted().map(|(_, note)| note.to_string());
        let note = "shop-2.0.0@2";
        assert_eq!(interrupted(vec![entry(1, Status::Deployed, INTERRUPTED, note)]).as_deref(), Some(note));
        let unlocked = || entry(2, Status::Failed, INTERRUPTED, note);
        let before = || entry(1, Status::Deployed, INTERRUPTED, "");
        assert_eq!(interrupted(vec![before(), unlocked()]).as_deref(), Some(note));
        // The retry failed: the operation is still not finished.
        assert_eq!(interrupted(vec![before(), unlocked(), entry(3, Status::Failed, CHART, "")]).as_deref(), Some(note));
        assert_eq!(interrupted(vec![before(), unlocked(), entry(3, Status::Deployed, CHART, "")]), None);
        assert_eq!(interrupted(vec![unlocked()]).as_deref(), Some(note));
        // The upgrade died between its last two writes: nothing is deployed.
        let superseded = |revision, note| entry(revision, Status::Superseded, INTERRUPTED, note);
        assert_eq!(interrupted(vec![superseded(1, note)]).as_deref(), Some(note));
        assert_eq!(interrupted(vec![superseded(1, note), entry(2, Status::Failed, CHART, "")]).as_deref(), Some(note));
        assert_eq!(interrupted(vec![superseded(1, note), superseded(2, "")]), None, "revision 2 was deployed since");
        assert_eq!(interrupted(vec![superseded(1, note), entry(2, Status::Deployed, CHART, "")]), None);
        let left = |status| vec![before(), entry(2, status, INTERRUPTED, "shop-3.0.0@3")];
        for status in [Status::PendingUpgrade, Status::Uninstalling, Status::Unknown] {
            assert_eq!(interrupted(left(status)).as_deref(), Some("shop-3.0.0@3"), "{status}");
        }
        assert_eq!(interrupted(vec![entry(1, Status::Deployed, INTERRUPTED, "junk")]), None);
    }
}
