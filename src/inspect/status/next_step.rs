//! The next safe step for a release, and its commands.

use jiff::tz::TimeZone;

use super::summary::{ReleaseOwner, ReleaseSummary, Stuck};
use crate::engine::olm::version_range::version_of;
use crate::engine::release::{Entry, History, Status};
use crate::engine::rules::wording::{OwnerWords, pin_command};
use crate::inspect::storage_kind::StorageKind;

/// The next safe step; `None` if nothing is to be done.
pub(super) fn next_step(
    row: &ReleaseSummary,
    history: &History,
    newest: &Entry,
    closes_rollback: bool,
) -> Option<String> {
    let ReleaseSummary { namespace, release, .. } = row;
    let words = OwnerWords { storage: row.storage.into(), namespace, release };
    let uninstall = || helm_command(row, &format!("uninstall {release}"));
    let step = match (newest.status, row.stuck) {
        (status, Stuck::No) if status.is_in_flight() => match row.stuck_from {
            Some(from) => format!("wait until {}", from.to_zoned(TimeZone::UTC).strftime("%H:%M UTC")),
            None => "wait: the start of the operation is unknown".to_owned(),
        },
        (_, Stuck::Unknown) => "check whether Flux is working on it: the HelmReleases cannot be read".to_owned(),
        (Status::Uninstalling, _) if words.is_olm() => words.delete_command(&newest.name),
        (Status::Uninstalling, _) => format!("run again: {}", uninstall()),
        (status, _) if status.is_pending() => {
            let superseded = history.below(newest.revision).find(|entry| entry.status == Status::Superseded);
            match superseded {
                _ if words.is_olm() || history.newest_deployed().is_some() => {
                    format!("interlock unstick {namespace}/{release}")
                }
                Some(below) => {
                    let rollback = helm_command(row, &format!("rollback {release} {}", below.revision));
                    let opened = if closes_rollback { "create an override for pending-recovery, then " } else { "" };
                    format!("{opened}{rollback}")
                }
                None => format!("{}, then install again", uninstall()),
            }
        }
        (Status::Deployed | Status::Failed | Status::Superseded, _) if row.interrupted.is_some() => {
            let chart = row.interrupted.as_deref().and_then(|note| note.rsplit_once('@')).map(|(chart, _)| chart);
            let pinned = chart.and_then(|chart| version_of(chart, release)).filter(|_| words.is_olm());
            let command = pinned.map_or_else(|| retry(row, chart), |version| pin_command(release, &version));
            format!("finish {} first: {command}", chart.unwrap_or_default())
        }
        (Status::Failed, _) => format!("roll forward: {}", retry(row, None)),
        (Status::Unknown | Status::Superseded, _) => "find the cause: interlock scan".to_owned(),
        _ => return None,
    };
    Some(step)
}

/// The command that upgrades a release again, to the chart of the deleted record.
#[must_use]
pub(crate) fn roll_forward(row: &ReleaseSummary) -> String {
    retry(row, row.chart.as_deref())
}

/// A helm command for a release, with its storage driver.
#[must_use]
pub(crate) fn helm_command(row: &ReleaseSummary, command: &str) -> String {
    let driver = if row.storage == StorageKind::ConfigMap { "HELM_DRIVER=configmap " } else { "" };
    format!("{driver}helm {command} -n {}", row.namespace)
}

fn retry(row: &ReleaseSummary, chart: Option<&str>) -> String {
    match &row.owner {
        ReleaseOwner::Flux(name) => {
            let (namespace, name) = name.split_once('/').unwrap_or_default();
            format!("flux reconcile helmrelease {name} -n {namespace} --reset")
        }
        ReleaseOwner::Olm(name) => format!("OLM retries by itself: kubectl get clusterextension {name} -w"),
        ReleaseOwner::Helm | ReleaseOwner::Sveltos | ReleaseOwner::Unknown => {
            let version = chart.and_then(version).map(|version| format!(" --version {version}")).unwrap_or_default();
            helm_command(row, &format!("upgrade {} CHART{version}", row.release))
        }
    }
}

/// The version at the end of `name-version`; both may contain dashes.
#[must_use]
pub(crate) fn version(chart: &str) -> Option<&str> {
    let starts = chart.match_indices('-').map(|(at, _)| &chart[at + 1..]);
    starts.into_iter().find(|rest| {
        let (major, minor) = rest.strip_prefix('v').unwrap_or(rest).split_once('.').unwrap_or_default();
        let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        number(major) && minor.starts_with(|first: char| first.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_chart_is_found() {
        for (chart, wanted) in [
            ("demo-1.0.0", Some("1.0.0")),
            ("ingress-nginx-4.11.2-rc.1+build-7", Some("4.11.2-rc.1+build-7")),
            ("app-2-1.0.0", Some("1.0.0")),
            ("cert-manager-v1.16.1", Some("v1.16.1")),
            ("app-v2-1.0.0", Some("1.0.0")),
            ("demo", None),
            ("demo-latest", None),
            ("", None),
        ] {
            assert_eq!(version(chart), wanted, "{chart}");
        }
    }
}
