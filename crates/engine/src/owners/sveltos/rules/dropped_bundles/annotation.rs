//! The annotations with which people allow something for a release. They stand on the profile or on the ClusterSummary.

use std::collections::HashSet;

use super::delivery::Delivery;
use crate::object::{Metadata, ObjectKey};
use crate::owners::sveltos::{self, Profile, RemoteRelease, named_releases};
use crate::rules::check::Step;
use crate::rules::undecided::Undecided;
use crate::rules::wording::command;

/// The releases that neither the ClusterSummary nor the profile names in an annotation.
pub(super) fn not_named(
    delivery: &Delivery<'_, '_>,
    annotation: &str,
    mut releases: Vec<RemoteRelease>,
) -> Result<Vec<RemoteRelease>, Undecided> {
    let on_summary: HashSet<_> = named(&delivery.summary().metadata, annotation).into_iter().collect();
    releases.retain(|release| !on_summary.contains(release));
    if releases.is_empty() {
        return Ok(releases);
    }
    let on_profile: HashSet<_> = on_profile(delivery, annotation)?.into_iter().collect();
    releases.retain(|release| !on_profile.contains(release));
    Ok(releases)
}

/// The same, if something else is refused anyway. A profile that cannot be parsed then names nothing.
pub(super) fn not_named_anyway(
    delivery: &Delivery<'_, '_>,
    annotation: &str,
    releases: Vec<RemoteRelease>,
) -> Result<Vec<RemoteRelease>, Undecided> {
    match not_named(delivery, annotation, releases.clone()) {
        Err(Undecided::Unclear { .. }) => Ok(releases),
        read => read,
    }
}

/// The step that adds releases to an annotation of the profile.
pub(super) fn step(
    delivery: &Delivery<'_, '_>,
    annotation: &str,
    releases: &[RemoteRelease],
) -> Result<Step, Undecided> {
    let mut names = on_profile(delivery, annotation)?;
    let there: HashSet<_> = names.iter().cloned().collect();
    names.extend(releases.iter().filter(|release| !there.contains(release)).cloned());
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    let (profile, names) = (delivery.of_summary.profile(), names.join(","));
    let (kind, assignment) = (profile.kind.to_lowercase(), format!("{annotation}={names}"));
    let mut words = vec!["kubectl", "annotate", &kind, &profile.name, "--overwrite", &assignment];
    if !profile.namespace.is_empty() {
        words.extend(["-n", &profile.namespace]);
    }
    let text = format!("annotate {} with {annotation}: {names} ({{}})", delivery.of_summary.profile_name());
    Ok(Step::run(text, command(&words)))
}

/// The releases in an annotation of the profile.
fn on_profile(delivery: &Delivery<'_, '_>, annotation: &str) -> Result<Vec<RemoteRelease>, Undecided> {
    let profile = delivery.of_summary.profile();
    if !matches!(profile.kind.as_ref(), "ClusterProfile" | "Profile") {
        return Ok(Vec::new());
    }
    let key = ObjectKey::new(sveltos::CONFIG_GROUP, &profile.kind, &profile.namespace, &profile.name);
    let profile = delivery.case.read::<Profile<'_>>(key)?;
    Ok(profile.map(|profile| named(&profile.metadata, annotation)).unwrap_or_default())
}

fn named(metadata: &Metadata<'_>, annotation: &str) -> Vec<RemoteRelease> {
    metadata.annotation(annotation).into_iter().flat_map(named_releases).collect()
}
