//! The releases that a commit must contain.

use std::collections::HashSet;

use crate::engine::sveltos::{ClusterSummary, HelmChart, HelmReleaseSummary, RemoteRelease};

/// The releases that the profile manages and wants, each once, by their names on the cluster, in the order of the charts.
///
/// The status has the names without templates, and no longer lists charts that were removed from the profile. But while another
/// profile contests a release, its entry comes and goes. So charts whose names are no templates count too, unless their entry says
/// that another profile has won.
pub(super) fn releases(summary: &ClusterSummary<'_>) -> Vec<RemoteRelease> {
    let entries = summary.releases();
    let charts = &summary.spec.cluster_profile_spec.helm_charts;
    let managed = entries.iter().enumerate().filter(|(_, entry)| entry.is_managed());
    let kept = managed.filter(|(index, entry)| !is_uninstalled(charts, entries, *index, entry));
    let contested =
        |release: &RemoteRelease| entries.iter().any(|entry| entry.is_of(release) && entry.is_in_conflict());
    let wanted = charts.iter().filter(|chart| !chart.uninstalls()).filter_map(HelmChart::release);
    let wanted = wanted.filter(|release| !contested(release));
    let mut seen = HashSet::new();
    kept.map(|(_, entry)| entry.release()).chain(wanted).filter(|release| seen.insert(release.clone())).collect()
}

/// Whether the chart of an entry is to be removed: without hooks such a chart has no bundle. Matched by position, because its name
/// may be a template; by name if the two lists do not match, and then only if no chart that stays can belong to the entry.
fn is_uninstalled(
    charts: &[HelmChart<'_>],
    entries: &[HelmReleaseSummary<'_>],
    index: usize,
    entry: &HelmReleaseSummary<'_>,
) -> bool {
    let aligned = charts.len() == entries.len() && charts.iter().zip(entries).all(|(chart, entry)| chart.can_be(entry));
    if aligned {
        return charts.get(index).is_some_and(HelmChart::uninstalls);
    }
    let (removed, kept): (Vec<_>, Vec<_>) = charts.iter().partition(|chart| chart.uninstalls());
    removed.iter().any(|chart| chart.can_be(entry)) && !kept.iter().any(|chart| chart.can_be(entry))
}
