//! Metrics of reads from the API server: their size, and answers that were too large.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Registry, Unit};

/// Metrics of reads from the API server.
#[derive(Debug, Default)]
pub struct IntakeMetrics {
    read: Counter,
    too_large: Family<ResourceLabels, Counter>,
}

impl IntakeMetrics {
    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "api_read",
            "What the API server has answered to reads and watches",
            Unit::Bytes,
            self.read.clone(),
        );
        registry.register(
            "api_objects_too_large",
            "Objects and answers of the API server that were not read because of their size, by resource",
            self.too_large.clone(),
        );
    }

    pub(super) fn count_bytes(&self, bytes: usize) {
        self.read.inc_by(bytes as u64);
    }

    pub(super) fn count_too_large(&self, resource: &'static str, objects: u64) {
        if objects > 0 {
            self.too_large.get_or_create(&ResourceLabels { resource }).inc_by(objects);
        }
    }

    #[cfg(test)]
    pub(super) fn too_large(&self, resource: &'static str) -> u64 {
        self.too_large.get_or_create(&ResourceLabels { resource }).get()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabels {
    resource: &'static str,
}
