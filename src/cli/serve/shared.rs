//! State that all parts of the server share.

use std::sync::Arc;

use super::metrics::Metrics;
use crate::budget::Budget;
use crate::cluster_name::ClusterName;
use crate::readiness::Readiness;
use crate::world::World;

/// The memory for inflated record bodies, parsed documents and compared objects, in bytes. An ordinary body takes half a MiB, the largest
/// legitimate ones about 10 MiB. Further reviews wait for their turn.
///
/// The server needs at most 434 MiB. The chart's limit is 768 MiB, so more than a third is spare.
///
/// - 240 MiB for reviews: this memory twice, because a review may use its share once more for queries to the cluster, and the
///   [bodies of requests](crate::serve::https::limits::BODY_BYTES_IN_FLIGHT)
/// - 64 MiB for the two caches of manifests
/// - 100 MiB for the buffers of connections: 100 KiB each, if hostile clients take every slot
/// - about 30 MiB for the process and the watches of an ordinary cluster
const DECODE_BYTES: usize = 96 << 20;

pub(super) struct Shared {
    pub(super) decodes: Arc<Budget>,
    pub(super) metrics: Metrics,
    pub(super) readiness: Readiness,
    pub(super) cluster_name: Option<ClusterName>,
}

impl Shared {
    pub(super) fn new(cluster_name: Option<ClusterName>) -> Self {
        let (metrics, readiness) = (Metrics::default(), Readiness::new());
        Self { decodes: Arc::new(Budget::new(DECODE_BYTES)), metrics, readiness, cluster_name }
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
