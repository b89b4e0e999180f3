//! The value of `--since`: a time, or a duration before now.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// Parses `24h` or `7d` (before now), `2026-11-20` or `2026-11-20T10:00:00Z`.
pub(super) fn since(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Ok(timestamp);
    }
    if let Ok(date) = text.parse::<Date>() {
        let midnight = date.to_zoned(TimeZone::UTC);
        return midnight.map(|midnight| midnight.timestamp()).map_err(|error| error.to_string());
    }
    let ago = text.parse::<Span>().ok().filter(|span| !span.is_negative());
    let then = ago.and_then(|ago| now.to_zoned(TimeZone::UTC).checked_sub(ago).ok());
    then.map(|then| then.timestamp())
        .ok_or_else(|| format!("{text:?} is neither a duration like 24h or 7d nor a time like 2026-11-20T10:00:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_count_back_from_now_and_times_are_absolute() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        for (text, wanted) in [
            ("24h", "2026-11-20T10:00:00Z"),
            ("7d", "2026-11-14T10:00:00Z"),
            ("1h30m", "2026-11-21T08:30:00Z"),
            ("2026-11-20", "2026-11-20T00:00:00Z"),
            ("2026-11-20T10:00:00+02:00", "2026-11-20T08:00:00Z"),
        ] {
            assert_eq!(since(text, now).unwrap().to_string(), wanted, "{text}");
        }
        for text in ["", "yesterday", "-5m", "10:00"] {
            assert!(since(text, now).unwrap_err().contains("7d"), "{text}");
        }
    }
}
