//! Time windows, and the effect of daylight saving time.
//!
//! In autumn, a clock time can occur twice: the first occurrence opens a window, and the second one closes it. In
//! spring, a clock time can be skipped: it stands for the moment at which the clock jumps. So a window never has a gap,
//! and never ends before its clock time.

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan};

/// The days before and after a moment whose windows can touch the moment: a window of six days and the next one.
const DAYS_AROUND: i64 = 9;

/// Every weekly window begins once in this time.
const A_WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The window of a freeze: the freeze applies inside it, or outside of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Window {
    /// Once.
    Range(Interval),
    /// Every week.
    Weekly(DayWindow),
}

/// A time from its start, which is included, to its end, which is excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    pub start: Timestamp,
    pub end: Timestamp,
}

/// The same hours of some days of each week.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayWindow {
    /// The days on which the window begins.
    pub days: Vec<Weekday>,
    /// The minute of the day at which the window begins: 0 to 1,439.
    pub from: u16,
    /// The minute of the day at which the window ends: 1 to 1,440. If it is not after `from`, it belongs to the next
    /// day.
    pub to: u16,
}

const MINUTES_A_DAY: u16 = 1_440;

impl Window {
    /// The window around a moment, and the next one after that moment. Windows that touch count as one.
    pub(super) fn around(&self, now: Timestamp, zone: &TimeZone) -> (Option<Interval>, Option<Interval>) {
        let spans = self.spans(now, zone);
        let current = spans.iter().copied().find(|span| span.start <= now && now < span.end);
        (current, spans.into_iter().find(|span| now < span.start))
    }

    /// Whether two windows ever overlap.
    pub(super) fn meets(&self, zone: &TimeZone, other: &Self, of_other: &TimeZone) -> bool {
        // All weeks are the same, except for an hour of daylight saving time.
        let moment = match (self, other) {
            (Self::Range(span), _) | (_, Self::Range(span)) => span.start,
            (Self::Weekly(_), Self::Weekly(_)) => Timestamp::UNIX_EPOCH,
        };
        let spans = self.spans(moment, zone);
        other
            .spans(moment, of_other)
            .iter()
            .any(|one| spans.iter().any(|two| one.start < two.end && two.start < one.end))
    }

    /// Whether another window is always within this one.
    pub(super) fn covers(&self, zone: &TimeZone, other: &Self, of_other: &TimeZone) -> bool {
        let moment = match (self, other) {
            // A weekly window also occurs after the range.
            (Self::Range(_), Self::Weekly(_)) => return false,
            (_, Self::Range(span)) => span.start,
            (Self::Weekly(_), Self::Weekly(_)) => Timestamp::UNIX_EPOCH,
        };
        let (spans, mut others) = (self.spans(moment, zone), other.spans(moment, of_other));
        // One occurrence of each weekly window, without those that are cut off at the end of the searched days.
        others.retain(|span| (SignedDuration::ZERO..=A_WEEK).contains(&moment.duration_since(span.start)));
        others.iter().all(|span| spans.iter().any(|around| around.start <= span.start && span.end <= around.end))
    }

    /// The windows around a moment, in their order.
    fn spans(&self, moment: Timestamp, zone: &TimeZone) -> Vec<Interval> {
        match self {
            Self::Range(span) => vec![*span],
            Self::Weekly(days) => days.spans(moment, zone),
        }
    }
}

impl DayWindow {
    /// The length by the clock, in minutes.
    #[must_use]
    pub fn minutes(&self) -> u16 {
        if self.from < self.to { self.to - self.from } else { MINUTES_A_DAY - self.from + self.to }
    }

    /// Whether the window has no end, or no pause: each occurrence lasts until the next one begins.
    #[must_use]
    pub fn is_always(&self) -> bool {
        self.days.len() == 7 && self.minutes() >= MINUTES_A_DAY
    }

    /// The windows around a moment, in their order. Windows that touch are joined.
    fn spans(&self, now: Timestamp, zone: &TimeZone) -> Vec<Interval> {
        let today = now.to_zoned(zone.clone()).date();
        let mut joined: Vec<Interval> = Vec::new();
        for day in -DAYS_AROUND..=DAYS_AROUND {
            let Some(span) = today.checked_add(day.days()).ok().and_then(|date| self.on(date, zone)) else { continue };
            match joined.last_mut() {
                Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
                _ => joined.push(span),
            }
        }
        joined
    }

    /// The window that begins on a day; `None` if no window does, or if the clock jumps over all of it.
    fn on(&self, date: Date, zone: &TimeZone) -> Option<Interval> {
        if !self.days.contains(&date.weekday()) {
            return None;
        }
        let midnight = date.to_datetime(jiff::civil::Time::midnight());
        let begin = midnight.checked_add(i64::from(self.from).minutes()).ok()?;
        let end = begin.checked_add(i64::from(self.minutes()).minutes()).ok()?;
        let span = Interval { start: first_moment(begin, zone)?, end: last_moment(end, zone)? };
        (span.start < span.end).then_some(span)
    }
}

impl Interval {
    /// From one clock time to another; `None` if they are not in this order.
    #[must_use]
    pub fn between(from: DateTime, to: DateTime, zone: &TimeZone) -> Option<Self> {
        let span = Self { start: first_moment(from, zone)?, end: last_moment(to, zone)? };
        (span.start < span.end).then_some(span)
    }
}

/// The first moment at which a clock shows a time, or jumps over it.
fn first_moment(time: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    moment(time, zone, |before, _| before)
}

/// The last moment at which a clock shows a time, or jumps over it.
fn last_moment(time: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    moment(time, zone, |_, after| after)
}

