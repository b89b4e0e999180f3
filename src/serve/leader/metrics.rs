//! Metrics of the leader: whether this replica leads, the findings of its last scan, and the results of its probes.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::inspect::scan::{FindingKind, ScanReport};
use crate::serve::openmetrics::{Label, label, metrics};

metrics! {
    /// Metrics of the leader. Another replica has no findings and no proofs, because the same finding must not be counted twice.
    pub struct LeaderMetrics {
        /// Whether this replica is the leader
        leader: Gauge;
        /// Findings of the last scan of all releases, or of the scan before where the last one was incomplete and found less; from
        /// the leader only
        scan_findings: Family<FindingKind, Gauge>;
        /// Whether the last probe of a webhook configuration arrived: a review that the API server sends through it; from the
        /// leader only
        registration_proven: Family<[Label; 1], Gauge>;
    }
}

label!(FindingKind: "check");

impl LeaderMetrics {
    /// Sets the findings of a scan of all releases, zeros included. An incomplete scan lowers no number, because findings that it missed
    /// may still exist.
    pub fn set_findings(&self, report: &ScanReport) {
        for check in FindingKind::ALL {
            let found = report.findings.iter().filter(|finding| finding.kind == check).count();
            let found = i64::try_from(found).unwrap_or(i64::MAX);
            let gauge = self.scan_findings.get_or_create(&check);
            gauge.set(if report.is_complete() { found } else { found.max(gauge.get()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::inspect::scan::Finding;
    use crate::serve::openmetrics;

    /// A report with this many failed releases and stuck operations.
    fn report(failed: usize, stuck: usize, is_complete: bool) -> ScanReport {
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
            left_out: usize::from(!is_complete),
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
