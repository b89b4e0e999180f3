//! The content of the reports, in memory. Events and scans fill the store, and the caller writes the reports.

use std::collections::{BTreeMap, HashMap, HashSet};

use interlock_engine::decision::ObjectReference;
use interlock_engine::release::ReleaseRef;
use jiff::{SignedDuration, Timestamp};

use super::body::{FoundBy, ReportBody};
use super::entry::{EntryKey, ObservedEvent, ReportEntry};
use super::writer::StoredReport;
use crate::cluster_name::ClusterName;

/// The most entries of a release. A further entry replaces the oldest one.
const MAX_RELEASE_ENTRIES: usize = 50;

/// The most entries of all releases together. Each takes some KiB.
const MAX_ENTRIES: usize = 20_000;

/// The most entries of all releases in a namespace. Users who may write Events there can imitate Interlock, but must not fill the store.
const MAX_NAMESPACE_ENTRIES: usize = MAX_ENTRIES / 10;

/// The pause after a failed write of a report. Each further pause is twice as long, up to the maximum.
const WRITE_RETRY: SignedDuration = SignedDuration::from_secs(10);
const MAX_WRITE_RETRY: SignedDuration = SignedDuration::from_mins(10);

/// How many Events of a release are remembered with their counts. An Event that is dropped from this list is counted again if it is seen
/// again.
const MAX_RELEASE_EVENTS: usize = 200;

/// The content of the reports of all releases.
#[derive(Debug)]
pub(super) struct ReportStore {
    retention: SignedDuration,
    cluster: Option<ClusterName>,
    releases: HashMap<ReleaseRef, ReleaseFindings>,
    /// Whether a complete scan was recorded. It replaces the scan findings of loaded reports.
    scanned: bool,
}

#[derive(Debug, Default)]
struct ReleaseFindings {
    admission: BTreeMap<EntryKey, ReportEntry>,
    scan: BTreeMap<EntryKey, ReportEntry>,
    /// How many findings of each Event `admission` counts, and when the count last changed.
    events: BTreeMap<String, (u64, Timestamp)>,
    /// The content of the written report, if any.
    written: Option<String>,
    /// Whether the release had records. Only then can it lose them.
    recorded: bool,
    /// Whether the report may differ from the written one.
    dirty: bool,
    /// After a failed write: the pause and its end.
    pause: SignedDuration,
    not_before: Timestamp,
}

/// A report to write.
#[derive(Debug)]
pub(super) struct DueReport {
    pub(super) release: ReleaseRef,
    /// `None` if the report must be deleted.
    pub(super) report: Option<StoredReport>,
}

impl ReportStore {
    /// An empty store. Entries older than the retention expire. Each result names the cluster.
    pub(super) fn new(retention: SignedDuration, cluster: Option<ClusterName>) -> Self {
        Self { retention, cluster, releases: HashMap::new(), scanned: false }
    }

    /// Starts again from the existing reports. Keeps findings of a scan that ended in the meantime.
    pub(super) fn load(&mut self, reports: Vec<StoredReport>, now: Timestamp) {
        self.releases.retain(|_, findings| {
            let scan = std::mem::take(&mut findings.scan);
            *findings = ReleaseFindings { scan, dirty: true, ..ReleaseFindings::default() };
            !findings.scan.is_empty()
        });
        for StoredReport { release, content, events, body } in reports {
            let findings = self.releases.entry(release.clone()).or_default();
            findings.written = Some(content);
            findings.events = events.into_iter().map(|(uid, count)| (uid, (count, now))).collect();
            findings.recorded = body.scope.is_some();
            // Reports of other versions are written again in this version's format.
            findings.dirty = true;
            for (entry, origin) in body.results.into_iter().filter_map(|line| line.entry(&release)) {
                match origin {
                    FoundBy::Admission => _ = findings.admission.insert(entry.key(), entry),
                    FoundBy::Scan if self.scanned => {}
                    FoundBy::Scan => findings.keep_scanned(ReportEntry { last: now, ..entry }),
                }
            }
        }
    }

