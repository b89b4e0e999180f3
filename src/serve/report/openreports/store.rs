//! What the reports say, in memory: fed by Events and by scans, written out by somebody else.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

use super::body::{Body, Origin};
use super::entry::{Entry, Key, Told};
use super::writer::Stored;
use crate::engine::decision::ObjectReference;
use crate::engine::release::ReleaseRef;

/// The entries of a release, at most; the oldest is forgotten for the newest.
const OF_RELEASE: usize = 50;

/// The entries of all releases, at most. They take some KiB each.
const OF_ALL: usize = 20_000;

/// The entries of the releases of a namespace, at most: whoever may write Events there can pretend to be us, and is to fill no
/// more than this.
const OF_NAMESPACE: usize = OF_ALL / 10;

/// After a report could not be written, for the first time; each further time twice as long, up to a bound.
const PAUSE: SignedDuration = SignedDuration::from_secs(10);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(10);

/// The Events of a release whose counts are remembered, at most. One that is forgotten while it lives is counted again when
/// it is told again.
const EVENTS: usize = 200;

/// What is known of all releases.
#[derive(Debug)]
pub(super) struct Store {
    retention: SignedDuration,
    releases: HashMap<ReleaseRef, Held>,
    /// Whether a whole scan has come in, against which what the reports say of an earlier one counts for nothing.
    scanned: bool,
}

#[derive(Debug, Default)]
struct Held {
    found: BTreeMap<Key, Entry>,
    state: BTreeMap<Key, Entry>,
    /// How much of each Event is counted in `found`, and when it last changed.
    events: BTreeMap<String, (u64, Timestamp)>,
    /// The content of the report, where there is one.
    written: Option<String>,
    /// Whether the release had records: what never had any cannot lose them.
    recorded: bool,
    /// Whether the report may differ from what is written, or is being written.
    dirty: bool,
    /// After a failure to write it: how long nothing is tried, and until when.
    pause: SignedDuration,
    not_before: Timestamp,
}

/// A report that may have to be written.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) release: ReleaseRef,
    /// `None` where there is nothing to say any more.
    pub(super) report: Option<Stored>,
}

impl Store {
    /// Holds nothing. What is older than the retention falls out.
    pub(super) fn new(retention: SignedDuration) -> Self {
        Self { retention, releases: HashMap::new(), scanned: false }
    }

    /// Starts anew from the reports that are there. What a scan has said meanwhile stays.
    pub(super) fn load(&mut self, reports: Vec<Stored>, now: Timestamp) {
        self.releases.retain(|_, held| {
            let state = std::mem::take(&mut held.state);
            *held = Held { state, dirty: true, ..Held::default() };
            !held.state.is_empty()
        });
        for Stored { release, content, events, body } in reports {
            let held = self.releases.entry(release.clone()).or_default();
            held.written = Some(content);
            held.events = events.into_iter().map(|(uid, count)| (uid, (count, now))).collect();
            held.recorded = body.scope.is_some();
            // What another version wrote is written again in the words of this one.
            held.dirty = true;
            for (entry, origin) in body.results.into_iter().filter_map(|line| line.entry(&release)) {
                match origin {
                    Origin::Admission => _ = held.found.insert(entry.key(), entry),
                    Origin::Scan if self.scanned => {}
                    Origin::Scan => held.keep_state(Entry { last: now, ..entry }),
                }
            }
        }
    }

    /// Takes an Event. Returns whether there was room for it.
    pub(super) fn observe(&mut self, told: Told, now: Timestamp) -> bool {
        let Told { uid, mut entry, recorded } = told;
        // A time to come would never be old.
        (entry.first, entry.last) = (entry.first.min(now), entry.last.min(now));
        if self.is_old(&entry, now) {
            return true;
        }
        let known = self.releases.get(&entry.release);
        if known.is_none_or(|held| !held.found.contains_key(&entry.key())) && !self.has_room(&entry.release) {
            return false;
        }
        let held = self.releases.entry(entry.release.clone()).or_default();
        held.recorded |= recorded;
        let counted = held.events.get(&uid).map_or(0, |(count, _)| *count);
        if entry.count <= counted {
            return true;
        }
        held.events.insert(uid, (entry.count, entry.last));
        forget_oldest(&mut held.events, EVENTS, |(_, last)| *last);
        if counted > 0 {
            entry.count -= counted;
            entry.first = entry.last;
        }
        match held.found.get_mut(&entry.key()) {
            Some(found) => found.merge(entry),
            None => _ = held.found.insert(entry.key(), entry),
        }
        forget_oldest(&mut held.found, OF_RELEASE, |entry| entry.last);
        held.dirty = true;
        true
    }

