//! A world whose queries have spans.

use std::sync::Arc;

use interlock_engine::evidence::Query;
use interlock_engine::owners::Driver;
use interlock_engine::policy::NamespaceLabels;
use interlock_engine::release::{ReleaseRef, Storage};
use tracing::Instrument;

use super::sending::TARGET;
use crate::world::{AnswerFuture, LossVerdict, NoteFuture, QueryBudget, World};

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

    fn drivers_naming(&self, records: &ReleaseRef, matches: &dyn Fn(&Driver) -> bool) -> Vec<Driver> {
        self.0.drivers_naming(records, matches)
    }

    fn protector_of(&self, storage: Storage, records: &ReleaseRef) -> Option<String> {
        self.0.protector_of(storage, records)
    }

    fn note_loss<'w>(&'w self, verdict: LossVerdict<'w>) -> NoteFuture<'w> {
        self.0.note_loss(verdict)
    }

    fn answer_for<'w>(&'w self, query: &'w Query, budget: QueryBudget<'w>) -> AnswerFuture<'w> {
        let span = tracing::info_span!(target: TARGET, "question", otel.name = query.kind(), otel.kind = "client");
        Box::pin(self.0.answer_for(query, budget).instrument(span))
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::object::ObjectKey;
    use interlock_engine::owners::HELM_RELEASES;

    use super::*;
    use crate::world::memory::Memory;

    #[test]
    fn a_traced_world_knows_what_its_world_knows() {
        let memory = Memory::new(1 << 20);
        let helm_release = serde_json::json!({"metadata": {"name": "web", "namespace": "shop"}}).to_string();
        memory.put(ObjectKey::new(HELM_RELEASES.0, HELM_RELEASES.1, "shop", "web"), helm_release);
        let traced = TracedWorld::new(Arc::new(memory));
        let named = traced.drivers_naming(&ReleaseRef::new("shop", "web"), &|_| true);
        assert_eq!(named.len(), 1);
        assert!(traced.namespace_labels().is_some());
    }
}
