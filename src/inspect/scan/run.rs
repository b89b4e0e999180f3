//! One scan.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Instant;

use interlock_engine::policy::Policies;
use jiff::Timestamp;
use kube::Client;

use super::calls::Calls;
use super::context::ScanContext;
use super::groups::CONFIGURATION_GROUPS;
use super::inventory::Inventory;
use super::options::{ScanOptions, ScanProgress};
use super::releases::HELM_RELEASES;
use super::report::{ScanReport, peak_memory};
use super::{declarations, gather};
use crate::world::kubernetes::api_error::reason;

/// The records cannot be listed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to list the records in Secrets: {why}")]
pub struct ScanError {
    why: String,
}

/// Searches for every [`FindingKind`](super::FindingKind), without a write.
///
/// # Errors
/// When the records in Secrets cannot be listed. The report names any other part that cannot be read.
pub async fn scan(
    client: &Client,
    policies: &Policies,
    options: &ScanOptions,
    now: Timestamp,
    progress: &(dyn Fn(ScanProgress) + Sync),
) -> Result<ScanReport, ScanError> {
    let (started, calls) = (Instant::now(), Calls::default());
    let client = calls.counting(client.clone());
    let run = ScanContext::new(client, policies, options, now);
    let mut looked_at = vec!["records in Secrets".to_owned()];
    let drivers = run.helm_releases().await;
    looked_at.extend(drivers.is_some().then(|| HELM_RELEASES.to_owned()));
    let drivers = drivers.unwrap_or_default();
    let mut findings = declarations::duplicates(&drivers);
    findings.retain(|finding| run.namespace().is_none_or(|namespace| finding.namespace() == namespace));
    let others = gather::of_other_types(&run.client, run.places()).await.map_err(|why| ScanError { why })?;
    let judged = run.judge_listed(&gather::helm_secrets(run.places()), &others, &drivers).await;
    let mut judged = judged.map_err(|error| ScanError { why: reason(&error) })?;
    let config_maps = run.judge_listed(&gather::config_maps(run.places()), &Inventory::default(), &drivers).await;
    if let Some(in_config_maps) = run.or_gap(gather::CONFIG_MAPS, config_maps) {
        looked_at.insert(1, gather::CONFIG_MAPS.to_owned());
        judged.merge(in_config_maps);
    }
    let (releases, records) = (judged.releases, judged.records);
    findings.extend(run.examine(judged, progress).await);
    looked_at.push(options.bodies.sentence().to_owned());
    looked_at.extend(options.drift.then(|| "objects of deployed releases".to_owned()));
    if let Some(found) = run.groups().await {
        looked_at.push(CONFIGURATION_GROUPS.to_owned());
        findings.extend(found);
    }
    let (shared, appliers) = run.shared_objects().await;
    looked_at.extend(appliers.iter().map(|kind| format!("objects of {kind}s")));
    findings.extend(shared);
    let mut report = ScanReport {
        cluster: options.cluster.clone(),
        policy: options.policy.clone(),
        time: now,
        namespace: options.namespace.clone(),
        releases,
        records,
        bodies: run.bodies.into_inner(),
        objects: run.objects.into_inner(),
        calls: calls.count(),
        took_seconds: started.elapsed().as_secs_f64(),
        peak_memory_bytes: peak_memory(),
        looked_at,
        not_looked_at: run.gaps.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect(),
        counts: BTreeMap::new(),
        findings: Vec::new(),
        left_out: 0,
    };
    report.take(findings);
    Ok(report)
}
