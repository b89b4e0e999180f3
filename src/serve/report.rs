//! What the webhook tells the world about its decisions.
//!
//! One [`Decision`] a review, and who is told of it:
//!
//! | | of | when |
//! |---|---|---|
//! | audit annotations and warnings ([`mode`](crate::engine::outcome)) | every review | with the reply |
//! | the log | every review | before the reply |
//! | the [metrics] | every review but dry runs and repeats | before the reply |
//! | [Kubernetes Events](events) | findings of the same | later, from a queue with a bound |
//! | [reports](openreports) of releases | failures and warnings of the same, and scans | the leader, every few seconds |

pub mod events;
mod fold;
mod log;
pub mod metrics;
pub mod openreports;

use std::sync::Arc;
use std::time::Instant;

pub use crate::engine::decision::{Decision, DecisionFinding, ObjectReference};

use super::traces;
use events::Queue;
use fold::Fold;
use metrics::Metrics;

/// The label of everything that we write for others to read.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "interlock");

/// Whose fields they are.
const FIELD_MANAGER: &str = "interlock";

/// Hands each decision to everybody who wants to know.
#[derive(Debug, Clone)]
pub struct Reporter {
    metrics: Arc<Metrics>,
    fold: Arc<Fold>,
    events: Option<Queue>,
}

impl Reporter {
    /// Reports to the log and to these metrics.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, fold: Arc::default(), events: None }
    }

    /// The same, which tells Kubernetes of findings too.
    #[must_use]
    pub fn with_events(self, events: Queue) -> Self {
        Self { events: Some(events), ..self }
    }

    /// Reports one decision.
    pub fn report(&self, decision: Decision) {
        let decision = Decision { repeated: self.fold.is_repeat(&decision, Instant::now()), ..decision };
        log::write(&decision);
        traces::decided(&decision);
        self.metrics.decided(&decision);
        let is_news = !decision.findings.is_empty() && !decision.dry_run && !decision.repeated;
        if let Some(events) = self.events.as_ref().filter(|_| is_news) {
            events.offer(decision);
        }
    }
}
