//! What is told of scans.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::label;
use crate::inspect::scan::{FindingKind, ScanReport};

/// What the last scan found; nothing where another replica scans.
#[derive(Debug, Default)]
pub struct ScanMetrics {
    findings: Family<CheckLabels, Gauge>,
}

impl ScanMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "scan_findings",
            "What the last scan found wrong with the releases of the cluster, or the one before where the last one could \
             not look at everything and found less; from the leader alone",
            self.findings.clone(),
        );
    }

    /// Sets what a scan of all releases has found, the checks that found nothing included. One that could not look at
    /// everything lowers none: that it did not find something again says nothing.
    pub fn scanned(&self, report: &ScanReport) {
        for check in FindingKind::ALL {
            let found = report.findings.iter().filter(|finding| finding.kind == check).count();
            let found = i64::try_from(found).unwrap_or(i64::MAX);
            let gauge = self.findings.get_or_create(&CheckLabels { check });
            gauge.set(if report.is_whole() { found } else { found.max(gauge.get()) });
        }
    }

    /// Forgets it: another replica scans from now on, and two accounts would not add up.
    pub fn stopped(&self) {
        self.findings.clear();
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckLabels {
    check: FindingKind,
}

label::as_str!(FindingKind);
