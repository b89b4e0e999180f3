//! What the webhook tells the world about its decisions.

mod decision;
mod log;
pub mod metrics;

use std::sync::Arc;

pub use decision::{Decision, DecisionFinding};

use metrics::Metrics;

/// Hands each decision to everybody who wants to know.
#[derive(Debug, Clone)]
pub struct Reporter {
    metrics: Arc<Metrics>,
}

impl Reporter {
    /// Reports to the log and to these metrics.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics }
    }

    /// Reports one decision.
    pub fn report(&self, decision: &Decision) {
        log::write(decision);
        self.metrics.decided(decision);
    }
}
