//! What every part of the server shares.

use std::sync::Arc;

use crate::budget::Budget;
use crate::readiness::Readiness;
use crate::serve::report::metrics::Metrics;

/// The memory that inflated record bodies may take at once, in bytes. An ordinary body takes half a MiB, the largest
/// legitimate ones about 10 MiB; a review may hold two of 64 MiB.
const DECODE_BYTES: usize = 256 << 20;

pub(super) struct Shared {
    pub(super) decodes: Arc<Budget>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) readiness: Readiness,
}

impl Shared {
    pub(super) fn new() -> Self {
        Self {
            decodes: Arc::new(Budget::new(DECODE_BYTES)),
            metrics: Arc::new(Metrics::new()),
            readiness: Readiness::new(),
        }
    }
}
