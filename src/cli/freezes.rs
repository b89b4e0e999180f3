//! Shows freezes to people: the freezes in force at a moment, and their end.

use interlock_engine::policy::{Freeze, FreezeState, LimitedFreeze};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde_json::{Value, json};

/// Parses a moment: `2026-12-24T18:00:00Z`, `2026-12-24T18:00+01:00`, `2026-12-24T18:00[Europe/Berlin]`, or in UTC `2026-12-24` and
/// `2026-12-24T18:00`.
pub(super) fn moment(text: &str) -> Result<Timestamp, String> {
    let read = moment_in(text, TimeZone::UTC);
    read.map(|moment| moment.timestamp())
        .ok_or_else(|| format!("{text:?} is not a time like 2026-12-24T18:00:00Z or 2026-12-24T18:00[Europe/Berlin]"))
}

/// Parses a moment with its time zone. `zone` is that of a moment without one.
pub(super) fn moment_in(text: &str, zone: TimeZone) -> Option<Zoned> {
    if let Ok(zoned) = text.parse::<Zoned>() {
        return Some(zoned);
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Some(timestamp.to_zoned(zone));
    }
    text.parse::<DateTime>().ok()?.to_zoned(zone).ok()
}

/// `in force until 2027-01-02 06:00 Europe/Berlin`, `from 2026-12-20 00:00 Europe/Berlin`, or `over`.
pub(super) fn state(it: LimitedFreeze<'_>, at: Timestamp) -> String {
    let freeze = it.freeze;
    match it.at(at) {
        FreezeState::InForce(until) => format!("in force {}", freeze.shown_until(until)),
        FreezeState::Open(Some(next)) => format!("from {}", freeze.shown(next)),
        FreezeState::Open(None) => "over".to_owned(),
    }
}

/// Like [`state`], as JSON. `changes` is the next begin or end.
pub(super) fn state_json(it: LimitedFreeze<'_>, at: Timestamp) -> Value {
    let freeze = it.freeze;
    let (in_force, changes) = match it.at(at) {
        FreezeState::InForce(until) => (true, until),
        FreezeState::Open(next) => (false, next),
    };
    let mut state = json!({
        "freeze": freeze.name, "reason": freeze.reason, "scope": freeze.scope, "exempt": freeze.exemption,
        "inForce": in_force, "changes": changes,
    });
    if let Some(user) = freeze.creator() {
        state["createdBy"] = user.into();
    }
    state
}

/// `every release in namespaces prod-*, except for users bob, groups on-call`
pub(super) fn concerned(freeze: &Freeze) -> String {
    let exemption = freeze.exemption.as_ref().map(|who| format!(", except for {who}"));
    format!("{}{}", freeze.scope, exemption.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_a_zone_or_is_in_utc() {
        for (text, wanted) in [
            ("2026-12-24T18:00:00Z", "2026-12-24T18:00:00Z"),
            ("2026-12-24T18:00+01:00", "2026-12-24T17:00:00Z"),
            ("2026-12-24T18:00[Europe/Berlin]", "2026-12-24T17:00:00Z"),
            ("2026-12-24T18:00", "2026-12-24T18:00:00Z"),
            ("2026-12-24", "2026-12-24T00:00:00Z"),
        ] {
            assert_eq!(moment(text).unwrap().to_string(), wanted, "{text}");
        }
        assert!(moment("tomorrow").unwrap_err().contains("2026-12-24T18:00:00Z"));
    }
}
