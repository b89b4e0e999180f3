//! The values of keys: dates, times of the day, time zones.

use jiff::civil::{Date, DateTime};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde_json::{Value, json};

use super::nearest::nearest_to;
use super::read::FromText;

/// A date with a time, or a time of every day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy_files) enum Moment {
    Dated(DateTime),
    /// The minute of the day: 0 to 1,440.
    OfDay(u16),
}

impl Moment {
    fn parsed(text: &str) -> Option<Self> {
        // jiff would also accept an offset, and ignore it.
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"-:T ".contains(&byte));
        if !is_plain {
            return None;
        }
        match text.split_once(':') {
            Some((hours, minutes)) if hours.len() == 2 && minutes.len() == 2 => {
                let (hours, minutes) = (hours.parse::<u16>().ok()?, minutes.parse::<u16>().ok()?);
                let minute = hours * 60 + minutes;
                (minutes < 60 && minute <= 1_440).then_some(Self::OfDay(minute))
            }
            _ => {
                let moment = text.parse().or_else(|_| text.parse().map(|date: Date| date.at(0, 0, 0, 0)));
                moment.ok().map(Self::Dated)
            }
        }
    }
}

impl FromText for Moment {
    type Output = Self;

    fn schema() -> Value {
        json!({"type": "string", "examples": ["17:00", "2026-12-20", "2026-12-20T17:00"]})
    }

    fn parse(text: &str) -> Result<Self, String> {
        Self::parsed(text).ok_or_else(|| {
            format!("`{text}` is neither a time like 17:00, nor a date like 2026-12-20 or 2026-12-20T17:00")
        })
    }
}

/// A time zone by its name. The program contains the database, because an image has none.
pub(in crate::policy_files) struct ZoneName;

impl FromText for ZoneName {
    type Output = TimeZone;

    fn schema() -> Value {
        json!({"type": "string", "examples": ["Europe/Berlin", "America/New_York", "UTC"]})
    }

    fn parse(text: &str) -> Result<TimeZone, String> {
        let zones = TimeZoneDatabase::bundled();
        zones.get(text).map_err(|_| {
            // There are six hundred names: too many to list.
            let known: Vec<_> = zones.available().map(|name| name.to_string()).collect();
            let meant = nearest_to(text, known.iter().map(String::as_str));
            let meant = meant.map_or_else(
                || "name one of the IANA database, for example Europe/Berlin or UTC".to_owned(),
                |meant| format!("did you mean `{meant}`?"),
            );
            format!("there is no time zone `{text}`; {meant}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates_or_times_of_the_day() {
        let dated = |text: &str| Some(Moment::Dated(text.parse().unwrap()));
        for (text, wanted) in [
            ("17:00", Some(Moment::OfDay(1_020))),
            ("00:00", Some(Moment::OfDay(0))),
            ("24:00", Some(Moment::OfDay(1_440))),
            ("2026-12-20", dated("2026-12-20T00:00")),
            ("2026-12-20T17:00", dated("2026-12-20T17:00")),
            ("2026-12-20 17:00:30", dated("2026-12-20T17:00:30")),
            ("24:01", None),
            ("17:60", None),
            ("5 pm", None),
            ("17", None),
            ("7:00", None),
            ("2026-13-20", None),
            ("2026-12-20T17:00Z", None),
            ("2026-12-20T17:00+01:00", None),
        ] {
            assert_eq!(Moment::parsed(text), wanted, "{text}");
        }
    }
}