    /// These are all the Events that there are: others need not be remembered.
    pub(super) fn keep_events(&mut self, living: &HashSet<String>) {
        for held in self.releases.values_mut() {
            held.events.retain(|uid, _| living.contains(uid));
        }
    }

    /// An Event is gone; what it told stays.
    pub(super) fn forget_event(&mut self, told: &Told) {
        if let Some(held) = self.releases.get_mut(&told.entry.release) {
            held.events.remove(&told.uid);
        }
    }

    /// Takes all that a scan found, in place of what the one before did. One that could not look at everything takes nothing
    /// back: what is not found again falls out when it is old.
    pub(super) fn state(&mut self, entries: Vec<Entry>, is_whole: bool, now: Timestamp) {
        self.scanned |= is_whole;
        let room = OF_ALL.saturating_sub(entries.len());
        let mut before = HashMap::new();
        for (release, held) in &mut self.releases {
            let state = std::mem::take(&mut held.state);
            held.dirty |= !state.is_empty();
            before.insert(release.clone(), state);
        }
        for entry in entries.into_iter().take(OF_ALL).map(Entry::bounded) {
            let held = self.releases.entry(entry.release.clone()).or_default();
            let known = before.get(&entry.release).and_then(|state| state.get(&entry.key()));
            let first = known.map_or(entry.first, |known| known.first.min(entry.first));
            held.dirty = true;
            if held.state.len() < OF_RELEASE {
                held.state.insert(entry.key(), Entry { first, last: now, ..entry });
            }
        }
        let kept = before
            .into_iter()
            .filter(|_| !is_whole)
            .flat_map(|(release, state)| state.into_values().map(move |entry| (release.clone(), entry)));
        for (release, entry) in kept.take(room) {
            self.releases.entry(release).or_default().keep_state(entry);
        }
    }

    /// Lets go of what is too old.
    pub(super) fn expire(&mut self, now: Timestamp) {
        let retention = self.retention;
        let is_old = |last: Timestamp| now.duration_since(last) >= retention;
        for held in self.releases.values_mut() {
            let before = held.found.len() + held.state.len();
            held.found.retain(|_, entry| !is_old(entry.last));
            held.state.retain(|_, entry| !is_old(entry.last));
            held.dirty |= held.found.len() + held.state.len() < before;
        }
        self.releases.retain(|_, held| held.dirty || held.written.is_some() || !held.is_empty());
    }

    /// The releases that had records.
    pub(super) fn recorded(&self) -> Vec<ReleaseRef> {
        let recorded = self.releases.iter().filter(|(_, held)| held.recorded && held.has_entries());
        recorded.map(|(release, _)| release.clone()).collect()
    }

    /// A release is gone. Its Events stay counted, so that they do not bring it back.
    pub(super) fn forget(&mut self, release: &ReleaseRef) {
        if let Some(held) = self.releases.get_mut(release) {
            held.found.clear();
            held.state.clear();
            held.recorded = false;
            held.dirty = true;
        }
    }

    /// The reports that differ from what is written, at most so many; what could not be written waits for its time. Each of
    /// them is to be [written](Self::written) or has [failed](Self::failed). `scope` names the newest record of a release.
    pub(super) fn due(
        &mut self,
        most: usize,
        now: Timestamp,
        scope: impl Fn(&ReleaseRef) -> Option<ObjectReference>,
    ) -> Vec<Due> {
        let mut due = Vec::new();
        for (release, held) in &mut self.releases {
            if due.len() == most {
                break;
            }
            if !held.dirty || held.not_before > now {
                continue;
            }
            held.dirty = false;
            let body = Body::of(held.lines(), scope(release));
            let content = (!body.results.is_empty()).then(|| body.content());
            held.recorded |= body.scope.is_some() && content.is_some();
            if held.written == content {
                continue;
            }
            let report = content.map(|content| Stored {
                release: release.clone(),
                content,
                events: held.events.iter().map(|(uid, (count, _))| (uid.clone(), *count)).collect(),
                body,
            });
            due.push(Due { release: release.clone(), report });
        }
        due
    }

    /// This is written.
    pub(super) fn written(&mut self, due: &Due) {
        if let Some(held) = self.releases.get_mut(&due.release) {
            held.written = due.report.as_ref().map(|report| report.content.clone());
            held.pause = SignedDuration::ZERO;
        }
    }

