//! The detailed description of one release.

use interlock_engine::owners::DrivenRelease;
use interlock_engine::policy::OverrideSettings;
use interlock_engine::release::{History, ReleaseRef, Storage};
use interlock_engine::release_override::Override;
use interlock_engine::rule::RuleId;
use interlock_engine::rules::RunbookCheck;
use jiff::Timestamp;
use serde::Serialize;

use super::assess::since;
use super::elsewhere::elsewhere;
use super::summary::ReleaseSummary;
use super::survey::{StatusError, examined};
use crate::inspect::diagnosis::{Checks, ReleaseRecords};
use crate::inspect::overrides::stored;
use crate::inspect::view::View;

/// A release with its records, overrides and HelmReleases.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReleaseDescription {
    #[serde(flatten)]
    pub row: ReleaseSummary,
    /// Newest first.
    pub history: Vec<RevisionSummary>,
    /// The runbook's checks; empty if no operation is pending.
    pub checks: Vec<RunbookCheck>,
    pub overrides: Vec<OverrideInForce>,
    /// The HelmReleases that refer to its records, oldest first.
    pub helm_releases: Vec<HelmReleaseOverview>,
    /// What could not be read, and why.
    pub not_looked_at: Vec<String>,
}

/// One record of the history.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RevisionSummary {
    pub revision: u64,
    pub status: &'static str,
    /// When the record reached its status, by the API server's clock.
    pub since: Option<Timestamp>,
    /// `name-version` of the chart, from the stamp.
    pub chart: Option<String>,
    /// The user who started the operation, from the stamp.
    pub holder: Option<String>,
}

/// An override.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OverrideInForce {
    pub name: String,
    pub rules: Vec<&'static str>,
    /// Empty for all users.
    pub users: Vec<String>,
    pub until: Option<Timestamp>,
    pub reason: String,
    pub ticket: Option<String>,
}

/// A HelmRelease.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HelmReleaseOverview {
    pub name: String,
    /// Whether the HelmRelease manages the release: it has installed the release, or Flux holds the release.
    pub drives: bool,
    pub suspended: bool,
    /// How long an operation of Flux may take, in seconds.
    pub longest_timeout_seconds: i64,
}

/// Describes a release, once for each storage that has records of it; usually one. If the namespace has no record, it may be the
/// namespace of the release's objects.
///
/// # Errors
/// When its records cannot be read. The description names everything else that cannot be read.
pub(crate) async fn describe(
    view: &View<'_>,
    release: &ReleaseRef,
    now: Timestamp,
) -> Result<Vec<ReleaseDescription>, StatusError> {
    let mut described = Vec::new();
    for (storage, history) in view.releases(release).await? {
        described.extend(closely(view, release, storage, &history, now).await);
    }
    if described.is_empty() {
        for (release, storage, history) in elsewhere(view, &release.namespace, Some(&release.name)).await {
            described.extend(closely(view, &release, storage, &history, now).await);
        }
    }
    Ok(described)
}

async fn closely(
    view: &View<'_>,
    release: &ReleaseRef,
    storage: Storage,
    history: &History,
    now: Timestamp,
) -> Option<ReleaseDescription> {
    let broken = &view.broken(release, storage, history).await;
    let records = ReleaseRecords { release, storage, history, broken };
    let (row, (checks, unread)) = examined(view, records, (Checks::Run, now)).await?;
    let mut not_looked_at: Vec<_> = view.gap().map(|gap| format!("{}: {}", gap.what, gap.why)).into_iter().collect();
    not_looked_at.extend(unread);
    let policy = view.policies.of(&release.namespace);
    let home = policy.overrides.home_of(release);
    let bounds = policy.overrides_in(&home.namespace);
    let overrides = stored(&view.world, home).await;
    let overrides = overrides.map_err(|why| not_looked_at.push(format!("ReleaseOverrides: {why}"))).unwrap_or_default();
    let overrides =
        overrides.iter().filter(|it| it.is_in_force(&bounds, now)).map(|it| in_force(it, &bounds)).collect();
    let stamps = history.stamps();
    let driven = DrivenRelease { storage, namespace: &release.namespace, release: &release.name, stamps };
    let naming = driven.helm_releases_among(view.world.drivers.as_deref().unwrap_or_default());
    let helm_releases = naming.iter().map(|driver| HelmReleaseOverview {
        name: format!("{}/{}", driver.namespace, driver.name),
        drives: driven.is_driven_by(driver, policy),
        suspended: driver.suspended,
        longest_timeout_seconds: driver.longest_timeout.as_secs(),
    });
    let lines = history.iter().map(|entry| RevisionSummary {
        revision: entry.revision.0,
        status: entry.status.as_str(),
        since: since(entry),
        chart: entry.stamps.chart().map(str::to_owned),
        holder: entry.stamps.holder().map(str::to_owned),
    });
    Some(ReleaseDescription {
        history: lines.collect(),
        checks,
        overrides,
        helm_releases: helm_releases.collect(),
        not_looked_at,
        row,
    })
}

fn in_force(it: &Override, bounds: &OverrideSettings) -> OverrideInForce {
    OverrideInForce {
        name: it.reference(),
        rules: it.spec.rules.iter().copied().map(RuleId::as_str).collect(),
        users: it.spec.users.clone().unwrap_or_default(),
        until: it.closes(bounds),
        reason: it.spec.reason.clone(),
        ticket: it.spec.ticket.clone(),
    }
}
