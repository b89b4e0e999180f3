//! The API server's version and clock.

use interlock_engine::severity::Severity::{High, Low};
use jiff::SignedDuration;
use serde_json::Value;

use super::diagnosis::{Checked, Diagnosis};
use super::snapshot::Snapshot;
use crate::supported::{NEWEST_TESTED_MINOR, OLDEST_MINOR, Support, support_of};

/// The maximum clock difference. A larger one makes ages wrong.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(5);

pub(super) fn version(snapshot: &Snapshot) -> Checked {
    let version = snapshot.version.object()?;
    Ok(diagnose_version(version.ok_or("the API server does not report its version")?))
}

fn diagnose_version(version: &Value) -> Diagnosis {
    let text = version["gitVersion"].as_str().unwrap_or_default();
    match support_of(version["minor"].as_str().unwrap_or_default()) {
        Support::TooOld => {
            let evidence = format!(
                "Kubernetes {text} is older than 1.{OLDEST_MINOR}, the oldest supported version, and may not have stable \
                 matchConditions: without them, every Secret is sent to Interlock"
            );
            Diagnosis::found(High, evidence, format!("upgrade to Kubernetes 1.{OLDEST_MINOR} or newer"))
        }
        Support::NewerThanTested => Diagnosis::note(format!(
            "Kubernetes {text} is newer than the newest tested version 1.{NEWEST_TESTED_MINOR}"
        )),
        Support::Supported => Diagnosis::ok(format!("Kubernetes {text} is supported")),
        Support::Unknown => Diagnosis::skipped(format!("the API server reports the unknown version {text:?}")),
    }
}

pub(super) fn clocks(snapshot: &Snapshot) -> Diagnosis {
    let (server, local) = snapshot.clocks;
    diagnose_clocks(local.duration_since(server))
}

/// `ahead`: how far this machine's clock is ahead.
fn diagnose_clocks(ahead: SignedDuration) -> Diagnosis {
    // The API server's Date header has whole seconds.
    if ahead.abs() > MAX_CLOCK_SKEW {
        let evidence = format!(
            "this machine's clock differs from the API server's by {} s; Interlock uses the API server's",
            ahead.as_secs()
        );
        Diagnosis::found(Low, evidence, "correct this machine's clock (NTP)")
    } else {
        Diagnosis::ok("this machine's clock agrees with the API server's")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_are_too_old_supported_or_newer_than_tested() {
        let diagnosis = |minor: &str| diagnose_version(&json!({"minor": minor, "gitVersion": format!("v1.{minor}.0")}));
        let state = |minor: &str| diagnosis(minor).state.as_str();
        assert_eq!(["29", "30", "37+", "38", "x"].map(state), ["high", "ok", "ok", "note", "skipped"]);
        let too_old = diagnosis("29");
        assert!(too_old.evidence.starts_with("Kubernetes v1.29.0 is older than 1.30"), "{too_old:?}");
        assert_eq!(too_old.fix.as_deref(), Some("upgrade to Kubernetes 1.30 or newer"));
    }

    #[test]
    fn clocks_agree_within_seconds() {
        let state = |seconds| diagnose_clocks(SignedDuration::from_secs(seconds)).state.as_str();
        assert_eq!([0, 4, -5, 6, -90].map(state), ["ok", "ok", "ok", "low", "low"]);
    }
}