    /// This could not be written: others first.
    pub(super) fn failed(&mut self, due: &Due, now: Timestamp) {
        if let Some(held) = self.releases.get_mut(&due.release) {
            held.dirty = true;
            held.pause = held.pause.saturating_mul(2).clamp(PAUSE, LONGEST_PAUSE);
            held.not_before = now.checked_add(held.pause).unwrap_or(now);
        }
    }

    /// How many reports are still to be written.
    pub(super) fn waiting(&self) -> usize {
        self.releases.values().filter(|held| held.dirty).count()
    }

    fn is_old(&self, entry: &Entry, now: Timestamp) -> bool {
        now.duration_since(entry.last) >= self.retention
    }

    /// Whether one more entry may be found of a release.
    fn has_room(&self, release: &ReleaseRef) -> bool {
        let (mut of_all, mut of_namespace) = (0, 0);
        for (other, held) in &self.releases {
            of_all += held.found.len();
            of_namespace += if other.namespace == release.namespace { held.found.len() } else { 0 };
        }
        of_all < OF_ALL && of_namespace < OF_NAMESPACE
    }
}

impl Held {
    /// Takes what an earlier scan found, where no later one says otherwise.
    fn keep_state(&mut self, entry: Entry) {
        if self.state.len() < OF_RELEASE {
            self.state.entry(entry.key()).or_insert(entry);
        }
    }

    /// What a scan found, and then the rest; the oldest of that is left out where there is too much.
    fn lines(&self) -> impl Iterator<Item = (&Entry, Origin)> {
        let mut newest: Vec<_> = self.found.values().map(|entry| entry.last).collect();
        newest.sort_unstable_by(|one, other| other.cmp(one));
        let since = newest.get(OF_RELEASE.saturating_sub(self.state.len())).copied();
        let found = self.found.values().filter(move |entry| since.is_none_or(|since| entry.last > since));
        let state = self.state.values().map(|entry| (entry, Origin::Scan));
        state.chain(found.map(|entry| (entry, Origin::Admission)))
    }

    fn has_entries(&self) -> bool {
        !self.found.is_empty() || !self.state.is_empty()
    }

    fn is_empty(&self) -> bool {
        !self.has_entries() && self.events.is_empty()
    }
}

