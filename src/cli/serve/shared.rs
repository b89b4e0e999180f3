//! What every part of the server shares.

use std::sync::Arc;

use super::metrics::Metrics;
use crate::budget::Budget;
use crate::readiness::Readiness;
use crate::world::World;

/// The memory that inflated record bodies, parsed documents and compared objects may take at once, in bytes. An ordinary body
/// takes half a MiB, the largest legitimate ones about 10 MiB. Others wait for their turn.
///
/// With the [bodies of requests](crate::serve::https::limits::BODY_BYTES_IN_FLIGHT), reviews hold at most 240 MiB: what one
/// holds serves its questions to the cluster once more. Beside them there are at most 64 MiB in the two caches of manifests,
/// 100 MiB in the buffers of connections (100 KiB each, if hostile clients take every slot), and some 30 MiB for the process
/// and the watches of an ordinary cluster: 434 MiB. The chart's limit is 768 MiB, which leaves more than a third to spare.
const DECODE_BYTES: usize = 96 << 20;

pub(super) struct Shared {
    pub(super) decodes: Arc<Budget>,
    pub(super) metrics: Metrics,
    pub(super) readiness: Readiness,
}

impl Shared {
    pub(super) fn new() -> Self {
        Self { decodes: Arc::new(Budget::new(DECODE_BYTES)), metrics: Metrics::default(), readiness: Readiness::new() }
    }
}

/// Opens a span for each query of a review.
#[cfg(feature = "otel")]
pub(super) fn traced(world: Arc<dyn World>) -> Arc<dyn World> {
    Arc::new(crate::serve::traces::TracedWorld::new(world))
}

#[cfg(not(feature = "otel"))]
pub(super) fn traced(world: Arc<dyn World>) -> Arc<dyn World> {
    world
}
