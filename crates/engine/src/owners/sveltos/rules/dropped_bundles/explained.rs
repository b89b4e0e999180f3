//! Why a release has no bundle, according to the ClusterSummary.

use crate::owners::sveltos::{ClusterSummary, HelmReleaseSummary, RemoteRelease};

/// How Sveltos walked over the charts, and where the walk ended.
pub(super) struct Walk<'s, 'a> {
    summary: &'s ClusterSummary<'a>,
    /// The entries at which the walk may have ended, with their positions.
    ends: Vec<(&'s HelmReleaseSummary<'a>, Option<usize>)>,
}

impl<'s, 'a> Walk<'s, 'a> {
    pub(super) fn of(summary: &'s ClusterSummary<'a>) -> Self {
        let ends = summary.releases().iter().filter(|entry| ends_walk(summary, entry));
        Self { summary, ends: ends.map(|entry| (entry, place(summary, &entry.release()))).collect() }
    }

    /// The entry that explains why a release was not rendered: its own entry if its chart failed, or else an earlier one at which
    /// the walk ended. `None` if its chart may have rendered to nothing.
    pub(super) fn explains(&self, release: &RemoteRelease) -> Option<&'s HelmReleaseSummary<'a>> {
        let own = self.summary.releases().iter().find(|it| it.is_of(release) && !it.failure_message.is_empty());
        let place = place(self.summary, release);
        let is_before = |end: &Option<usize>| place.zip(*end).is_none_or(|(place, end)| end < place);
        own.or_else(|| self.ends.iter().find(|(_, end)| is_before(end)).map(|end| end.0))
    }
}

fn ends_walk(summary: &ClusterSummary<'_>, entry: &HelmReleaseSummary<'_>) -> bool {
    let spec = &summary.spec.cluster_profile_spec;
    (entry.is_in_conflict() && !spec.continue_on_conflict)
        || (!entry.failure_message.is_empty() && !spec.continue_on_error)
}

/// The position of a release in the order of the charts; `None` if templates make it uncertain.
fn place(summary: &ClusterSummary<'_>, release: &RemoteRelease) -> Option<usize> {
    let charts = &summary.spec.cluster_profile_spec.helm_charts;
    let mut places = (0..charts.len()).filter(|place| charts[*place].can_be(release));
    let first = places.next()?;
    // The entries are in the order of the charts, except for races with other profiles.
    let listed = || summary.releases().iter().position(|entry| entry.is_of(release));
    match places.next() {
        None => Some(first),
        Some(_) => listed().filter(|place| {
            charts.len() == summary.releases().len() && charts.get(*place).is_some_and(|chart| chart.can_be(release))
        }),
    }
}

/// `shop/web: its chart fails`. The error is left out, because it can quote a value that violates the schema of a chart.
pub(super) fn failure_text(entry: &HelmReleaseSummary<'_>) -> String {
    let what = if entry.failure_message.is_empty() { "another profile manages it" } else { "its chart fails" };
    format!("{}: {what}", entry.release())
}