    /// Adds an Event. Returns whether there was room for it.
    pub(super) fn observe(&mut self, event: ObservedEvent, now: Timestamp) -> bool {
        let ObservedEvent { uid, mut entry, recorded } = event;
        // Otherwise an entry with a time in the future would stay too long.
        (entry.first, entry.last) = (entry.first.min(now), entry.last.min(now));
        if self.is_old(&entry, now) {
            return true;
        }
        let known = self.releases.get(&entry.release);
        if known.is_none_or(|findings| !findings.admission.contains_key(&entry.key())) && !self.has_room(&entry.release)
        {
            return false;
        }
        let findings = self.releases.entry(entry.release.clone()).or_default();
        findings.recorded |= recorded;
        let counted = findings.events.get(&uid).map_or(0, |(count, _)| *count);
        if entry.count <= counted {
            return true;
        }
        findings.events.insert(uid, (entry.count, entry.last));
        forget_oldest(&mut findings.events, MAX_RELEASE_EVENTS, |(_, last)| *last);
        if counted > 0 {
            entry.count -= counted;
            entry.first = entry.last;
        }
        match findings.admission.get_mut(&entry.key()) {
            Some(found) => found.merge(entry),
            None => _ = findings.admission.insert(entry.key(), entry),
        }
        forget_oldest(&mut findings.admission, MAX_RELEASE_ENTRIES, |entry| entry.last);
        findings.dirty = true;
        true
    }

    /// Drops the counts of all Events that no longer exist.
    pub(super) fn keep_events(&mut self, existing: &HashSet<String>) {
        for findings in self.releases.values_mut() {
            findings.events.retain(|uid, _| existing.contains(uid));
        }
    }

    /// Drops the count of a deleted Event. Its findings stay.
    pub(super) fn forget_event(&mut self, event: &ObservedEvent) {
        if let Some(findings) = self.releases.get_mut(&event.entry.release) {
            findings.events.remove(&event.uid);
        }
    }

    /// Replaces the findings of the previous scan. An incomplete scan removes no findings: old ones expire.
    pub(super) fn record_scan(&mut self, entries: Vec<ReportEntry>, is_complete: bool, now: Timestamp) {
        self.scanned |= is_complete;
        let room = MAX_ENTRIES.saturating_sub(entries.len());
        let mut before = HashMap::new();
        for (release, findings) in &mut self.releases {
            let scan = std::mem::take(&mut findings.scan);
            findings.dirty |= !scan.is_empty();
            before.insert(release.clone(), scan);
        }
        for entry in entries.into_iter().take(MAX_ENTRIES).map(ReportEntry::bounded) {
            let findings = self.releases.entry(entry.release.clone()).or_default();
            let known = before.get(&entry.release).and_then(|scan| scan.get(&entry.key()));
            let first = known.map_or(entry.first, |known| known.first.min(entry.first));
            findings.dirty = true;
            if findings.scan.len() < MAX_RELEASE_ENTRIES {
                findings.scan.insert(entry.key(), ReportEntry { first, last: now, ..entry });
            }
        }
        let earlier = before
            .into_iter()
            .filter(|_| !is_complete)
            .flat_map(|(release, scan)| scan.into_values().map(move |entry| (release.clone(), entry)));
        for (release, entry) in earlier.take(room) {
            self.releases.entry(release).or_default().keep_scanned(entry);
        }
    }

    /// Drops expired entries.
    pub(super) fn expire(&mut self, now: Timestamp) {
        let retention = self.retention;
        let is_old = |last: Timestamp| now.duration_since(last) >= retention;
        for findings in self.releases.values_mut() {
            let before = findings.admission.len() + findings.scan.len();
            findings.admission.retain(|_, entry| !is_old(entry.last));
            findings.scan.retain(|_, entry| !is_old(entry.last));
            findings.dirty |= findings.admission.len() + findings.scan.len() < before;
        }
        self.releases.retain(|_, findings| findings.dirty || findings.written.is_some() || !findings.is_empty());
    }

    /// The releases that had records.
    pub(super) fn recorded(&self) -> Vec<ReleaseRef> {
        let recorded = self.releases.iter().filter(|(_, findings)| findings.recorded && findings.has_entries());
        recorded.map(|(release, _)| release.clone()).collect()
    }

    /// Drops a deleted release. Keeps the counts of its Events, so that these do not add the release again.
    pub(super) fn forget(&mut self, release: &ReleaseRef) {
        if let Some(findings) = self.releases.get_mut(release) {
            findings.admission.clear();
            findings.scan.clear();
            findings.recorded = false;
            findings.dirty = true;
        }
    }

