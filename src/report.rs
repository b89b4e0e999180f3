//! What the webhook tells the world about its decisions.
//!
//! One [`Decision`] a review, and who is told of it:
//!
//! | | of | when |
//! |---|---|---|
//! | audit annotations and warnings ([`mode`](crate::mode)) | every review | with the reply |
//! | the log | every review | before the reply |
//! | the [metrics] | every review but dry runs and repeats | before the reply |

mod decision;
mod fold;
mod log;
pub mod metrics;

use std::sync::Arc;
use std::time::Instant;

pub use decision::{Decision, DecisionFinding, Object};

use fold::Fold;
use metrics::Metrics;

/// Hands each decision to everybody who wants to know.
#[derive(Debug, Clone)]
pub struct Reporter {
    metrics: Arc<Metrics>,
    fold: Arc<Fold>,
}

impl Reporter {
    /// Reports to the log and to these metrics.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, fold: Arc::default() }
    }

    /// Reports one decision.
    pub fn report(&self, decision: Decision) {
        let decision = Decision { repeated: self.fold.is_repeat(&decision, Instant::now()), ..decision };
        log::write(&decision);
        self.metrics.decided(&decision);
    }
}
