//! The one-line summary of a release: its status, its owner, and the next safe step.

use jiff::Timestamp;
use serde::Serialize;

use crate::engine::release::{ReleaseRef, Status};
use crate::inspect::storage_kind::StorageKind;
use crate::world::kubernetes::RecordSummary;

/// The status of a release. It contains names, and nothing else from the content of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReleaseSummary {
    pub namespace: String,
    pub release: String,
    pub storage: StorageKind,
    /// The object name of the newest record.
    pub record: String,
    /// The revision of the newest record.
    pub revision: u64,
    /// The status of the newest record, from its label.
    pub status: &'static str,
    /// When the newest record reached its status, by the API server's clock.
    pub since: Option<Timestamp>,
    /// The user who started the last operation, from the stamp.
    pub holder: Option<String>,
    /// Without a stamp, the field manager that wrote the record: only a hint, because the client chooses it.
    pub manager: Option<String>,
    /// `name-version` of the chart of the newest record.
    pub chart: Option<String>,
    /// What manages the release.
    pub owner: ReleaseOwner,
    pub stuck: Stuck,
    /// When the pending operation starts to count as stuck.
    pub stuck_from: Option<Timestamp>,
    /// `name-version@revision` of an interrupted operation that was not finished.
    pub interrupted: Option<String>,
    /// The next safe step; `None` if nothing is to be done.
    pub next: Option<String>,
}

/// What manages a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "name")]
pub(crate) enum ReleaseOwner {
    /// People and pipelines, with Helm.
    Helm,
    /// Flux, by this HelmRelease.
    Flux(String),
    /// OLM, by this ClusterExtension.
    Olm(String),
    /// Sveltos.
    Sveltos,
    /// Helm or Flux; the HelmReleases cannot be read.
    Unknown,
}

/// Whether an operation counts as stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stuck {
    /// No operation is pending, or it is not old enough.
    No,
    /// The operation is older than the policy and the HelmReleases allow.
    Yes,
    /// The operation is old enough, but the HelmReleases, which may allow more time, cannot be read.
    Unknown,
}

impl ReleaseOwner {
    /// `Flux (shop/web)`.
    #[must_use]
    pub(crate) fn display(&self) -> String {
        match self {
            Self::Helm => "Helm".to_owned(),
            Self::Flux(name) => format!("Flux ({name})"),
            Self::Olm(name) => format!("OLM ({name})"),
            Self::Sveltos => "Sveltos".to_owned(),
            Self::Unknown => "unknown".to_owned(),
        }
    }
}

impl ReleaseSummary {
    /// Whether an operation holds the release.
    #[must_use]
    pub(crate) fn is_in_flight(&self) -> bool {
        self.status.parse().is_ok_and(Status::is_in_flight)
    }

    /// Whether only the body of the record has the chart or the holder.
    pub(crate) fn lacks_head(&self) -> bool {
        self.chart.is_none() || self.holder.is_none()
    }

    /// Completes the summary from the body of the record.
    pub(crate) fn with_head(mut self, head: RecordSummary) -> Self {
        self.chart = self.chart.or(head.chart);
        self.manager = head.manager.filter(|_| self.holder.is_none());
        self
    }

    /// The release.
    #[must_use]
    pub(crate) fn release_ref(&self) -> ReleaseRef {
        ReleaseRef::new(&self.namespace, &self.release)
    }
}
