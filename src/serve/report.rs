//! Reports decisions to people and programs.
//!
//! Each review has one [`Decision`]. It is reported in these places:
//!
//! | place | of | when |
//! |---|---|---|
//! | audit annotations and warnings (see [`outcome`](interlock_engine::outcome)) | every review | with the reply |
//! | the log | every review | before the reply |
//! | the [metrics] | every review except dry runs and repeats | before the reply |
//! | the [page](super::page), with `--page` | refusals, except dry runs and repeats | after the reply |
//! | [Kubernetes Events](events) | findings, except of dry runs and repeats | later, from a bounded queue |
//! | [reports](openreports) of releases | failures and warnings from Events, and findings of scans | every few seconds, by the leader |

pub(crate) mod events;
mod log;
pub mod metrics;
pub(crate) mod namespace_labels;
pub(crate) mod openreports;
pub(crate) mod refusals;
mod repeats;

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

pub use interlock_engine::decision::{Decision, DecisionFinding, ObjectReference};

use super::traces;
use events::EventQueue;
use metrics::ReportMetrics;
use refusals::LastRefusals;
use repeats::RepeatFilter;

/// Reports each decision to every place.
#[derive(Debug, Clone)]
pub struct Reporter {
    metrics: Arc<ReportMetrics>,
    repeats: Arc<RepeatFilter>,
    events: Option<EventQueue>,
    refusals: Option<Arc<LastRefusals>>,
}

impl Reporter {
    /// Reports to the log and to metrics.
    #[must_use]
    pub fn new(metrics: Arc<ReportMetrics>) -> Self {
        Self { metrics, repeats: Arc::default(), events: None, refusals: None }
    }

    /// Adds Kubernetes Events.
    #[must_use]
    pub fn with_events(self, events: EventQueue) -> Self {
        Self { events: Some(events), ..self }
    }

    /// Adds the last refusals, for the page.
    #[must_use]
    pub(crate) fn with_refusals(self, refusals: Option<Arc<LastRefusals>>) -> Self {
        Self { refusals, ..self }
    }

    /// Reports one decision. `now` is by the clock of the reviews.
    pub fn report(&self, decision: Decision, now: Timestamp) {
        let repeated = self.repeats.is_repeat(&decision, Instant::now());
        log::write(&decision, repeated);
        traces::decided(&decision);
        self.metrics.decided(&decision, repeated);
        if let Some(refusals) = self.refusals.as_ref().filter(|_| !repeated) {
            refusals.note(&decision, now);
        }
        let is_news = !decision.findings.is_empty() && !decision.dry_run && !repeated;
        if let Some(events) = self.events.as_ref().filter(|_| is_news) {
            events.offer(decision);
        }
    }
}
