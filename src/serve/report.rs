//! Reports decisions to people and programs.
//!
//! There is one [`Decision`] for each review. It is reported in these places:
//!
//! | | of | when |
//! |---|---|---|
//! | audit annotations and warnings (see [`outcome`](crate::engine::outcome)) | every review | with the reply |
//! | the log | every review | before the reply |
//! | the [metrics] | every review but dry runs and repeats | before the reply |
//! | [Kubernetes Events](events) | findings of the same | later, from a bounded queue |
//! | [reports](openreports) of releases | failures and warnings of the same, and scans | every few seconds, by the leader |

pub(crate) mod events;
mod log;
pub mod metrics;
pub(crate) mod namespace_labels;
pub(crate) mod openreports;
mod repeats;

use std::sync::Arc;
use std::time::Instant;

pub use crate::engine::decision::{Decision, DecisionFinding, ObjectReference};

use super::traces;
use events::EventQueue;
use metrics::ReportMetrics;
use repeats::RepeatFilter;

/// Reports each decision to every place.
#[derive(Debug, Clone)]
pub struct Reporter {
    metrics: Arc<ReportMetrics>,
    repeats: Arc<RepeatFilter>,
    events: Option<EventQueue>,
}

impl Reporter {
    /// Reports to the log and to metrics.
    #[must_use]
    pub fn new(metrics: Arc<ReportMetrics>) -> Self {
        Self { metrics, repeats: Arc::default(), events: None }
    }

    /// Adds Kubernetes Events.
    #[must_use]
    pub fn with_events(self, events: EventQueue) -> Self {
        Self { events: Some(events), ..self }
    }

    /// Reports one decision.
    pub fn report(&self, decision: Decision) {
        let decision = Decision { repeated: self.repeats.is_repeat(&decision, Instant::now()), ..decision };
        log::write(&decision);
        traces::decided(&decision);
        self.metrics.decided(&decision);
        let is_news = !decision.findings.is_empty() && !decision.dry_run && !decision.repeated;
        if let Some(events) = self.events.as_ref().filter(|_| is_news) {
            events.offer(decision);
        }
    }
}
