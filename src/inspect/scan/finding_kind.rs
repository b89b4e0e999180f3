//! The problems that a scan finds, and their severity.

use std::fmt;

use interlock_engine::severity::Severity;
use serde::Serialize;

/// A kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// Several records of a release have the status `deployed`.
    SeveralDeployed,
    /// An operation has been pending for longer than the policy's `staleAfter`.
    StuckOperation,
    /// Parts of a record of OLM are missing, so OLM can do nothing for the release.
    BrokenRecord,
    /// The body of a record cannot be decoded.
    UnreadableRecord,
    /// Several HelmReleases manage one release.
    DuplicateRelease,
    /// Managers keep several releases with one name and one namespace of objects, with records in different places.
    ContestedRelease,
    /// Object name, labels and body of a record contradict one another.
    InconsistentRecord,
    /// An operation was interrupted, and nothing newer has been deployed since.
    InterruptedOperation,
    /// The newest record has the status `failed`.
    FailedRelease,
    /// The newest record is superseded, and no operation is in flight.
    NotDeployed,
    /// A ConfigurationGroup names bundles that do not exist.
    DanglingBundle,
    /// An object of a release does not exist.
    MissingObject,
    /// Two others apply one object.
    SharedObject,
    /// Another owner has adopted an object of a release.
    AdoptedObject,
    /// Declared fields of an object differ from the manifest of its release.
    Drift,
    /// An older record is still pending.
    BuriedOperation,
    /// A chart installed CustomResourceDefinitions from its directory `crds/`.
    UnmarkedDefinition,
}

impl FindingKind {
    /// All of them, the worst first.
    pub const ALL: [Self; 17] = [
        Self::SeveralDeployed,
        Self::StuckOperation,
        Self::BrokenRecord,
        Self::UnreadableRecord,
        Self::DuplicateRelease,
        Self::ContestedRelease,
        Self::InconsistentRecord,
        Self::InterruptedOperation,
        Self::FailedRelease,
        Self::NotDeployed,
        Self::DanglingBundle,
        Self::MissingObject,
        Self::SharedObject,
        Self::AdoptedObject,
        Self::Drift,
        Self::BuriedOperation,
        Self::UnmarkedDefinition,
    ];

    /// The spelling in output, JSON and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SeveralDeployed => "several-deployed",
            Self::StuckOperation => "stuck-operation",
            Self::BrokenRecord => "broken-record",
            Self::UnreadableRecord => "unreadable-record",
            Self::DuplicateRelease => "duplicate-release",
            Self::ContestedRelease => "contested-release",
            Self::InconsistentRecord => "inconsistent-record",
            Self::InterruptedOperation => "interrupted-operation",
            Self::FailedRelease => "failed-release",
            Self::NotDeployed => "not-deployed",
            Self::DanglingBundle => "dangling-bundle",
            Self::MissingObject => "missing-object",
            Self::SharedObject => "shared-object",
            Self::AdoptedObject => "adopted-object",
            Self::Drift => "drift",
            Self::BuriedOperation => "buried-operation",
            Self::UnmarkedDefinition => "unmarked-definition",
        }
    }

    /// How much a finding of this kind matters.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Self::SeveralDeployed
            | Self::StuckOperation
            | Self::BrokenRecord
            | Self::UnreadableRecord
            | Self::DuplicateRelease => Severity::High,
            Self::ContestedRelease
            | Self::InconsistentRecord
            | Self::InterruptedOperation
            | Self::FailedRelease
            | Self::NotDeployed
            | Self::DanglingBundle
            | Self::MissingObject
            | Self::SharedObject => Severity::Medium,
            Self::AdoptedObject | Self::Drift => Severity::Low,
            Self::BuriedOperation | Self::UnmarkedDefinition => Severity::Info,
        }
    }

    /// A one-sentence description.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::SeveralDeployed => "Several records of a release have the status deployed.",
            Self::StuckOperation => "An operation has been pending for longer than the policy's staleAfter.",
            Self::BrokenRecord => "Parts of a record are missing, so its owner can do nothing for the release.",
            Self::UnreadableRecord => "The body of a record cannot be decoded.",
            Self::DuplicateRelease => "Several HelmReleases manage one release.",
            Self::ContestedRelease => "Managers keep several releases with one name and one namespace of objects.",
            Self::InconsistentRecord => "Object name, labels and body of a record contradict one another.",
            Self::InterruptedOperation => "An operation was interrupted, and nothing newer has been deployed since.",
            Self::FailedRelease => "The newest record has the status failed.",
            Self::NotDeployed => "The newest record is superseded, and no operation is in flight.",
            Self::DanglingBundle => "A ConfigurationGroup names bundles that do not exist.",
            Self::MissingObject => "An object of a release does not exist.",
            Self::SharedObject => "Two others apply one object, which changes back and forth.",
            Self::AdoptedObject => "Another owner has adopted an object of a release, whose records are still there.",
            Self::Drift => "Declared fields of an object differ from the manifest of its release.",
            Self::BuriedOperation => "An older record is still pending.",
            Self::UnmarkedDefinition => {
                "A chart installed CustomResourceDefinitions from its directory crds/, without a mark."
            }
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_listed_once_the_worst_first_and_spelled_as_in_json() {
        for (place, check) in FindingKind::ALL.into_iter().enumerate() {
            assert_eq!(check as usize, place, "{check}");
            assert_eq!(serde_json::to_value(check).unwrap(), check.as_str());
        }
        assert!(FindingKind::ALL.is_sorted_by_key(|check| std::cmp::Reverse(check.severity())));
        for severity in Severity::ALL {
            assert_eq!(serde_json::to_value(severity).unwrap(), severity.as_str());
        }
        assert!(Severity::ALL.is_sorted_by(|worse, better| worse > better));
    }
}
