//! Counts repeated findings on one Event.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use interlock_engine::decision::ObjectReference;
use jiff::Timestamp;

use super::limit::{Rate, RateLimit};
use super::series_key::SeriesKey;

/// A series ends this long after its last finding, as in the Event recorders of Kubernetes.
const IDLE_AFTER: Duration = Duration::from_secs(6 * 60);

/// How many series are kept. Each takes about 2 KiB.
const MAX_SERIES: usize = 2_048;

/// The rate of writes for one object. Denied clients often retry.
const OBJECT_RATE: Rate = Rate { burst: 20, each: Duration::from_secs(15) };

/// The rate of writes for all objects together.
const TOTAL_RATE: Rate = Rate { burst: 100, each: Duration::from_millis(100) };

/// The open series.
#[derive(Debug)]
pub(super) struct SeriesTable {
    live: HashMap<SeriesKey, OpenSeries>,
    object_limit: RateLimit<Option<ObjectReference>>,
    total_limit: RateLimit<()>,
}

#[derive(Debug, Clone)]
pub(super) struct OpenSeries {
    /// The message of the last finding.
    pub(super) message: String,
    /// Namespace and name of the Event, once it is written.
    pub(super) event: Option<(String, String)>,
    /// The first finding that the Event counts.
    pub(super) first: Timestamp,
    /// The last finding.
    pub(super) last: Timestamp,
    /// The number of findings from the first to the last.
    pub(super) count: i32,
    /// How many findings the written Event counts.
    written: i32,
    seen: Instant,
}

impl SeriesTable {
    pub(super) fn new() -> Self {
        let object_limit = RateLimit::new(OBJECT_RATE, MAX_SERIES);
        Self { live: HashMap::new(), object_limit, total_limit: RateLimit::new(TOTAL_RATE, 1) }
    }

    /// Adds a finding. Returns how many unwritten findings were dropped to make room.
    pub(super) fn observe(&mut self, key: SeriesKey, message: String, at: Timestamp, now: Instant) -> u64 {
        if let Some(live) = self.live.get_mut(&key) {
            *live = OpenSeries { message, last: at, count: live.count.saturating_add(1), seen: now, ..live.clone() };
            return 0;
        }
        let forgotten = if self.live.len() >= MAX_SERIES { self.forget_oldest() } else { 0 };
        let live = OpenSeries { message, event: None, first: at, last: at, count: 1, written: 0, seen: now };
        self.live.insert(key, live);
        forgotten
    }

    /// The series to write now, as far as the rates allow. The others stay due.
    pub(super) fn due(&mut self, now: Instant) -> Vec<(SeriesKey, OpenSeries)> {
        let mut due: Vec<_> = self.live.iter().filter(|(_, live)| live.written < live.count).collect();
        due.sort_by_key(|(_, live)| live.first);
        let allowed = due
            .into_iter()
            .filter(|(key, _)| self.object_limit.take(&key.object, now) && self.total_limit.take(&(), now));
        allowed.map(|(key, live)| (key.clone(), live.clone())).collect()
    }

    /// Marks a series as written to an Event.
    pub(super) fn written(&mut self, key: &SeriesKey, wrote: &OpenSeries, event: (String, String)) {
        if let Some(live) = self.live.get_mut(key) {
            live.event = Some(event);
            live.written = wrote.count;
        }
    }

    /// Gives up on a series. Returns how many unwritten findings are lost.
    pub(super) fn refused(&mut self, key: &SeriesKey, wrote: &OpenSeries) -> u64 {
        if let Some(live) = self.live.get_mut(key) {
            live.written = wrote.count;
        }
        wrote.unwritten()
    }

    /// The Event no longer exists. The next Event counts from here.
    pub(super) fn vanished(&mut self, key: &SeriesKey) {
        if let Some(live) = self.live.get_mut(key) {
            let (first, count) = (live.last, live.count - live.written);
            *live = OpenSeries { event: None, first, count, written: 0, ..live.clone() };
        }
    }

    /// Ends series without recent findings.
    pub(super) fn end_idle(&mut self, now: Instant) {
        self.live.retain(|_, live| live.written < live.count || now.saturating_duration_since(live.seen) < IDLE_AFTER);
        self.object_limit.forget_full(now);
    }

    /// How many findings are not written yet.
    pub(super) fn unwritten(&self) -> u64 {
        self.live.values().map(OpenSeries::unwritten).sum()
    }

