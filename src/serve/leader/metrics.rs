//! Metrics of the leader: whether this replica leads, the findings of its last scan, and the results of its probes.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::inspect::arrival::Half;
use crate::inspect::scan::{FindingKind, ScanReport};
use crate::serve::openmetrics;

/// Metrics of the leader.
#[derive(Debug, Default)]
pub struct LeaderMetrics {
    leader: Gauge,
    /// Empty while another replica scans.
    findings: Family<CheckLabels, Gauge>,
    /// Empty while another replica leads.
    proofs: Family<ConfigurationLabels, Gauge>,
}

impl LeaderMetrics {
    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("leader", "Whether this replica is the leader", self.leader.clone());
        let help = "Findings of the last scan of all releases, or of the scan before where the last one was incomplete and \
                    found less; from the leader only";
        registry.register("scan_findings", help, self.findings.clone());
        let help = "Whether the last probe of a webhook configuration arrived: a review that the API server sends through it; \
                    from the leader only";
        registry.register("registration_proven", help, self.proofs.clone());
    }

    /// Sets whether the last probe of a webhook configuration arrived.
    pub(super) fn set_proof(&self, configuration: Half, arrived: bool) {
        self.proofs.get_or_create(&ConfigurationLabels { configuration }).set(arrived.into());
    }

    /// Removes the result of a configuration that does not exist.
    pub(super) fn clear_proof(&self, configuration: Half) {
        self.proofs.remove(&ConfigurationLabels { configuration });
    }

    /// Removes the results, because another replica sends probes from now on.
    pub(super) fn clear_proofs(&self) {
        self.proofs.clear();
    }

    /// Sets whether this replica leads.
    pub fn set_leader(&self, leads: bool) {
        self.leader.set(leads.into());
    }

    /// Sets the findings of a scan of all releases, zeros included. An incomplete scan lowers no number, because findings that it missed
    /// may still exist.
    pub fn set_findings(&self, report: &ScanReport) {
        for check in FindingKind::ALL {
            let found = report.findings.iter().filter(|finding| finding.kind == check).count();
            let found = i64::try_from(found).unwrap_or(i64::MAX);
            let gauge = self.findings.get_or_create(&CheckLabels { check });
            gauge.set(if report.is_whole() { found } else { found.max(gauge.get()) });
        }
    }

    /// Removes the findings. Another replica scans from now on, and the same finding must not be counted twice.
    pub fn clear_findings(&self) {
        self.findings.clear();
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckLabels {
    check: FindingKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConfigurationLabels {
    configuration: Half,
}

openmetrics::as_str!(FindingKind, Half);

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::inspect::scan::Finding;

    /// A report with this many failed releases and stuck operations.
    fn report(failed: usize, stuck: usize, is_whole: bool) -> ScanReport {
        let finding = |check| Finding {
            kind: check,
            release: None,
            object: None,
            message: String::new(),
            way_out: String::new(),
        };
        let failed = std::iter::repeat_n(FindingKind::FailedRelease, failed);
        let stuck = std::iter::repeat_n(FindingKind::StuckOperation, stuck);
        ScanReport {
            cluster: String::new(),
            policy: String::new(),
            time: Timestamp::UNIX_EPOCH,
            namespace: None,
            releases: 1,
            records: 1,
            bodies: 0,
            objects: 0,
            calls: 1,
            took_seconds: 0.0,
            peak_memory_bytes: None,
            looked_at: Vec::new(),
            not_looked_at: Vec::new(),
            counts: Default::default(),
            findings: failed.chain(stuck).map(finding).collect(),
            left_out: usize::from(!is_whole),
        }
    }

    #[test]
    fn an_incomplete_scan_lowers_no_metric() {
        let metrics = LeaderMetrics::default();
        for (scanned, failed, stuck) in [
            (report(1, 0, true), 1, 0),
            (report(0, 1, false), 1, 1),
            (report(0, 1, true), 0, 1),
            (report(0, 0, true), 0, 0),
        ] {
            metrics.set_findings(&scanned);
            let text = openmetrics::rendered(|registry| metrics.register(registry));
            for (check, count) in [("failed-release", failed), ("stuck-operation", stuck)] {
                let line = format!("interlock_scan_findings{{check=\"{check}\"}} {count}\n");
                assert!(text.contains(&line), "{line}{text}");
            }
        }
    }
}
