//! A closer look at one release.

use jiff::Timestamp;
use serde::Serialize;

use super::row::{Row, since};
use super::survey::{StatusError, View};
use crate::engine::evidence::{Answer, Freshness, Knowledge, Query};
use crate::engine::overrides::Override;
use crate::engine::policy::OverrideSettings;
use crate::engine::release::{History, ReleaseRef, Storage};
use crate::engine::rules::flux_release::FluxRelease;
use crate::engine::rules::{RuleId, RunbookCheck};
use crate::inspect::unstick::Pending;
use crate::world::World;

/// One release, its records and whatever bears on it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Described {
    /// As in the table.
    #[serde(flatten)]
    pub row: Row,
    /// Its records, newest first.
    pub history: Vec<RevisionLine>,
    /// The runbook's checks, where an operation is pending; empty where none is.
    pub checks: Vec<RunbookCheck>,
    /// The overrides that are in force.
    pub overrides: Vec<OverrideInForce>,
    /// The HelmReleases that name its records, the oldest first.
    pub helm_releases: Vec<HelmReleaseLine>,
    /// What could not be learnt, and why.
    pub not_looked_at: Vec<String>,
}

/// One record.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RevisionLine {
    /// Its revision.
    pub revision: u64,
    /// Its status, by its label.
    pub status: &'static str,
    /// Since when it has been so, by the API server's clock.
    pub since: Option<Timestamp>,
    /// `name-version` of its chart, as stamped.
    pub chart: Option<String>,
    /// Who started its operation, as stamped.
    pub holder: Option<String>,
}

/// An override.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OverrideInForce {
    /// Its namespace and name.
    pub name: String,
    /// What it opens.
    pub rules: Vec<&'static str>,
    /// To whom; to everybody where nobody is named.
    pub users: Vec<String>,
    /// When it closes.
    pub until: Option<Timestamp>,
    /// In its maker's words.
    pub reason: String,
}

/// A HelmRelease.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HelmReleaseLine {
    /// Its namespace and name.
    pub name: String,
    /// Whether it counts: it has installed the release, or Flux holds it.
    pub drives: bool,
    /// Whether Flux does nothing for it.
    pub suspended: bool,
    /// For how long Flux may be silent, in seconds.
    pub longest_timeout_seconds: i64,
}

/// Looks at a release closely; once for each storage that has records of its name, as a rule one.
///
/// # Errors
/// When its records cannot be read. What else cannot is told.
pub async fn describe(view: &View<'_>, release: &ReleaseRef, now: Timestamp) -> Result<Vec<Described>, StatusError> {
    let mut described = Vec::new();
    for (storage, history) in view.releases(release).await? {
        described.extend(closely(view, release, storage, &history, now).await);
    }
    Ok(described)
}

async fn closely(
    view: &View<'_>,
    release: &ReleaseRef,
    storage: Storage,
    history: &History,
    now: Timestamp,
) -> Option<Described> {
    let row = view.row(release, storage, history, now).await?;
    let mut not_looked_at: Vec<_> = view.gap().map(|gap| format!("{}: {}", gap.what, gap.why)).into_iter().collect();
    let policy = view.policies.of(&release.namespace);
    let checks = match Pending::read(view, release, storage, history).await {
        Ok(Some(pending)) => pending.checks(view, now).await.unwrap_or_else(|why| {
            not_looked_at.push(why);
            Vec::new()
        }),
        Ok(None) => Vec::new(),
        Err(why) => {
            not_looked_at.push(why);
            Vec::new()
        }
    };
    let home = policy.overrides.home_of(release);
    let query = Query::Overrides { namespace: home.namespace.clone(), release: home.name, freshness: Freshness::Live };
    let overrides = match view.world.answer(&query).await {
        Answer::Known(Knowledge::Overrides(found)) => found,
        Answer::Unavailable(why) => {
            not_looked_at.push(format!("ReleaseOverrides: {why}"));
            Vec::new()
        }
        Answer::Known(_) | Answer::Absent => Vec::new(),
    };
    let bounds = policy.overrides_in(&home.namespace);
    let overrides =
        overrides.iter().filter(|it| it.is_in_force(&bounds, now)).map(|it| in_force(it, &bounds)).collect();
    let driven =
        FluxRelease { storage, namespace: &release.namespace, release: &release.name, holder: row.holder.as_deref() };
    let naming = driven.helm_releases_among(view.world.drivers.as_deref().unwrap_or_default());
    let helm_releases = naming.iter().map(|driver| HelmReleaseLine {
        name: format!("{}/{}", driver.namespace, driver.name),
        drives: driven.is_driven_by(driver, policy),
        suspended: driver.suspended,
        longest_timeout_seconds: driver.longest_timeout.as_secs(),
    });
    let lines = history.iter().map(|entry| RevisionLine {
        revision: entry.revision.0,
        status: entry.status.as_str(),
        since: since(entry),
        chart: entry.stamps.chart().map(str::to_owned),
        holder: entry.stamps.holder().map(str::to_owned),
    });
    Some(Described {
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
    }
}