    /// The changed reports, at most `limit`. A report that could not be written waits for its retry. The caller must mark each as
    /// [written](Self::written) or [failed](Self::failed). `scope` returns the newest record of a release.
    pub(super) fn due(
        &mut self,
        limit: usize,
        now: Timestamp,
        scope: impl Fn(&ReleaseRef) -> Option<ObjectReference>,
    ) -> Vec<DueReport> {
        let mut due = Vec::new();
        for (release, findings) in &mut self.releases {
            if due.len() == limit {
                break;
            }
            if !findings.dirty || findings.not_before > now {
                continue;
            }
            findings.dirty = false;
            let body = ReportBody::of(findings.lines(), scope(release), self.cluster.as_ref());
            let content = (!body.results.is_empty()).then(|| body.content());
            findings.recorded |= body.scope.is_some() && content.is_some();
            if findings.written == content {
                continue;
            }
            let report = content.map(|content| StoredReport {
                release: release.clone(),
                content,
                events: findings.events.iter().map(|(uid, (count, _))| (uid.clone(), *count)).collect(),
                body,
            });
            due.push(DueReport { release: release.clone(), report });
        }
        due
    }

    /// Marks a report as written.
    pub(super) fn written(&mut self, due: &DueReport) {
        if let Some(findings) = self.releases.get_mut(&due.release) {
            findings.written = due.report.as_ref().map(|report| report.content.clone());
            findings.pause = SignedDuration::ZERO;
        }
    }

    /// Marks a report as failed, so that it waits and others come first.
    pub(super) fn failed(&mut self, due: &DueReport, now: Timestamp) {
        if let Some(findings) = self.releases.get_mut(&due.release) {
            findings.dirty = true;
            findings.pause = findings.pause.saturating_mul(2).clamp(WRITE_RETRY, MAX_WRITE_RETRY);
            findings.not_before = now.checked_add(findings.pause).unwrap_or(now);
        }
    }

    /// How many reports wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.releases.values().filter(|findings| findings.dirty).count()
    }

    fn is_old(&self, entry: &ReportEntry, now: Timestamp) -> bool {
        now.duration_since(entry.last) >= self.retention
    }

    /// Whether there is room for one more entry of a release.
    fn has_room(&self, release: &ReleaseRef) -> bool {
        let (mut of_all, mut of_namespace) = (0, 0);
        for (other, findings) in &self.releases {
            of_all += findings.admission.len();
            of_namespace += if other.namespace == release.namespace { findings.admission.len() } else { 0 };
        }
        of_all < MAX_ENTRIES && of_namespace < MAX_NAMESPACE_ENTRIES
    }
}

impl ReleaseFindings {
    /// Adds a finding of an earlier scan, unless a later scan also made it.
    fn keep_scanned(&mut self, entry: ReportEntry) {
        if self.scan.len() < MAX_RELEASE_ENTRIES {
            self.scan.entry(entry.key()).or_insert(entry);
        }
    }

    /// The findings of scans, then those of reviews. If there are too many, the oldest findings of reviews are omitted.
    fn lines(&self) -> impl Iterator<Item = (&ReportEntry, FoundBy)> {
        let mut newest: Vec<_> = self.admission.values().map(|entry| entry.last).collect();
        newest.sort_unstable_by(|one, other| other.cmp(one));
        let since = newest.get(MAX_RELEASE_ENTRIES.saturating_sub(self.scan.len())).copied();
        let found = self.admission.values().filter(move |entry| since.is_none_or(|since| entry.last > since));
        let scan = self.scan.values().map(|entry| (entry, FoundBy::Scan));
        scan.chain(found.map(|entry| (entry, FoundBy::Admission)))
    }

    fn has_entries(&self) -> bool {
        !self.admission.is_empty() || !self.scan.is_empty()
    }

    fn is_empty(&self) -> bool {
        !self.has_entries() && self.events.is_empty()
    }
}