    fn forget_oldest(&mut self) -> u64 {
        let oldest = self.live.iter().min_by_key(|(_, live)| (live.written < live.count, live.seen));
        let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { return 0 };
        let forgotten = self.live.remove(&oldest);
        forgotten.map_or(0, |live| live.unwritten())
    }
}

impl OpenSeries {
    /// How many findings the Event does not count yet.
    fn unwritten(&self) -> u64 {
        u64::try_from(self.count - self.written).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::decision::fixtures::{decision, finding};
    use interlock_engine::rule::{Mode, RuleId};

    use super::*;

    fn key(actor: &str, name: &str) -> SeriesKey {
        let decision = decision(vec![finding(RuleId::known("manual-edit"), Mode::Enforce)]);
        let object = decision.object.clone().map(|object| ObjectReference { name: name.into(), ..object });
        let key = SeriesKey::of(&decision, &decision.findings[0]).unwrap();
        SeriesKey { actor: actor.into(), object, ..key }
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Observes a finding and writes the due series. Returns the count of each, and the name of an existing Event.
    fn step(series: &mut SeriesTable, actor: &str, at: i64, now: Instant) -> Vec<(i32, Option<String>)> {
        series.observe(key(actor, "web"), format!("at {at}"), second(at), now);
        let due = series.due(now);
        for (key, live) in &due {
            series.written(key, live, ("shop".into(), "event".into()));
        }
        due.into_iter().map(|(_, live)| (live.count, live.event.map(|(_, name)| name))).collect()
    }

    #[test]
    fn repetitions_are_counted_on_the_same_event() {
        let (mut series, now) = (SeriesTable::new(), Instant::now());
        assert_eq!(step(&mut series, "alice", 1, now), [(1, None)]);
        assert_eq!(step(&mut series, "alice", 2, now), [(2, Some("event".into()))]);
        assert_eq!(step(&mut series, "bob", 3, now), [(1, None)]);
        assert_eq!(series.due(now).len(), 0);
        series.end_idle(now + IDLE_AFTER);
        assert_eq!(step(&mut series, "alice", 400, now + IDLE_AFTER), [(1, None)]);
    }

    #[test]
    fn findings_above_the_rate_are_written_later_with_full_counts() {
        let (mut series, now) = (SeriesTable::new(), Instant::now());
        let shown: usize = (0..30).map(|at| step(&mut series, "alice", at, now).len()).sum();
        assert_eq!((shown, series.unwritten()), (20, 10));
        series.observe(key("alice", "api"), String::new(), second(31), now);
        assert_eq!(series.due(now).len(), 1, "another object has a bucket of its own");
        let later = series.due(now + OBJECT_RATE.each);
        let counts: Vec<_> = later.iter().map(|(key, live)| (key.object_name(), live.count)).collect();
        assert!(counts.contains(&("web".to_owned(), 30)), "{counts:?}");
    }

    #[test]
    fn a_rejected_event_counts_all_its_findings_as_lost() {
        let (mut series, now) = (SeriesTable::new(), Instant::now());
        step(&mut series, "alice", 1, now);
        for at in 2..5 {
            series.observe(key("alice", "web"), String::new(), second(at), now);
        }
        let (key, live) = series.due(now).remove(0);
        assert_eq!((series.unwritten(), series.refused(&key, &live), series.unwritten()), (3, 3, 0));
    }

    #[test]
    fn after_a_vanished_event_a_new_one_counts_the_rest() {
        let (mut series, now) = (SeriesTable::new(), Instant::now());
        step(&mut series, "alice", 1, now);
        step(&mut series, "alice", 2, now);
        series.observe(key("alice", "web"), String::new(), second(3), now);
        series.vanished(&key("alice", "web"));
        let due = series.due(now);
        assert_eq!((due[0].1.count, due[0].1.first, &due[0].1.event), (1, second(3), &None));
    }

    #[test]
    fn the_table_is_bounded_and_counts_dropped_findings() {
        let (mut series, now) = (SeriesTable::new(), Instant::now());
        let mut forgotten = 0;
        for index in 0..MAX_SERIES + 10 {
            forgotten += series.observe(key("alice", &format!("web-{index}")), String::new(), second(1), now);
        }
        assert_eq!((series.live.len(), forgotten), (MAX_SERIES, 10));
        assert_eq!(series.due(now).len(), usize::try_from(TOTAL_RATE.burst).unwrap());
    }
}
