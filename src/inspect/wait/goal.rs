//! The goal of a wait.

use std::fmt;
use std::str::FromStr;

use interlock_engine::release::Status;

use crate::inspect::status::ReleaseSummary;

/// The longest version, in bytes.
const MAX_VERSION_BYTES: usize = 128;

/// The goal of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Goal {
    /// No operation is in flight.
    Free,
    /// Free, and the newest revision is deployed.
    Deployed,
    /// Deployed, with this version of the chart.
    Version(String),
    /// Free, and no freeze stops the user.
    Open,
}

/// The text is not a goal.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not free, deployed, open, or the version of a chart, for example 1.2.3")]
pub(crate) struct BadGoal(String);

impl FromStr for Goal {
    type Err = BadGoal;

    fn from_str(text: &str) -> Result<Self, BadGoal> {
        match text {
            "free" => Ok(Self::Free),
            "deployed" => Ok(Self::Deployed),
            "open" => Ok(Self::Open),
            _ if is_version(text) => Ok(Self::Version(text.to_owned())),
            _ => Err(BadGoal(text.to_owned())),
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Free => "free",
            Self::Deployed => "deployed",
            Self::Version(version) => version,
            Self::Open => "open",
        })
    }
}

impl Goal {
    /// The end of a sentence about a release that has reached the goal: `is ...`.
    #[must_use]
    pub(crate) fn reached(&self) -> String {
        match self {
            Self::Version(version) => format!("deployed at {version}"),
            other => other.to_string(),
        }
    }

    /// Whether a deployed revision has the wanted version. `v1.2.3` and `1.2.3` are the same version. `1.2.3+eeea19c702a2` is the
    /// same too, unless the goal has build metadata: Flux appends the digest of an OCI artifact.
    #[must_use]
    pub(super) fn is_at(&self, row: &ReleaseSummary) -> bool {
        let Self::Version(wanted) = self else { return row.status == Status::Deployed.as_str() };
        row.chart.as_deref().and_then(version).is_some_and(|deployed| {
            let (deployed, wanted) = (bare(deployed), bare(wanted));
            let without_build = deployed.split('+').next().filter(|_| !wanted.contains('+'));
            without_build.unwrap_or(deployed) == wanted
        })
    }
}

/// The version at the end of `name-version`; both may contain dashes.
fn version(chart: &str) -> Option<&str> {
    let starts = chart.match_indices('-').map(|(at, _)| &chart[at + 1..]);
    starts.into_iter().find(|rest| {
        let (major, minor) = bare(rest).split_once('.').unwrap_or_default();
        is_number(major) && minor.starts_with(|first: char| first.is_ascii_digit())
    })
}

/// Whether Helm accepts a text as the version of a chart: at least two numbers, with or without a `v`.
fn is_version(text: &str) -> bool {
    let (major, rest) = bare(text).split_once('.').unwrap_or_default();
    text.len() <= MAX_VERSION_BYTES
        && is_number(major)
        && rest.starts_with(|first: char| first.is_ascii_digit())
        && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+'))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn bare(version: &str) -> &str {
    version.strip_prefix('v').unwrap_or(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_chart_is_found() {
        for (chart, wanted) in [
            ("demo-1.0.0", Some("1.0.0")),
            ("ingress-nginx-4.11.2-rc.1+build-7", Some("4.11.2-rc.1+build-7")),
            ("app-2-1.0.0", Some("1.0.0")),
            ("cert-manager-v1.16.1", Some("v1.16.1")),
            ("app-v2-1.0.0", Some("1.0.0")),
            ("demo", None),
            ("demo-latest", None),
            ("", None),
        ] {
            assert_eq!(version(chart), wanted, "{chart}");
        }
    }

    #[test]
    fn build_metadata_count_only_if_they_are_asked_for() {
        let is_at = |wanted: &str, chart: &str| {
            let row = ReleaseSummary { chart: Some(chart.to_owned()), ..ReleaseSummary::of_web("deployed") };
            wanted.parse::<Goal>().unwrap().is_at(&row)
        };
        for (wanted, chart, reached) in [
            ("0.1.0", "demo-0.1.0+eeea19c702a2", true),
            ("v0.1.0", "demo-0.1.0+eeea19c702a2", true),
            ("0.1.0+eeea19c702a2", "demo-0.1.0+eeea19c702a2", true),
            ("0.1.0+0000", "demo-0.1.0+eeea19c702a2", false),
            ("0.1.0+eeea19c702a2", "demo-0.1.0", false),
            ("0.1.0-rc.1", "demo-0.1.0-rc.1+eeea", true),
            ("0.1.0", "demo-0.1.0-rc.1+eeea", false),
            ("0.1", "demo-0.1.0+eeea", false),
        ] {
            assert_eq!(is_at(wanted, chart), reached, "{wanted} {chart}");
        }
    }

    #[test]
    fn a_goal_is_a_word_or_a_version() {
        for (text, wanted) in [
            ("free", Goal::Free),
            ("deployed", Goal::Deployed),
            ("open", Goal::Open),
            ("1.2.3", Goal::Version("1.2.3".to_owned())),
        ] {
            assert_eq!(text.parse(), Ok(wanted), "{text}");
        }
        for text in ["v1.2.3", "1.2", "10.0.0-rc.1+build-7", "0.1.0-alpha"] {
            assert_eq!(text.parse::<Goal>().unwrap().to_string(), text);
        }
        let long = format!("1.{}", "1".repeat(200));
        for text in
            ["", "Free", "ready", "1", "latest", "demo-1.2.3", "1.x", ">=1.2.3", "v", "1.2.3 ", "1.2\u{1b}[2J", &long]
        {
            assert!(text.parse::<Goal>().is_err(), "{text:?}");
        }
        let text = "\u{1b}ready".parse::<Goal>().unwrap_err().to_string();
        assert_eq!(text, r#""\u{1b}ready" is not free, deployed, open, or the version of a chart, for example 1.2.3"#);
    }
}
