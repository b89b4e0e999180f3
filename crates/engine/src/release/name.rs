//! Release names, revisions, and the object names of records.

use std::fmt;
use std::str::FromStr;

use crate::object::is_dns_subdomain;

/// The prefix that every storage driver of Helm uses.
const RECORD_NAME_PREFIX: &str = "sh.helm.release.v1.";

/// The longest release name that Helm accepts, in bytes.
pub const MAX_RELEASE_NAME_LENGTH: usize = 53;

/// A release, by the namespace and name that people and other objects use.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReleaseRef {
    /// The namespace of the records; empty if a cluster-scoped object declares the release and nothing else is known.
    pub namespace: String,
    pub name: String,
}

impl ReleaseRef {
    /// A release from the namespace of its records and its name.
    #[must_use]
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ReleaseRef {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            out.write_str(&self.name)
        } else {
            write!(out, "{}/{}", self.namespace, self.name)
        }
    }
}

/// The name of a release: a lower-case DNS subdomain of at most 53 characters. Dots are allowed, so `a.v1` is a release
/// name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReleaseName(String);

/// The text is not a release name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a release name: a lower-case DNS subdomain of at most 53 characters")]
pub struct BadReleaseName(String);

impl ReleaseName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ReleaseName {
    type Err = BadReleaseName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if is_dns_subdomain(text, MAX_RELEASE_NAME_LENGTH) {
            return Ok(Self(text.to_owned()));
        }
        Err(BadReleaseName(text.chars().take(80).collect()))
    }
}

impl fmt::Display for ReleaseName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The revision of a release, counted from 1. Revisions may have gaps and may be used again after a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Deserialize)]
#[serde(transparent)]
pub struct Revision(pub u64);

impl Revision {
    /// The highest revision that a record may have. Helm counts in an `int` and adds one without a check. No release
    /// comes near this limit.
    pub const MAX: Self = Self(i32::MAX as u64);
}

impl fmt::Display for Revision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

impl FromStr for Revision {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// The object name of a record: `sh.helm.release.v1.<release>.v<revision>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecordName {
    pub release: ReleaseName,
    pub revision: Revision,
}

/// Why an object name is not the name of a record.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRecordName {
    /// Helm's storage did not create the object.
    #[error("the name does not start with {RECORD_NAME_PREFIX}")]
    Prefix,
    /// The name has no `.v<digits>` at the end, or a number that Helm would not write.
    #[error("the name does not end in .v<revision>")]
    Revision,
    /// The revision is so high that Helm could not count beyond it.
    #[error("its revision is higher than {}", Revision::MAX)]
    RevisionTooHigh,
    /// The text between prefix and revision is not a release name.
    #[error(transparent)]
    Release(#[from] BadReleaseName),
}

impl FromStr for RecordName {
    type Err = BadRecordName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let rest = name.strip_prefix(RECORD_NAME_PREFIX).ok_or(BadRecordName::Prefix)?;
        // The last `.v` counts, because a release may be called `a.v1`.
        let (release, digits) = rest.rsplit_once(".v").ok_or(BadRecordName::Revision)?;
        let canonical = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
        if !canonical || digits.is_empty() {
            return Err(BadRecordName::Revision);
        }
        let revision = digits.parse().ok().filter(|revision| *revision <= Revision::MAX);
        let revision = revision.ok_or(BadRecordName::RevisionTooHigh)?;
        Ok(Self { release: release.parse()?, revision })
    }
}

impl fmt::Display for RecordName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{RECORD_NAME_PREFIX}{}.v{}", self.release, self.revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_dot_v_separates_the_revision() {
        let name: RecordName = "sh.helm.release.v1.a.v1.v12".parse().unwrap();
        assert_eq!(name.release.as_str(), "a.v1");
        assert_eq!(name.revision, Revision(12));
        assert_eq!(name.to_string(), "sh.helm.release.v1.a.v1.v12");
    }

    #[test]
    fn names_that_helm_would_not_write_are_refused() {
        use BadRecordName::{Prefix, Release, Revision, RevisionTooHigh};
        assert_eq!("web".parse::<RecordName>(), Err(Prefix));
        for bad in ["web", "web.v", "web.v1a", "web.v+1", "web.v01", "web.v0"] {
            assert_eq!(format!("sh.helm.release.v1.{bad}").parse::<RecordName>(), Err(Revision), "{bad}");
        }
        for high in ["2147483648", "9223372036854775807", "99999999999999999999999"] {
            assert_eq!(format!("sh.helm.release.v1.web.v{high}").parse::<RecordName>(), Err(RevisionTooHigh), "{high}");
        }
        for bad in [".v1", "Web.v1", "a..b.v1", "-a.v1"] {
            let parsed = format!("sh.helm.release.v1.{bad}").parse::<RecordName>();
            assert!(matches!(parsed, Err(Release(_))), "{bad}: {parsed:?}");
        }
        assert!("a".repeat(53).parse::<ReleaseName>().is_ok());
        assert!("a".repeat(54).parse::<ReleaseName>().is_err());
    }
}
