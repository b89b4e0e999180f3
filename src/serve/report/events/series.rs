//! What happens again and again is one Event with a count.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::happening::Happening;
use super::limit::{Bucket, Buckets, Rate};
use crate::engine::decision::ObjectReference;

/// How long after its last time something is new again; as in Kubernetes' own recorders.
const IDLE: Duration = Duration::from_secs(6 * 60);

/// The series that are kept, at most. They take some 2 KiB each.
const MOST: usize = 2_048;

/// Writes for one object: a denied client tries again and again.
const OF_OBJECT: Rate = Rate { burst: 20, each: Duration::from_secs(15) };

/// Writes for all objects together.
const OF_ALL: Rate = Rate { burst: 100, each: Duration::from_millis(100) };

/// What is happening at the moment.
#[derive(Debug)]
pub(super) struct Series {
    live: HashMap<Happening, Live>,
    of_objects: Buckets<Option<ObjectReference>>,
    of_all: Bucket,
}

/// One series.
#[derive(Debug, Clone)]
pub(super) struct Live {
    /// The sentence for the user, as it was the last time.
    pub(super) message: String,
    /// The Event that tells of it, once it is written: namespace and name.
    pub(super) event: Option<(String, String)>,
    /// Since when its Event counts.
    pub(super) first: Timestamp,
    /// The last time.
    pub(super) last: Timestamp,
    /// How often since then.
    pub(super) count: i32,
    /// How much of that its Event tells.
    written: i32,
    seen: Instant,
}

impl Series {
    pub(super) fn new(now: Instant) -> Self {
        let of_objects = Buckets::new(OF_OBJECT, MOST);
        Self { live: HashMap::new(), of_objects, of_all: Bucket::full(OF_ALL, now) }
    }

    /// Something has happened. Returns how many untold ones were forgotten for it.
    pub(super) fn observe(&mut self, happening: Happening, message: String, at: Timestamp, now: Instant) -> u64 {
        if let Some(live) = self.live.get_mut(&happening) {
            *live = Live { message, last: at, count: live.count.saturating_add(1), seen: now, ..live.clone() };
            return 0;
        }
        let forgotten = if self.live.len() >= MOST { self.forget_oldest() } else { 0 };
        let live = Live { message, event: None, first: at, last: at, count: 1, written: 0, seen: now };
        self.live.insert(happening, live);
        forgotten
    }

    /// What is to be written now, and no more of it than the rates allow; the rest stays for later.
    pub(super) fn due(&mut self, now: Instant) -> Vec<(Happening, Live)> {
        let mut due: Vec<_> = self.live.iter().filter(|(_, live)| live.written < live.count).collect();
        due.sort_by_key(|(_, live)| live.first);
        let allowed = due
            .into_iter()
            .filter(|(happening, _)| self.of_objects.take(&happening.object, now) && self.of_all.take(now));
        allowed.map(|(happening, live)| (happening.clone(), live.clone())).collect()
    }

    /// This was written, to this Event.
    pub(super) fn written(&mut self, happening: &Happening, wrote: &Live, event: (String, String)) {
        if let Some(live) = self.live.get_mut(happening) {
            live.event = Some(event);
            live.written = wrote.count;
        }
    }

    /// This will not be written, whoever tries. Returns how many untold ones that are.
    pub(super) fn refused(&mut self, happening: &Happening, wrote: &Live) -> u64 {
        if let Some(live) = self.live.get_mut(happening) {
            live.written = wrote.count;
        }
        wrote.untold()
    }

    /// The Event is gone; the next one counts from here.
    pub(super) fn vanished(&mut self, happening: &Happening) {
        if let Some(live) = self.live.get_mut(happening) {
            let (first, count) = (live.last, live.count - live.written);
            *live = Live { event: None, first, count, written: 0, ..live.clone() };
        }
    }

    /// Ends the series that have been quiet for long.
    pub(super) fn end_idle(&mut self, now: Instant) {
        self.live.retain(|_, live| live.written < live.count || now.saturating_duration_since(live.seen) < IDLE);
        self.of_objects.forget_full(now);
    }

    /// How much has not been told.
    pub(super) fn untold(&self) -> u64 {
        self.live.values().map(Live::untold).sum()
    }

