//! The API server: its version, and clocks.

use jiff::SignedDuration;
use serde_json::Value;

use super::check::Check;
use super::fetch::Seen;
use super::snapshot::Cluster;
use crate::engine::severity::Severity::{High, Low};

const SERVER: &str = "api-server";

/// The oldest minor version that serves all that the registration uses: matchConditions are stable since then.
const OLDEST: u64 = 30;

/// Those that the tests run on, at the newest.
const NEWEST_TRIED: u64 = 36;

/// A clock that is further off makes ages wrong.
const SKEW: SignedDuration = SignedDuration::from_secs(5);

pub(super) fn checks(cluster: &Cluster) -> Vec<Check> {
    let version = match &cluster.version {
        Seen::Known(version) => of_version(version),
        Seen::Absent => Check::skipped(SERVER, "the API server does not tell its version"),
        Seen::Unknown(why) => Check::skipped(SERVER, why),
    };
    let (theirs, ours) = cluster.clocks;
    vec![version, of_clocks(ours.duration_since(theirs))]
}

fn of_version(version: &Value) -> Check {
    let text = version["gitVersion"].as_str().unwrap_or_default();
    // Some vendors write "30+".
    let minor = version["minor"].as_str().unwrap_or_default().trim_end_matches('+').parse::<u64>();
    match minor {
        Ok(minor) if minor < OLDEST => {
            let evidence = format!("Kubernetes {text} has no matchConditions: every Secret would be sent to us");
            Check::found(SERVER, High, evidence, format!("upgrade to Kubernetes 1.{OLDEST} or newer"))
        }
        Ok(minor) if minor > NEWEST_TRIED => Check::note(
            SERVER,
            format!("Kubernetes {text} is newer than what this version was tested on (1.{NEWEST_TRIED})"),
        ),
        Ok(_) => Check::ok(SERVER, format!("Kubernetes {text}; no feature gate is needed")),
        Err(_) => Check::skipped(SERVER, format!("{text:?} is no version of Kubernetes")),
    }
}

/// By how much our clock is ahead.
fn of_clocks(ahead: SignedDuration) -> Check {
    // The API server tells whole seconds.
    if ahead.abs() > SKEW {
        let evidence = format!("this machine's clock is {} s off the API server's, which counts", ahead.as_secs());
        Check::found(SERVER, Low, evidence, "set this machine's clock right (NTP)")
    } else {
        Check::ok(SERVER, "this machine's clock agrees with the API server's")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_are_too_old_right_or_newer_than_tried() {
        let state =
            |minor: &str| of_version(&json!({"minor": minor, "gitVersion": format!("v1.{minor}.0")})).state.as_str();
        assert_eq!(["29", "30", "36+", "37", "x"].map(state), ["high", "ok", "ok", "note", "skipped"]);
    }

    #[test]
    fn clocks_agree_within_seconds() {
        let state = |seconds| of_clocks(SignedDuration::from_secs(seconds)).state.as_str();
        assert_eq!([0, 4, -5, 6, -90].map(state), ["ok", "ok", "ok", "low", "low"]);
    }
}
