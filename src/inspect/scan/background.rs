//! Scans again and again, for whoever keeps account of what they find.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use kube::Client;
use tokio::time::sleep;

use super::{BodySelection, ScanOptions, ScanReport, scan};
use crate::engine::policy::Policies;
use crate::engine::severity::Severity;
use crate::world::kubernetes::Reach;

/// Between two scans, unless told otherwise. One of 10,000 releases costs the API server some 70 lists.
pub const SCAN_INTERVAL: Duration = Duration::from_mins(10);

/// Scans at once and then again and again, for ever, by the policies of each time, and hands every report to `sink`. By
/// metadata first; bodies are read of releases with a finding there, and objects never.
///
/// The pauses are up to a tenth longer than `every`, so that clusters that were started together do not scan together.
pub async fn background(
    client: &Client,
    policies: &ArcSwap<Policies>,
    reach: &Reach,
    every: Duration,
    sink: impl Fn(&ScanReport),
) {
    let options = ScanOptions { bodies: BodySelection::Questioned, reach: reach.clone(), ..ScanOptions::default() };
    loop {
        let policies = policies.load_full();
        match scan(client, &policies, &options, Timestamp::now(), &|_| {}).await {
            Ok(report) => {
                tell(&report);
                sink(&report);
            }
            Err(error) => tracing::warn!(%error, "nothing is known of the releases of the cluster"),
        }
        sleep(every + every.mul_f64(fraction() / 10.0)).await;
    }
}

fn tell(report: &ScanReport) {
    let [high, medium, low, info] = Severity::ALL.map(|severity| report.count(severity));
    let ScanReport { releases, records, bodies, calls, took_seconds, .. } = report;
    tracing::info!(releases, records, bodies, calls, took_seconds, high, medium, low, info, "scanned");
    for gap in &report.not_looked_at {
        tracing::warn!(what = %gap.what, times = gap.times, why = %gap.why, "the scan could not look at this");
    }
}

/// A number from 0 to 1 that differs from process to process and time to time.
fn fraction() -> f64 {
    f64::from(RandomState::new().build_hasher().finish() as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_differ_and_stay_near() {
        let all: Vec<f64> = (0..50).map(|_| fraction()).collect();
        assert!(all.iter().all(|fraction| (0.0..=1.0).contains(fraction)));
        assert!(all.windows(2).any(|pair| pair[0] != pair[1]));
    }
}
