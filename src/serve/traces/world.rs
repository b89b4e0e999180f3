//! A world whose queries have spans.

use std::sync::Arc;

use interlock_engine::evidence::Query;
use interlock_engine::policy::NamespaceLabels;
use tracing::Instrument;

use super::sending::TARGET;
use crate::world::{AnswerFuture, QueryBudget, World};

/// Opens a span for each query, below the span of the review.
pub(crate) struct TracedWorld(Arc<dyn World>);

impl TracedWorld {
    /// Traces queries to `world`.
    #[must_use]
    pub(crate) fn new(world: Arc<dyn World>) -> Self {
        Self(world)
    }
}

impl World for TracedWorld {
    fn namespace_labels(&self) -> Option<Arc<NamespaceLabels>> {
        self.0.namespace_labels()
    }

    fn answer_for<'w>(&'w self, query: &'w Query, budget: QueryBudget<'w>) -> AnswerFuture<'w> {
        let span = tracing::info_span!(target: TARGET, "question", otel.name = query.kind(), otel.kind = "client");
        Box::pin(self.0.answer_for(query, budget).instrument(span))
    }
}
