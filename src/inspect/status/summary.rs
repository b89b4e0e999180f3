//! The one-line summary of a release: its status, its owner, and the next step.

use interlock_engine::owners::ReleaseOwner;
use interlock_engine::release::{ReleaseRef, Status, Storage};
use interlock_engine::ways_out::StepKind;
use jiff::Timestamp;
use serde::Serialize;

use crate::inspect::diagnosis::{Problem, Stuck};
use crate::world::kubernetes::RecordSummary;

/// The status of a release. It contains names, and nothing else from the content of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReleaseSummary {
    /// The name of the cluster, if several were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    pub namespace: String,
    pub release: String,
    pub storage: Storage,
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
    /// The owner of the release.
    pub owner: ReleaseOwner,
    pub stuck: Stuck,
    /// When the pending operation, or a record that OLM is writing, starts to count as stuck.
    pub stuck_from: Option<Timestamp>,
    /// `name-version@revision` of an interrupted operation that was not finished.
    pub interrupted: Option<String>,
    /// The problems, the worst first.
    pub problems: Vec<Problem>,
    /// The next step: a command that can be pasted, or `wait until TIME`; `None` if nothing is to be done.
    pub next: Option<String>,
    /// `run` or `wait`, in the vocabulary of the ways out of refusals.
    pub next_kind: Option<StepKind>,
    /// Why this step.
    pub why: Option<String>,
    /// The time of a step that waits.
    pub wait_until: Option<Timestamp>,
}

impl ReleaseSummary {
    /// Whether an operation holds the release.
    #[must_use]
    pub(crate) fn is_in_flight(&self) -> bool {
        self.status.parse().is_ok_and(Status::is_in_flight)
    }

    /// Whether OLM may still be writing the parts of a record.
    #[must_use]
    pub(crate) fn is_being_written(&self) -> bool {
        !self.is_in_flight() && self.stuck == Stuck::No && self.stuck_from.is_some()
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

#[cfg(test)]
impl ReleaseSummary {
    /// Revision 2 of `shop/web`, for tests.
    pub(crate) fn of_web(status: &'static str) -> Self {
        Self {
            cluster: None,
            namespace: "shop".to_owned(),
            release: "web".to_owned(),
            storage: Storage::Secret,
            record: "sh.helm.release.v1.web.v2".to_owned(),
            revision: 2,
            status,
            since: None,
            holder: None,
            manager: None,
            chart: None,
            owner: ReleaseOwner::Helm,
            stuck: Stuck::No,
            stuck_from: None,
            interrupted: None,
            problems: Vec::new(),
            next: None,
            next_kind: None,
            why: None,
            wait_until: None,
        }
    }
}
