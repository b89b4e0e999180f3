//! Why a release has no bundle, as far as the ClusterSummary shows, and whether a user has allowed it.

use std::collections::HashSet;

use crate::engine::sveltos::{
    ClusterSummary, HelmReleaseSummary, MAY_RENDER_NOTHING, Profile, RemoteRelease, named_releases,
};

/// The error of a chart can quote pages of a template.
const MAX_MESSAGE_CHARS: usize = 300;

/// The entry that explains why a release was not rendered: its own if its chart failed, otherwise one at which the walk over the
/// charts ended. `None` if its chart may have rendered to nothing.
pub(super) fn by<'s, 'a>(
    summary: &'s ClusterSummary<'a>,
    release: &RemoteRelease,
) -> Option<&'s HelmReleaseSummary<'a>> {
    let entries = &summary.status.helm_release_summaries;
    let own = entries.iter().find(|entry| entry.is_of(release) && !entry.failure_message.is_empty());
    own.or_else(|| entries.iter().find(|entry| ends_walk(summary, entry)))
}

fn ends_walk(summary: &ClusterSummary<'_>, entry: &HelmReleaseSummary<'_>) -> bool {
    let spec = &summary.spec.cluster_profile_spec;
    (entry.is_in_conflict() && !spec.continue_on_conflict)
        || (!entry.failure_message.is_empty() && !spec.continue_on_error)
}

/// `shop/web: values don't meet the specifications of the schema`.
pub(super) fn failure_text(entry: &HelmReleaseSummary<'_>) -> String {
    let message = match entry.failure_message.as_ref() {
        "" if entry.conflict_message.is_empty() => "another profile manages it",
        "" => entry.conflict_message.as_ref(),
        message => message,
    };
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = if line.chars().nth(MAX_MESSAGE_CHARS).is_some() { "…" } else { "" };
    let line: String = line.chars().take(MAX_MESSAGE_CHARS).collect();
    format!("{}: {}{cut}", entry.release(), line.trim_end_matches('.'))
}

/// The releases that the ClusterSummary does not allow to render to nothing.
pub(super) fn not_allowed_by_summary(summary: &ClusterSummary<'_>, releases: &[RemoteRelease]) -> Vec<RemoteRelease> {
    not_named(summary.metadata.annotation(MAY_RENDER_NOTHING), releases)
}

/// The releases that the profile does not allow to render to nothing.
pub(super) fn not_allowed_by_profile(profile: &Profile<'_>, releases: &[RemoteRelease]) -> Vec<RemoteRelease> {
    not_named(profile.metadata.annotation(MAY_RENDER_NOTHING), releases)
}

fn not_named(annotation: Option<&str>, releases: &[RemoteRelease]) -> Vec<RemoteRelease> {
    let named: HashSet<_> = annotation.into_iter().flat_map(named_releases).collect();
    releases.iter().filter(|release| !named.contains(release)).cloned().collect()
}
