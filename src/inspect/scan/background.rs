//! Repeated scans on the leader.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use arc_swap::ArcSwap;
use interlock_engine::policy::Policies;
use interlock_engine::severity::Severity;
use kube::Client;
use tokio::time::sleep;

use super::{BodySelection, ScanOptions, ScanReport, scan};
use crate::world::kubernetes::Reach;
use crate::world::kubernetes::clock::ServerClock;

/// The default interval. A scan of 10,000 releases costs about 70 list calls.
pub const SCAN_INTERVAL: Duration = Duration::from_mins(10);

/// The cluster to scan, with the policies and the clock for the scan.
pub struct ScanSource<'s> {
    pub client: &'s Client,
    pub policies: &'s ArcSwap<Policies>,
    pub reach: &'s Reach,
    pub clock: &'s ServerClock,
}

/// Scans immediately and then repeatedly, without end, with the policies in force at the time, and passes every report
/// to `sink`. Reads metadata first, bodies only for releases with a finding there, and never objects.
///
/// Each pause is up to a tenth longer than `every`, so that clusters that start together do not scan together.
pub async fn background(source: ScanSource<'_>, every: Duration, sink: impl Fn(&ScanReport)) {
    let ScanSource { client, policies, reach, clock } = source;
    let options = ScanOptions { bodies: BodySelection::Questioned, reach: reach.clone(), ..ScanOptions::default() };
    loop {
        let policies = policies.load_full();
        match scan(client, &policies, &options, clock.now(), &|_| {}).await {
            Ok(report) => {
                log(&report);
                sink(&report);
            }
            Err(error) => tracing::warn!(%error, "the background scan failed"),
        }
        sleep(every + every.mul_f64(fraction() / 10.0)).await;
    }
}

fn log(report: &ScanReport) {
    let [high, medium, low, info] = Severity::ALL.map(|severity| report.count(severity));
    let ScanReport { releases, records, bodies, calls, took_seconds, .. } = report;
    tracing::info!(releases, records, bodies, calls, took_seconds, high, medium, low, info, "scanned");
    for gap in &report.not_looked_at {
        tracing::warn!(what = %gap.what, times = gap.times, why = %gap.why, "the scan could not look at this");
    }
}

/// A random number from 0 to 1.
fn fraction() -> f64 {
    f64::from(RandomState::new().build_hasher().finish() as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_differ_and_stay_between_0_and_1() {
        let all: Vec<f64> = (0..50).map(|_| fraction()).collect();
        assert!(all.iter().all(|fraction| (0.0..=1.0).contains(fraction)));
        assert!(all.windows(2).any(|pair| pair[0] != pair[1]));
    }
}