/// The moment at which a clock shows a time. `of_both` chooses the offset of a time that occurs twice.
fn moment(time: DateTime, zone: &TimeZone, of_both: fn(Offset, Offset) -> Offset) -> Option<Timestamp> {
    let offset = match zone.to_ambiguous_timestamp(time).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Fold { before, after } => of_both(before, after),
        AmbiguousOffset::Gap { after, .. } => {
            let jump = zone.following(after.to_timestamp(time).ok()?).next();
            return jump.map(|transition| transition.timestamp());
        }
    };
    offset.to_timestamp(time).ok()
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZoneDatabase;

    use super::*;

    fn berlin() -> TimeZone {
        TimeZoneDatabase::bundled().get("Europe/Berlin").unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn weekly(days: &[Weekday], from: u16, to: u16) -> Window {
        Window::Weekly(DayWindow { days: days.to_vec(), from, to })
    }

    /// The window around a moment, as text; the start of the next one if there is none.
    fn shown(window: &Window, now: &str) -> String {
        match window.around(at(now), &berlin()) {
            (Some(Interval { start, end }), _) => format!("{start} to {end}"),
            (None, next) => next.map_or_else(|| "never".to_owned(), |next| format!("next {}", next.start)),
        }
    }

    #[test]
    fn a_window_over_midnight_belongs_to_its_first_day() {
        let friday_evening = weekly(&[Weekday::Friday], 17 * 60, 8 * 60);
        for (now, wanted) in [
            ("2026-11-20T15:59:59Z", "next 2026-11-20T16:00:00Z"),
            ("2026-11-20T16:00:00Z", "2026-11-20T16:00:00Z to 2026-11-21T07:00:00Z"),
            ("2026-11-21T06:59:59Z", "2026-11-20T16:00:00Z to 2026-11-21T07:00:00Z"),
            ("2026-11-21T07:00:00Z", "next 2026-11-27T16:00:00Z"),
        ] {
            assert_eq!(shown(&friday_evening, now), wanted, "{now}");
        }
    }

    #[test]
    fn days_that_touch_are_one_window() {
        let weekend = weekly(&[Weekday::Saturday, Weekday::Sunday], 0, 1_440);
        let weekend_in_utc = "2026-11-20T23:00:00Z to 2026-11-22T23:00:00Z";
        assert_eq!(shown(&weekend, "2026-11-21T12:00:00Z"), weekend_in_utc);
        assert_eq!(shown(&weekend, "2026-11-22T22:59:59Z"), weekend_in_utc);
        assert_eq!(shown(&weekend, "2026-11-22T23:00:00Z"), "next 2026-11-27T23:00:00Z");
        let six: Vec<_> = Weekday::Monday.cycle_forward().take(6).collect();
        assert_eq!(
            shown(&weekly(&six, 0, 1_440), "2026-11-20T12:00:00Z"),
            "2026-11-15T23:00:00Z to 2026-11-21T23:00:00Z"
        );
    }

    #[test]
    fn a_window_contains_both_occurrences_of_an_hour() {
        // On 25 October 2026 the clocks of Berlin go from 03:00 back to 02:00 at 01:00 UTC.
        let sunday = |from, to| weekly(&[Weekday::Sunday], from, to);
        let now = "2026-10-25T01:10:00Z";
        assert_eq!(shown(&sunday(150, 300), now), "2026-10-25T00:30:00Z to 2026-10-25T04:00:00Z");
        assert_eq!(shown(&sunday(60, 150), now), "2026-10-24T23:00:00Z to 2026-10-25T01:30:00Z");
        assert_eq!(shown(&sunday(120, 180), now), "2026-10-25T00:00:00Z to 2026-10-25T02:00:00Z");
    }

    #[test]
    fn a_skipped_hour_is_the_moment_of_the_jump() {
        // On 29 March 2026 the clocks of Berlin go from 02:00 to 03:00 at 01:00 UTC.
        let sunday = |from, to| weekly(&[Weekday::Sunday], from, to);
        assert_eq!(shown(&sunday(150, 300), "2026-03-29T01:00:00Z"), "2026-03-29T01:00:00Z to 2026-03-29T03:00:00Z");
        assert_eq!(shown(&sunday(60, 150), "2026-03-29T00:30:00Z"), "2026-03-29T00:00:00Z to 2026-03-29T01:00:00Z");
        // The clock jumps over all of the window.
        assert_eq!(shown(&sunday(130, 160), "2026-03-29T01:00:00Z"), "next 2026-04-05T00:10:00Z");
    }

    #[test]
    fn a_range_occurs_once() {
        let time = |text: &str| text.parse::<DateTime>().unwrap();
        let range = Interval::between(time("2026-12-20T00:00"), time("2027-01-02T06:00"), &berlin()).map(Window::Range);
        let range = range.unwrap();
        assert_eq!(shown(&range, "2026-12-01T00:00:00Z"), "next 2026-12-19T23:00:00Z");
        assert_eq!(shown(&range, "2026-12-25T00:00:00Z"), "2026-12-19T23:00:00Z to 2027-01-02T05:00:00Z");
        assert_eq!(shown(&range, "2027-01-02T05:00:00Z"), "never");
        assert_eq!(Interval::between(time("2026-12-20T00:00"), time("2026-12-20T00:00"), &berlin()), None);
    }

    #[test]
    fn a_window_without_a_pause_is_recognised() {
        let week: Vec<_> = Weekday::Monday.cycle_forward().take(7).collect();
        let always = |days: &[Weekday], from, to| DayWindow { days: days.to_vec(), from, to }.is_always();
        assert!(always(&week, 0, 1_440) && always(&week, 600, 600));
        assert!(!always(&week, 0, 1_439) && !always(&week[1..], 0, 1_440));
    }
}
