//! Durations on the command line: `90s`, `1h30m`.

use std::time::Duration;

use jiff::SignedDuration;

/// The longest duration: its sum with any time in a policy is still a valid time.
const LONGEST: SignedDuration = SignedDuration::from_hours(366 * 24);

/// A duration up to a year.
pub(super) fn duration(text: &str) -> Result<SignedDuration, String> {
    let read = if text == "0" { Some(SignedDuration::ZERO) } else { text.parse::<SignedDuration>().ok() };
    match read.filter(|duration| !duration.is_negative()) {
        None => Err(format!("{text:?} is not a duration like 90s or 1h30m")),
        Some(duration) if duration > LONGEST => Err(format!("{text:?} is longer than a year")),
        Some(duration) => Ok(duration),
    }
}

/// A duration up to a year, but not zero.
pub(super) fn some_time(text: &str) -> Result<SignedDuration, String> {
    match duration(text)? {
        duration if duration.is_zero() => Err(format!("{text:?} is no time at all; use a duration like 30m or 1h30m")),
        duration => Ok(duration),
    }
}

/// A duration without fractions of a second. A bare number counts as seconds, because earlier versions accepted only these.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let bare = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
    let duration = duration(&if bare { format!("{text}s") } else { text.to_owned() })?;
    match duration.subsec_nanos() {
        0 => Ok(duration.unsigned_abs()),
        _ => Err(format!("{text:?} is not a number of whole seconds, like 30s")),
    }
}

/// Like [`seconds`], but not zero.
pub(super) fn some_seconds(text: &str) -> Result<Duration, String> {
    match seconds(text)? {
        Duration::ZERO => Err(format!("{text:?} is no time at all; use a duration like 30s or 24h")),
        duration => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_limits() {
        for (text, wanted) in [("90s", Ok(90)), ("1h30m", Ok(5_400)), ("0", Ok(0)), ("8784h", Ok(8_784 * 3_600))] {
            assert_eq!(duration(text).map(|it| it.as_secs()), wanted, "{text}");
        }
        for (text, why) in [("", "90s"), ("5", "90s"), ("soon", "90s"), ("-5m", "90s"), ("8785h", "longer than a year")]
        {
            assert!(duration(text).unwrap_err().contains(why), "{text}");
        }
        assert!(some_time("0s").unwrap_err().contains("30m") && some_time("5m").is_ok());
    }

    #[test]
    fn a_bare_number_means_seconds_where_it_always_did() {
        for (text, wanted) in [("120", 120), ("30s", 30), ("24h", 86_400), ("0", 0)] {
            assert_eq!(seconds(text).map(|it| it.as_secs()), Ok(wanted), "{text}");
        }
        for text in ["", "-5", "0.5s", "99999999999", "x"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        assert!(some_seconds("0").unwrap_err().contains("30s") && some_seconds("1").is_ok());
    }
}
