//! Durations in suites.

use jiff::SignedDuration;

pub(super) fn duration(text: &str) -> Result<SignedDuration, String> {
    let duration = text.parse::<SignedDuration>().ok().filter(|duration| !duration.is_negative());
    duration.ok_or_else(|| format!("{text:?} is not a duration like 15m or 1h30m"))
}
