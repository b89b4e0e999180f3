//! The end of a freeze on the command line.

use anyhow::Context;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

use crate::cli::freezes::moment_in;

/// The value of `--until`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Until {
    /// A time of today or tomorrow, by the clock of this computer.
    OfDay(Time),
    At(Zoned),
}

/// Parses `18:00`, `2026-12-24T18:00`, `2026-12-24T18:00Z` or `2026-12-24T18:00[Europe/Berlin]`.
pub(super) fn parse(text: &str) -> Result<Until, String> {
    let is_of_day = text.len() <= "18:00:00".len() && text.contains(':');
    let read = match is_of_day {
        true => text.parse().ok().map(Until::OfDay),
        false => moment_in(text, TimeZone::system()).map(Until::At),
    };
    read.ok_or_else(|| {
        format!(
            "{text:?} is not a time like 18:00, 2026-12-24T18:00, 2026-12-24T18:00Z or 2026-12-24T18:00[Europe/Berlin]"
        )
    })
}

impl Until {
    /// The end of a freeze that is created at `now`.
    pub(super) fn after(&self, now: Timestamp) -> anyhow::Result<Zoned> {
        match self {
            Self::At(moment) => Ok(moment.clone()),
            Self::OfDay(time) => next(*time, &now.to_zoned(TimeZone::system())),
        }
    }
}

/// The next moment at which the clock shows `time`.
fn next(time: Time, now: &Zoned) -> anyhow::Result<Zoned> {
    let today = now.with().time(time).build()?;
    if today > *now { Ok(today) } else { Ok(now.tomorrow()?.with().time(time).build()?) }
}

/// The moment after `length`, in the time zone of this computer.
pub(super) fn later(now: Timestamp, length: SignedDuration) -> anyhow::Result<Zoned> {
    let end = now.checked_add(length).context("--for is too long")?;
    Ok(end.to_zoned(TimeZone::system()))
}

/// The time zone for the times of a Freeze, and its name. It is the zone of the end, if the zone has a name and the local time of the end is
/// not ambiguous. Otherwise it is UTC.
pub(super) fn named_zone(moment: &Zoned) -> (TimeZone, String) {
    let zone = moment.time_zone();
    let is_plain = !zone.to_ambiguous_zoned(moment.datetime()).is_ambiguous();
    match zone.iana_name().filter(|_| is_plain) {
        Some(name) => (zone.clone(), name.to_owned()),
        None => (TimeZone::UTC, "UTC".to_owned()),
    }
}

/// The local time, in the format of a Freeze.
pub(super) fn written(moment: &Zoned) -> String {
    let seconds = moment.datetime().with().subsec_nanosecond(0).build().unwrap_or(moment.datetime());
    seconds.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Zoned {
        text.parse().unwrap()
    }

    #[test]
    fn a_time_of_day_means_the_next_occurrence() {
        let six: Time = "18:00".parse().unwrap();
        let after = |now: &str| next(six, &at(now)).unwrap().to_string();
        assert_eq!(after("2026-12-24T17:59[Europe/Berlin]"), "2026-12-24T18:00:00+01:00[Europe/Berlin]");
        assert_eq!(after("2026-12-24T18:00[Europe/Berlin]"), "2026-12-25T18:00:00+01:00[Europe/Berlin]");
    }

    #[test]
    fn an_ambiguous_local_time_is_shown_in_utc() {
        let said = |text: &str| {
            let moment = at(text);
            let (zone, name) = named_zone(&moment);
            format!("{} {name}", written(&moment.with_time_zone(zone)))
        };
        assert_eq!(said("2026-12-24T18:00:00.5[Europe/Berlin]"), "2026-12-24T18:00:00 Europe/Berlin");
        assert_eq!(said("2026-10-25T02:30+01:00[Europe/Berlin]"), "2026-10-25T01:30:00 UTC");
        assert_eq!(said("2026-12-24T18:00+01:00[+01:00]"), "2026-12-24T17:00:00 UTC");
        assert!(parse("2026-12-24T18:00Z").is_ok() && parse("18:00").is_ok() && parse("2026-12-24").is_ok());
        assert!(parse("25:00").is_err() && parse("6pm").is_err());
    }
}
