//! A release in one line: how it stands, who drives it, and the next safe step.

use jiff::Timestamp;
use serde::Serialize;

use crate::engine::release::ReleaseRef;
use crate::inspect::storage_kind::StorageKind;
use crate::world::kubernetes::Head;

/// How a release stands. Nothing that an object contains is in it, names apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseSummary {
    /// The namespace of its records.
    pub namespace: String,
    /// Its name.
    pub release: String,
    /// How its records are stored.
    pub storage: StorageKind,
    /// The object of its newest record.
    pub record: String,
    /// The revision of that.
    pub revision: u64,
    /// The status of that, by its label.
    pub status: &'static str,
    /// Since when it has been so, by the API server's clock.
    pub since: Option<Timestamp>,
    /// Who started its last operation, as stamped.
    pub holder: Option<String>,
    /// Where that was not stamped: the field manager that wrote the record, a hint and no more, since a client chooses it.
    pub manager: Option<String>,
    /// `name-version` of what it brings in.
    pub chart: Option<String>,
    /// Who drives it.
    pub owner: Owner,
    /// Whether its operation counts as stuck.
    pub stuck: Stuck,
    /// From when on the operation in flight counts as stuck.
    pub stuck_from: Option<Timestamp>,
    /// `name-version@revision` of an operation that was interrupted and not finished.
    pub interrupted: Option<String>,
    /// The next safe step; `None` where nothing is to be done.
    pub next: Option<String>,
}

/// Who drives a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "name")]
pub enum Owner {
    /// People and pipelines, with Helm.
    Helm,
    /// Flux, by this HelmRelease.
    Flux(String),
    /// OLM, by this ClusterExtension.
    Olm(String),
    /// Sveltos.
    Sveltos,
    /// Helm or Flux: the HelmReleases cannot be read.
    Unknown,
}

/// Whether an operation counts as stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stuck {
    /// No operation is in flight, or it is not old enough.
    No,
    /// It is older than it takes.
    Yes,
    /// It would be, if no HelmRelease gives it more time, and these cannot be read.
    Unknown,
}

impl Owner {
    /// `Flux (shop/web)`.
    #[must_use]
    pub fn display(&self) -> String {
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
    /// Whether something is missing that only the body of the record tells.
    pub(crate) fn lacks_head(&self) -> bool {
        self.chart.is_none() || self.holder.is_none()
    }

    /// Fills in what the body of the record tells.
    pub(crate) fn with_head(mut self, head: Head) -> Self {
        self.chart = self.chart.or(head.chart);
        self.manager = head.manager.filter(|_| self.holder.is_none());
        self
    }

    /// The release.
    #[must_use]
    pub fn release_ref(&self) -> ReleaseRef {
        ReleaseRef::new(&self.namespace, &self.release)
    }
}