/// Removes the oldest value if the map is above the limit.
fn forget_oldest<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, limit: usize, age: impl Fn(&V) -> Timestamp) {
    if map.len() > limit
        && let Some(oldest) = map.iter().min_by_key(|(_, value)| age(value)).map(|(key, _)| key.clone())
    {
        map.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::severity::Severity;

    use super::*;
    use crate::serve::report::openreports::entry::tests::{event, second, with};

    const NOW: i64 = 1_000;
    const RETENTION: SignedDuration = SignedDuration::from_secs(500);

    fn observed(uid: &str, at: i64, count: i32) -> ObservedEvent {
        ObservedEvent::read(&event(uid, at, count)).unwrap()
    }

    fn by(actor: &str, at: i64) -> ObservedEvent {
        ObservedEvent::read(&with(event(actor, at, 1), &[("actor", actor)])).unwrap()
    }

    fn web() -> ReleaseRef {
        ReleaseRef::new("shop", "web")
    }

    fn store() -> ReportStore {
        ReportStore::new(RETENTION, None)
    }

    fn scanned(check: &str, first: i64) -> ReportEntry {
        let entry = observed("e", first, 1).entry;
        ReportEntry { check: check.into(), severity: Severity::High, actor: None, ..entry }
    }

    /// Writes the due reports. Returns the count of each finding for each report, or `None` for a deleted report.
    fn flush(store: &mut ReportStore) -> Vec<Option<Vec<(String, u64)>>> {
        let due = store.due(100, second(NOW), |_| None);
        due.iter().for_each(|due| store.written(due));
        let lines = |stored: &StoredReport| {
            let entries = stored.body.results.clone().into_iter().filter_map(|line| line.entry(&stored.release));
            entries.map(|(entry, _)| (entry.check, entry.count)).collect()
        };
        assert!(store.due(100, second(NOW), |_| None).is_empty(), "what is written is not due");
        due.iter().map(|due| due.report.as_ref().map(lines)).collect()
    }

    fn edits(count: u64) -> Vec<Option<Vec<(String, u64)>>> {
        vec![Some(vec![("manual-edit".to_owned(), count)])]
    }

    #[test]
    fn each_event_is_counted_once_in_its_entry() {
        let (mut store, now) = (store(), second(NOW));
        store.observe(observed("e1", 900, 2), now);
        store.observe(observed("e2", 910, 1), now);
        assert_eq!(flush(&mut store), edits(3));
        store.observe(observed("e1", 900, 2), now);
        assert_eq!(flush(&mut store), [], "the same again changes nothing");
        store.observe(observed("e1", 900, 5), now);
        assert_eq!(flush(&mut store), edits(6));
    }

    #[test]
    fn a_new_leader_counts_no_event_twice() {
        let (mut first, now) = (store(), second(NOW));
        first.observe(observed("e1", 900, 2), now);
        first.observe(observed("gone", 905, 4), now);
        let reports: Vec<_> = first.due(100, second(NOW), |_| None).into_iter().filter_map(|due| due.report).collect();
        let mut second_leader = store();
        second_leader.load(reports, now);
        assert_eq!(flush(&mut second_leader), []);
        second_leader.observe(observed("e1", 900, 3), now);
        second_leader.keep_events(&HashSet::from(["e1".to_owned()]));
        assert_eq!(flush(&mut second_leader), edits(7));
        assert_eq!(second_leader.releases[&web()].events.len(), 1);
    }

    #[test]
    fn the_last_expired_entry_deletes_the_report() {
        let mut store = store();
        store.observe(by("alice", 900), second(NOW));
        store.observe(by("bob", 950), second(NOW));
        assert_eq!(flush(&mut store).len(), 1);
        store.expire(second(1_399));
        assert_eq!(flush(&mut store), []);
        store.expire(second(1_400));
        assert_eq!(flush(&mut store), edits(1));
        store.expire(second(1_450));
        assert_eq!(flush(&mut store), [None]);
        // The Event still exists and is seen again, in a new list or after a new write.
        store.observe(by("bob", 950), second(1_450));
        assert_eq!(flush(&mut store), []);
        store.keep_events(&HashSet::new());
        store.expire(second(1_451));
        assert!(store.releases.is_empty());
    }

    #[test]
    fn a_deleted_release_loses_its_report_until_a_new_event() {
        let (mut store, now) = (store(), second(NOW));
        store.observe(observed("e1", 900, 1), now);
        flush(&mut store);
        assert_eq!(store.recorded(), [web()]);
        store.forget(&web());
        assert_eq!(flush(&mut store), [None]);
        store.observe(observed("e1", 900, 1), now);
        assert_eq!(flush(&mut store), []);
        store.observe(observed("e2", 990, 1), now);
        assert_eq!(flush(&mut store), edits(1));
    }

    #[test]
    fn a_scan_replaces_only_the_findings_of_the_previous_scan() {
        let (mut store, now) = (store(), second(NOW));
        store.observe(observed("e1", 900, 1), now);
        store.record_scan(vec![scanned("stuck", 950), scanned("failed", 950)], true, now);
        let line = |check: &str| (check.to_owned(), 1);
        assert_eq!(flush(&mut store), [Some(vec![line("failed"), line("stuck"), line("manual-edit")])]);
        store.record_scan(vec![scanned("stuck", 999), scanned("failed", 999)], true, second(NOW + 1));
        assert_eq!(flush(&mut store), [], "a scan that finds the same is no news");
        store.record_scan(vec![scanned("stuck", 999)], true, second(NOW + 2));
        assert_eq!(flush(&mut store), [Some(vec![line("stuck"), line("manual-edit")])]);
        store.record_scan(Vec::new(), true, second(NOW + 3));
        assert_eq!(flush(&mut store), edits(1));
    }

    #[test]
    fn scan_findings_survive_a_new_leader_until_the_next_scan() {
        let (mut first, now) = (store(), second(NOW));
        first.record_scan(vec![scanned("stuck", 950)], true, now);
        let reports: Vec<_> = first.due(100, second(NOW), |_| None).into_iter().filter_map(|due| due.report).collect();
        let mut heir = store();
        heir.load(reports.clone(), now);
        heir.expire(second(NOW + 499));
        assert_eq!(flush(&mut heir), []);
        heir.expire(second(NOW + 500));
        assert_eq!(flush(&mut heir), [None]);
        let mut other = store();
        other.record_scan(Vec::new(), true, now);
        other.load(reports, now);
        assert_eq!(flush(&mut other), [None], "its own scan found nothing");
    }

    #[test]
    fn an_incomplete_scan_removes_only_expired_findings() {
        let (mut store, now) = (store(), second(NOW));
        let said = |store: &mut ReportStore| {
            let report = store.due(100, second(NOW), |_| None).remove(0).report.unwrap();
            let lines = report.body.results.into_iter().filter_map(|line| line.entry(&web()));
            lines.map(|(entry, _)| (entry.check, entry.first.as_second())).collect::<Vec<_>>()
        };
        store.record_scan(vec![scanned("stuck", 950)], true, now);
        assert_eq!(said(&mut store), [("stuck".to_owned(), 950)]);
        store.record_scan(vec![scanned("failed", 960)], false, second(NOW + 10));
        let both = [("failed".to_owned(), 960), ("stuck".to_owned(), 950)];
        assert_eq!(said(&mut store), both);
        store.record_scan(vec![scanned("failed", 970), scanned("stuck", 970)], true, second(NOW + 20));
        assert_eq!(said(&mut store), both, "it was there all the time");
        store.record_scan(vec![scanned("failed", 980)], false, second(NOW + 30));
        store.expire(second(NOW + 520));
        assert_eq!(said(&mut store), [("failed".to_owned(), 960)]);
        // The reports of another leader are added to the findings of an incomplete scan.
        let mut heir = self::store();
        heir.record_scan(vec![scanned("stuck", 990)], false, now);
        store.record_scan(vec![scanned("failed", 980), scanned("stuck", 980)], true, now);
        let due = store.due(100, now, |_| None);
        heir.load(due.into_iter().filter_map(|due| due.report).collect(), now);
        assert_eq!(heir.releases[&web()].scan.len(), 2);
    }

    #[test]
    fn a_failed_report_waits_and_others_come_first() {
        let (mut store, now) = (store(), second(NOW));
        for name in ["a", "b"] {
            let event = observed(name, 900, 1);
            store.observe(
                ObservedEvent { entry: ReportEntry { release: ReleaseRef::new("shop", name), ..event.entry }, ..event },
                now,
            );
        }
        let refused = store.due(1, now, |_| None).remove(0);
        store.failed(&refused, now);
        assert_eq!(store.waiting(), 2);
        let other = store.due(1, now, |_| None).remove(0);
        assert_ne!(other.release, refused.release);
        store.written(&other);
        assert_eq!((store.waiting(), store.due(1, second(NOW + 9), |_| None).len()), (1, 0));
        let again = store.due(1, second(NOW + 10), |_| None).remove(0);
        store.failed(&again, second(NOW + 10));
        assert!(store.due(1, second(NOW + 29), |_| None).is_empty(), "each time longer");
        let again = store.due(1, second(NOW + 30), |_| None).remove(0);
        store.written(&again);
        assert_eq!(store.waiting(), 0);
    }

    #[test]
    fn a_namespace_cannot_fill_the_store_or_set_future_times() {
        let (mut store, now) = (store(), second(NOW));
        let of = |namespace: &str, name: usize| {
            let event = observed(&name.to_string(), 5_000, 3);
            let release = ReleaseRef::new(namespace, name.to_string());
            ObservedEvent { entry: ReportEntry { release, ..event.entry }, ..event }
        };
        for index in 0..MAX_NAMESPACE_ENTRIES {
            let entry = of("noisy", index).entry;
            let findings = ReleaseFindings {
                admission: BTreeMap::from([(entry.key(), entry.clone())]),
                ..ReleaseFindings::default()
            };
            store.releases.insert(entry.release, findings);
        }
        assert!(!store.observe(of("noisy", MAX_NAMESPACE_ENTRIES), now));
        assert!(store.observe(of("shop", 1), now));
        let entry = store.releases[&ReleaseRef::new("shop", "1")].admission.values().next().unwrap();
        assert_eq!((entry.first, entry.last), (now, now));
    }

    #[test]
    fn the_newest_entries_of_a_release_are_kept() {
        let (mut store, now) = (store(), second(NOW));
        for index in 0..70 {
            store.observe(by(&format!("user-{index}"), 800 + index), now);
        }
        let due = store.due(100, second(NOW), |_| None);
        let report = due[0].report.as_ref().unwrap();
        assert_eq!((report.body.results.len(), report.body.summary.fail), (MAX_RELEASE_ENTRIES, 50));
        let text = serde_json::to_string(&report.body).unwrap();
        assert!(text.contains("user-69") && text.contains("user-20") && !text.contains("user-19"), "{text}");
        store.record_scan(vec![scanned("stuck", 950), scanned("failed", 950)], true, now);
        let due = store.due(100, second(NOW), |_| None);
        assert_eq!(due[0].report.as_ref().unwrap().body.results.len(), MAX_RELEASE_ENTRIES);
        for index in 0..300 {
            store.observe(observed(&format!("event-{index}"), 900, 1), now);
        }
        assert_eq!(store.releases[&web()].events.len(), MAX_RELEASE_EVENTS);
    }

    #[test]
    fn all_releases_together_are_bounded() {
        let (mut store, now) = (store(), second(NOW));
        let of = |index: usize| {
            let event = observed(&index.to_string(), 900, 1);
            ObservedEvent {
                entry: ReportEntry {
                    release: ReleaseRef::new(format!("shop-{}", index % 20), index.to_string()),
                    ..event.entry
                },
                ..event
            }
        };
        // Counting all of them each time would make the test far too slow.
        for index in 0..MAX_ENTRIES {
            let event = of(index);
            let findings = ReleaseFindings {
                admission: BTreeMap::from([(event.entry.key(), event.entry.clone())]),
                ..ReleaseFindings::default()
            };
            store.releases.insert(event.entry.release, findings);
        }
        assert!(!store.observe(of(MAX_ENTRIES), now));
        let again = ObservedEvent { uid: "another".into(), ..of(0) };
        assert!(store.observe(again, now));
        assert_eq!(store.due(100, second(NOW), |_| None).len(), 1);
    }

    #[test]
    fn due_reports_are_limited() {
        let (mut store, now) = (store(), second(NOW));
        for name in ["a", "b", "c"] {
            let event = observed(name, 900, 1);
            store.observe(
                ObservedEvent { entry: ReportEntry { release: ReleaseRef::new("shop", name), ..event.entry }, ..event },
                now,
            );
        }
        let due = store.due(2, second(NOW), |_| None);
        assert_eq!(due.len(), 2);
        due.iter().for_each(|due| store.written(due));
        assert_eq!(store.due(2, second(NOW), |_| None).len(), 1);
    }
}