/// Takes the oldest out of what has grown over a bound by one.
fn forget_oldest<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, most: usize, age: impl Fn(&V) -> Timestamp) {
    if map.len() > most
        && let Some(oldest) = map.iter().min_by_key(|(_, value)| age(value)).map(|(key, _)| key.clone())
    {
        map.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::severity::Severity;
    use crate::serve::report::openreports::entry::tests::{event, second, with};

    const NOW: i64 = 1_000;
    const RETENTION: SignedDuration = SignedDuration::from_secs(500);

    fn told(uid: &str, at: i64, count: i32) -> Told {
        Told::read(&event(uid, at, count)).unwrap()
    }

    fn by(actor: &str, at: i64) -> Told {
        Told::read(&with(event(actor, at, 1), &[("actor", actor)])).unwrap()
    }

    fn web() -> ReleaseRef {
        ReleaseRef::new("shop", "web")
    }

    fn store() -> Store {
        Store::new(RETENTION)
    }

    fn scanned(check: &str, first: i64) -> Entry {
        let entry = told("e", first, 1).entry;
        Entry { check: check.into(), severity: Severity::High, actor: None, ..entry }
    }

    /// Writes what is due, and says of each report how often what was found, or that it is gone.
    fn flush(store: &mut Store) -> Vec<Option<Vec<(String, u64)>>> {
        let due = store.due(100, second(NOW), |_| None);
        due.iter().for_each(|due| store.written(due));
        let lines = |stored: &Stored| {
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
    fn events_are_folded_and_each_is_counted_once() {
        let (mut store, now) = (store(), second(NOW));
        store.observe(told("e1", 900, 2), now);
        store.observe(told("e2", 910, 1), now);
        assert_eq!(flush(&mut store), edits(3));
        store.observe(told("e1", 900, 2), now);
        assert_eq!(flush(&mut store), [], "the same again changes nothing");
        store.observe(told("e1", 900, 5), now);
        assert_eq!(flush(&mut store), edits(6));
    }

    #[test]
    fn whoever_takes_over_reads_the_reports_and_counts_nothing_twice() {
        let (mut first, now) = (store(), second(NOW));
        first.observe(told("e1", 900, 2), now);
        first.observe(told("gone", 905, 4), now);
        let reports: Vec<_> = first.due(100, second(NOW), |_| None).into_iter().filter_map(|due| due.report).collect();
        let mut second_leader = store();
        second_leader.load(reports, now);
        assert_eq!(flush(&mut second_leader), []);
        second_leader.observe(told("e1", 900, 3), now);
        second_leader.keep_events(&HashSet::from(["e1".to_owned()]));
        assert_eq!(flush(&mut second_leader), edits(7));
        assert_eq!(second_leader.releases[&web()].events.len(), 1);
    }

    #[test]
    fn what_is_old_falls_out_and_the_last_takes_the_report_along() {
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
        // Its Event lives on and is told again, by a new list or by somebody who writes to it.
        store.observe(by("bob", 950), second(1_450));
        assert_eq!(flush(&mut store), []);
        store.keep_events(&HashSet::new());
        store.expire(second(1_451));
        assert!(store.releases.is_empty());
    }

    #[test]
    fn a_release_that_is_gone_takes_its_report_along_and_is_not_brought_back() {
        let (mut store, now) = (store(), second(NOW));
        store.observe(told("e1", 900, 1), now);
        flush(&mut store);
        assert_eq!(store.recorded(), [web()]);
        store.forget(&web());
        assert_eq!(flush(&mut store), [None]);
        store.observe(told("e1", 900, 1), now);
        assert_eq!(flush(&mut store), []);
        store.observe(told("e2", 990, 1), now);
        assert_eq!(flush(&mut store), edits(1));
    }

    #[test]
    fn a_scan_replaces_the_one_before_and_leaves_what_was_refused_alone() {
        let (mut store, now) = (store(), second(NOW));
        store.observe(told("e1", 900, 1), now);
        store.state(vec![scanned("stuck", 950), scanned("failed", 950)], true, now);
        let line = |check: &str| (check.to_owned(), 1);
        assert_eq!(flush(&mut store), [Some(vec![line("failed"), line("stuck"), line("manual-edit")])]);
        store.state(vec![scanned("stuck", 999), scanned("failed", 999)], true, second(NOW + 1));
        assert_eq!(flush(&mut store), [], "a scan that finds the same is no news");
        store.state(vec![scanned("stuck", 999)], true, second(NOW + 2));
        assert_eq!(flush(&mut store), [Some(vec![line("stuck"), line("manual-edit")])]);
        store.state(Vec::new(), true, second(NOW + 3));
        assert_eq!(flush(&mut store), edits(1));
    }

    #[test]
    fn what_a_scan_said_stays_over_a_take_over_until_scans_end() {
        let (mut first, now) = (store(), second(NOW));
        first.state(vec![scanned("stuck", 950)], true, now);
        let reports: Vec<_> = first.due(100, second(NOW), |_| None).into_iter().filter_map(|due| due.report).collect();
        let mut heir = store();
        heir.load(reports.clone(), now);
        heir.expire(second(NOW + 499));
        assert_eq!(flush(&mut heir), []);
        heir.expire(second(NOW + 500));
        assert_eq!(flush(&mut heir), [None]);
        let mut other = store();
        other.state(Vec::new(), true, now);
        other.load(reports, now);
        assert_eq!(flush(&mut other), [None], "its own scan found nothing");
    }

    #[test]
    fn a_scan_with_gaps_takes_nothing_back_until_it_is_old() {
        let (mut store, now) = (store(), second(NOW));
        let said = |store: &mut Store| {
            let report = store.due(100, second(NOW), |_| None).remove(0).report.unwrap();
            let lines = report.body.results.into_iter().filter_map(|line| line.entry(&web()));
            lines.map(|(entry, _)| (entry.check, entry.first.as_second())).collect::<Vec<_>>()
        };
        store.state(vec![scanned("stuck", 950)], true, now);
        assert_eq!(said(&mut store), [("stuck".to_owned(), 950)]);
        store.state(vec![scanned("failed", 960)], false, second(NOW + 10));
        let both = [("failed".to_owned(), 960), ("stuck".to_owned(), 950)];
        assert_eq!(said(&mut store), both);
        store.state(vec![scanned("failed", 970), scanned("stuck", 970)], true, second(NOW + 20));
        assert_eq!(said(&mut store), both, "it was there all the time");
        store.state(vec![scanned("failed", 980)], false, second(NOW + 30));
        store.expire(second(NOW + 520));
        assert_eq!(said(&mut store), [("failed".to_owned(), 960)]);
        // The reports of another leader are added to what a scan with gaps has said.
        let mut heir = self::store();
        heir.state(vec![scanned("stuck", 990)], false, now);
        store.state(vec![scanned("failed", 980), scanned("stuck", 980)], true, now);
        let due = store.due(100, now, |_| None);
        heir.load(due.into_iter().filter_map(|due| due.report).collect(), now);
        assert_eq!(heir.releases[&web()].state.len(), 2);
    }

    #[test]
    fn what_could_not_be_written_waits_and_lets_others_pass() {
        let (mut store, now) = (store(), second(NOW));
        for name in ["a", "b"] {
            let told = told(name, 900, 1);
            store.observe(Told { entry: Entry { release: ReleaseRef::new("shop", name), ..told.entry }, ..told }, now);
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
    fn one_namespace_cannot_fill_the_store_nor_tell_of_the_future() {
        let (mut store, now) = (store(), second(NOW));
        let of = |namespace: &str, name: usize| {
            let told = told(&name.to_string(), 5_000, 3);
            let release = ReleaseRef::new(namespace, name.to_string());
            Told { entry: Entry { release, ..told.entry }, ..told }
        };
        for index in 0..OF_NAMESPACE {
            let entry = of("noisy", index).entry;
            let held = Held { found: BTreeMap::from([(entry.key(), entry.clone())]), ..Held::default() };
            store.releases.insert(entry.release, held);
        }
        assert!(!store.observe(of("noisy", OF_NAMESPACE), now));
        assert!(store.observe(of("shop", 1), now));
        let entry = store.releases[&ReleaseRef::new("shop", "1")].found.values().next().unwrap();
        assert_eq!((entry.first, entry.last), (now, now));
    }

    #[test]
    fn a_release_has_so_many_entries_and_the_newest_stay() {
        let (mut store, now) = (store(), second(NOW));
        for index in 0..70 {
            store.observe(by(&format!("user-{index}"), 800 + index), now);
        }
        let due = store.due(100, second(NOW), |_| None);
        let report = due[0].report.as_ref().unwrap();
        assert_eq!((report.body.results.len(), report.body.summary.fail), (OF_RELEASE, 50));
        let text = serde_json::to_string(&report.body).unwrap();
        assert!(text.contains("user-69") && text.contains("user-20") && !text.contains("user-19"), "{text}");
        store.state(vec![scanned("stuck", 950), scanned("failed", 950)], true, now);
        let due = store.due(100, second(NOW), |_| None);
        assert_eq!(due[0].report.as_ref().unwrap().body.results.len(), OF_RELEASE);
        for index in 0..300 {
            store.observe(told(&format!("event-{index}"), 900, 1), now);
        }
        assert_eq!(store.releases[&web()].events.len(), EVENTS);
    }

    #[test]
    fn all_releases_together_are_bounded() {
        let (mut store, now) = (store(), second(NOW));
        let of = |index: usize| {
            let told = told(&index.to_string(), 900, 1);
            Told {
                entry: Entry {
                    release: ReleaseRef::new(format!("shop-{}", index % 20), index.to_string()),
                    ..told.entry
                },
                ..told
            }
        };
        // Counting them each time would take the test as long as it takes a cluster a day.
        for index in 0..OF_ALL {
            let told = of(index);
            let held = Held { found: BTreeMap::from([(told.entry.key(), told.entry.clone())]), ..Held::default() };
            store.releases.insert(told.entry.release, held);
        }
        assert!(!store.observe(of(OF_ALL), now));
        let again = Told { uid: "another".into(), ..of(0) };
        assert!(store.observe(again, now));
        assert_eq!(store.due(100, second(NOW), |_| None).len(), 1);
    }

    #[test]
    fn no_more_is_due_than_asked_for() {
        let (mut store, now) = (store(), second(NOW));
        for name in ["a", "b", "c"] {
            let told = told(name, 900, 1);
            store.observe(Told { entry: Entry { release: ReleaseRef::new("shop", name), ..told.entry }, ..told }, now);
        }
        let due = store.due(2, second(NOW), |_| None);
        assert_eq!(due.len(), 2);
        due.iter().for_each(|due| store.written(due));
        assert_eq!(store.due(2, second(NOW), |_| None).len(), 1);
    }
}