    fn forget_oldest(&mut self) -> u64 {
        let oldest = self.live.iter().min_by_key(|(_, live)| (live.written < live.count, live.seen));
        let Some(oldest) = oldest.map(|(happening, _)| happening.clone()) else { return 0 };
        let forgotten = self.live.remove(&oldest);
        forgotten.map_or(0, |live| live.untold())
    }
}

impl Live {
    /// How often it happened without its Event telling.
    fn untold(&self) -> u64 {
        u64::try_from(self.count - self.written).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::decision::tests::{decision, finding};
    use crate::engine::policy::Mode;
    use crate::engine::rules::RuleId;

    fn happening(actor: &str, name: &str) -> Happening {
        let decision = decision(vec![finding(RuleId::known("manual-edit"), Mode::Enforce)]);
        let object = decision.object.clone().map(|object| ObjectReference { name: name.into(), ..object });
        let happening = Happening::of(&decision, &decision.findings[0]).unwrap();
        Happening { actor: actor.into(), object, ..happening }
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Observes, writes what is due, and says what was written: the count, and the Event's name where it had one.
    fn step(series: &mut Series, actor: &str, at: i64, now: Instant) -> Vec<(i32, Option<String>)> {
        series.observe(happening(actor, "web"), format!("at {at}"), second(at), now);
        let due = series.due(now);
        for (happening, live) in &due {
            series.written(happening, live, ("shop".into(), "event".into()));
        }
        due.into_iter().map(|(_, live)| (live.count, live.event.map(|(_, name)| name))).collect()
    }

    #[test]
    fn what_happens_again_is_counted_on_the_same_event() {
        let (mut series, now) = (Series::new(Instant::now()), Instant::now());
        assert_eq!(step(&mut series, "alice", 1, now), [(1, None)]);
        assert_eq!(step(&mut series, "alice", 2, now), [(2, Some("event".into()))]);
        assert_eq!(step(&mut series, "bob", 3, now), [(1, None)]);
        assert_eq!(series.due(now).len(), 0);
        series.end_idle(now + IDLE);
        assert_eq!(step(&mut series, "alice", 400, now + IDLE), [(1, None)]);
    }

    #[test]
    fn an_object_that_is_touched_too_often_is_told_of_later_and_completely() {
        let (mut series, now) = (Series::new(Instant::now()), Instant::now());
        let told: usize = (0..30).map(|at| step(&mut series, "alice", at, now).len()).sum();
        assert_eq!((told, series.untold()), (20, 10));
        series.observe(happening("alice", "api"), String::new(), second(31), now);
        assert_eq!(series.due(now).len(), 1, "another object has a bucket of its own");
        let later = series.due(now + OF_OBJECT.each);
        let counts: Vec<_> = later.iter().map(|(happening, live)| (happening.object_name(), live.count)).collect();
        assert!(counts.contains(&("web".to_owned(), 30)), "{counts:?}");
    }

    #[test]
    fn what_is_refused_for_good_is_counted_as_often_as_it_happened() {
        let (mut series, now) = (Series::new(Instant::now()), Instant::now());
        step(&mut series, "alice", 1, now);
        for at in 2..5 {
            series.observe(happening("alice", "web"), String::new(), second(at), now);
        }
        let (happening, live) = series.due(now).remove(0);
        assert_eq!((series.untold(), series.refused(&happening, &live), series.untold()), (3, 3, 0));
    }

    #[test]
    fn an_event_that_vanished_is_followed_by_one_that_counts_what_it_did_not() {
        let (mut series, now) = (Series::new(Instant::now()), Instant::now());
        step(&mut series, "alice", 1, now);
        step(&mut series, "alice", 2, now);
        series.observe(happening("alice", "web"), String::new(), second(3), now);
        series.vanished(&happening("alice", "web"));
        let due = series.due(now);
        assert_eq!((due[0].1.count, due[0].1.first, &due[0].1.event), (1, second(3), &None));
    }

    #[test]
    fn the_table_is_bounded_and_says_what_it_forgets() {
        let (mut series, now) = (Series::new(Instant::now()), Instant::now());
        let mut forgotten = 0;
        for index in 0..MOST + 10 {
            forgotten += series.observe(happening("alice", &format!("web-{index}")), String::new(), second(1), now);
        }
        assert_eq!((series.live.len(), forgotten), (MOST, 10));
        assert_eq!(series.due(now).len(), usize::try_from(OF_ALL.burst).unwrap());
    }
}
