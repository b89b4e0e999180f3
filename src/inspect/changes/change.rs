//! One change of a release.

use std::fmt::Display;

use interlock_engine::decision::{Groups, TransitionKind, TransitionOutcome};
use interlock_engine::owners::{CARRIERS, Carrier};
use interlock_engine::release::{ReleaseRef, Status};
use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// A transition of a release, or of an object that carries its operation itself. The names of the fields are public: `interlock changes
/// -o json` and the columns of its CSV.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Change {
    /// By the clock of the API server.
    pub(crate) time: Timestamp,
    /// The name of the cluster, if a log names it or the records of several clusters were read.
    pub(crate) cluster: Option<String>,
    #[serde(flatten)]
    pub(crate) release: ChangedRelease,
    #[serde(serialize_with = "text")]
    pub(crate) transition: TransitionKind,
    /// The status before; `None` if the record is created, if the status is unknown, or if there is no record.
    #[serde(serialize_with = "optional_text")]
    pub(crate) from: Option<Status>,
    /// The status after; `None` if the record is deleted, if the status is unknown, or if there is no record.
    #[serde(serialize_with = "optional_text")]
    pub(crate) to: Option<Status>,
    #[serde(serialize_with = "outcome")]
    pub(crate) outcome: TransitionOutcome,
    /// The user who made this write.
    pub(crate) user: Option<String>,
    #[serde(flatten)]
    pub(crate) groups: Groups,
    /// The user who started the operation.
    pub(crate) holder: Option<String>,
    /// `name-version`.
    pub(crate) chart: Option<String>,
    /// From the start of the operation to its end.
    pub(crate) seconds: Option<u64>,
    /// The override that opened a rule for this change, as `namespace/name`.
    #[serde(rename = "override")]
    pub(crate) overridden: Option<String>,
    /// The ticket that this override names.
    pub(crate) ticket: Option<String>,
    /// The freeze that was in force when an operation started.
    pub(crate) freeze: Option<String>,
    pub(crate) source: ChangeSource,
    pub(crate) certainty: Certainty,
    /// The range of possible times, if `time` is an estimate.
    #[serde(skip)]
    pub(crate) range: Option<(Timestamp, Timestamp)>,
}

/// A revision of a release, or an object that carries its operation itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub(crate) struct ChangedRelease {
    /// The namespace of the records.
    pub(crate) namespace: String,
    pub(crate) release: String,
    /// Of a record.
    pub(crate) revision: Option<u64>,
    /// The kind of its record, `Secret` or `ConfigMap`: a release of one name can have records in both. Or the kind of the object.
    pub(crate) storage: &'static str,
}

impl ChangedRelease {
    /// The object that carries its operation itself.
    pub(crate) fn of_object(carrier: &Carrier, place: ReleaseRef) -> Self {
        let ReleaseRef { namespace, name } = place;
        Self { namespace, release: name, revision: None, storage: carrier.kind }
    }

    /// The kind of the object, if it carries its operation itself.
    pub(crate) fn carrier(&self) -> Option<&'static Carrier> {
        CARRIERS.iter().find(|carrier| carrier.kind == self.storage)
    }
}

/// The source of a change, the most reliable first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChangeSource {
    /// Interlock's own log.
    Log,
    /// The audit log of the API server.
    Audit,
    /// A record in the cluster, or an object that carries its operation itself.
    Record,
}

impl ChangeSource {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Audit => "audit",
            Self::Record => "record",
        }
    }
}

/// The certainty of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Certainty {
    /// Seen by Interlock or by the API server at the time of the change.
    Sure,
    /// Stamped on the record at the time of the change.
    Stamped,
    /// Inferred from the current state of a record, or from an incomplete log. Also used for a write that Interlock admitted, if
    /// the audit log of that time does not have it: something else may have refused the write.
    Inferred,
}

impl Certainty {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sure => "sure",
            Self::Stamped => "stamped",
            Self::Inferred => "inferred",
        }
    }
}

impl Change {
    /// A change without details.
    pub(crate) fn new(
        time: Timestamp,
        release: ChangedRelease,
        transition: TransitionKind,
        source: ChangeSource,
    ) -> Self {
        Self {
            time,
            cluster: None,
            release,
            transition,
            from: None,
            to: None,
            outcome: TransitionOutcome::Allowed,
            user: None,
            groups: Groups::default(),
            holder: None,
            chart: None,
            seconds: None,
            overridden: None,
            ticket: None,
            freeze: None,
            source,
            certainty: Certainty::Sure,
            range: None,
        }
    }

    /// Whether the write was refused, so that nothing changed.
    pub(crate) fn is_refused(&self) -> bool {
        self.outcome == TransitionOutcome::Refused
    }
}

fn text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn optional_text<S: Serializer>(value: &Option<impl Display>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

fn outcome<S: Serializer>(value: &TransitionOutcome, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(value.as_str())
}
