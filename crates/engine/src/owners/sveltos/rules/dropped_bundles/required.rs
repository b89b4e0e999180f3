//! The releases that a commit must contain.

use std::collections::{HashMap, HashSet};

use super::staged::Staged;
use crate::owners::sveltos::{ClusterSummary, HelmChart, HelmReleaseSummary, RemoteRelease};

/// The releases that the profile manages and wants, each once, with expanded names, in the order of the charts.
///
/// The status has expanded names, and does not list charts that were removed from the profile. But while another profile contests
/// a release, its entry appears and disappears. So charts without templates in their names count too, unless their entry says
/// that another profile has won.
pub(super) fn releases(summary: &ClusterSummary<'_>) -> Vec<RemoteRelease> {
    let entries = summary.releases();
    let charts = &summary.spec.cluster_profile_spec.helm_charts;
    let managed = entries.iter().enumerate().filter(|(_, entry)| entry.is_managed());
    let uninstalled = UninstalledCharts::of(charts, entries);
    let kept = managed.filter(|(index, entry)| !uninstalled.include(*index, entry));
    let contested: HashSet<_> =
        entries.iter().filter(|entry| entry.is_in_conflict()).map(HelmReleaseSummary::release).collect();
    let wanted = charts.iter().filter(|chart| !chart.uninstalls()).filter_map(HelmChart::release);
    let wanted = wanted.filter(|release| !contested.contains(release));
    let mut seen = HashSet::new();
    kept.map(|(_, entry)| entry.release()).chain(wanted).filter(|release| seen.insert(release.clone())).collect()
}

/// The charts to install whose release Sveltos computes and that no entry can belong to. While another profile contests a release,
/// its entry disappears, and only an entry has the expanded name.
pub(super) fn charts_without_entry<'s, 'a>(summary: &'s ClusterSummary<'a>) -> Vec<&'s HelmChart<'a>> {
    let charts = &summary.spec.cluster_profile_spec.helm_charts;
    let plain: HashSet<_> = charts.iter().filter_map(HelmChart::release).collect();
    let entries: Vec<_> = summary.releases().iter().map(HelmReleaseSummary::release).collect();
    let has_entry = |chart: &HelmChart<'_>| entries.iter().any(|entry| !plain.contains(entry) && chart.can_be(entry));
    charts.iter().filter(|chart| !chart.uninstalls() && chart.is_template() && !has_entry(chart)).collect()
}

/// Those of the charts for which the commit has no release but required ones.
pub(super) fn unstaged<'s, 'a>(
    charts: &[&'s HelmChart<'a>],
    required: &[RemoteRelease],
    staged: &HashMap<&RemoteRelease, Staged>,
) -> Vec<&'s HelmChart<'a>> {
    let others: Vec<_> = staged
        .iter()
        .filter(|(release, staged)| staged.is_complete() && !required.contains(release))
        .map(|(release, _)| *release)
        .collect();
    charts.iter().filter(|chart| !others.iter().any(|release| chart.can_be(release))).copied().collect()
}

/// The charts that are to be removed. Without hooks, such a chart has no bundle. A chart is matched with an entry by position,
/// because its name may be a template. If the two lists do not match, it is matched by name, provided that no chart that stays
/// can belong to the entry.
enum UninstalledCharts<'s, 'a> {
    Aligned(&'s [HelmChart<'a>]),
    ByName { removed: Vec<&'s HelmChart<'a>>, kept: Vec<&'s HelmChart<'a>> },
}

impl<'s, 'a> UninstalledCharts<'s, 'a> {
    fn of(charts: &'s [HelmChart<'a>], entries: &[HelmReleaseSummary<'_>]) -> Self {
        let aligned = charts.len() == entries.len()
            && charts.iter().zip(entries).all(|(chart, entry)| chart.can_be(&entry.release()));
        if aligned {
            return Self::Aligned(charts);
        }
        let (removed, kept) = charts.iter().partition(|chart| chart.uninstalls());
        Self::ByName { removed, kept }
    }

    fn include(&self, index: usize, entry: &HelmReleaseSummary<'_>) -> bool {
        match self {
            Self::Aligned(charts) => charts.get(index).is_some_and(HelmChart::uninstalls),
            Self::ByName { removed, kept } => {
                let release = entry.release();
                removed.iter().any(|chart| chart.can_be(&release)) && !kept.iter().any(|chart| chart.can_be(&release))
            }
        }
    }
}
