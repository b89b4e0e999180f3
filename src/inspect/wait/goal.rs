//! What a wait is for.

use std::fmt;
use std::str::FromStr;

use crate::engine::release::Status;
use crate::inspect::status::{ReleaseSummary, version};

/// Longer texts are no version.
const MAX_VERSION_BYTES: usize = 128;

/// What a wait is for.
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

/// A text that names no goal.
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
    /// The end of a sentence about a release that has reached it: `is ...`.
    #[must_use]
    pub(crate) fn reached(&self) -> String {
        match self {
            Self::Version(version) => format!("deployed at {version}"),
            other => other.to_string(),
        }
    }

    /// Whether a deployed revision is the wanted one. `v1.2.3` and `1.2.3` are the same version.
    #[must_use]
    pub(super) fn is_at(&self, row: &ReleaseSummary) -> bool {
        let Self::Version(wanted) = self else { return row.status == Status::Deployed.as_str() };
        row.chart.as_deref().and_then(version).is_some_and(|deployed| bare(deployed) == bare(wanted))
    }
}

/// As Helm accepts versions of charts, with or without a `v`: two numbers at least.
fn is_version(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (major, rest) = bare(text).split_once('.').unwrap_or_default();
    text.len() <= MAX_VERSION_BYTES
        && digits(major)
        && rest.starts_with(|first: char| first.is_ascii_digit())
        && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+'))
}

fn bare(version: &str) -> &str {
    version.strip_prefix('v').unwrap_or(version)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let told = "\u{1b}ready".parse::<Goal>().unwrap_err().to_string();
        assert_eq!(told, r#""\u{1b}ready" is not free, deployed, open, or the version of a chart, for example 1.2.3"#);
    }
}
