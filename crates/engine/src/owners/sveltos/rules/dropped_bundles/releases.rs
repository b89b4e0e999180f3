//! Commits of charts.

use std::collections::HashSet;

use super::delivery::{Delivery, listed, noun};
use super::explained::Walk;
use super::staged::Staged;
use super::{delivered, explained, required, staged};
use crate::object::ObjectKey;
use crate::owners::sveltos::{self, HelmReleaseSummary, MAY_RENDER_NOTHING, Profile, RemoteRelease};
use crate::policy::OnUnexplained;
use crate::rules::check::{CheckedAll, Refusal, Step, WaysOut};
use crate::rules::undecided::Undecided;
use crate::rules::wording::{MAX_ENUMERATED, command, enumerated};

/// The maximum number of failed charts in a message.
const MAX_CAUSES: usize = 3;

/// A release is complete if it has its last bundle, and all bundles with lower numbers. A chart that was only partly staged lacks
/// the rest.
pub(super) fn check(delivery: &Delivery<'_, '_>) -> CheckedAll {
    // The ClusterSummary is searched a few times for each chart and each entry.
    let entries = delivery.summary().spec.cluster_profile_spec.helm_charts.len() + delivery.summary().releases().len();
    delivery.case.pay_for_pairs(entries, 4 * entries)?;
    let required = required::releases(delivery.summary());
    if required.is_empty() {
        return Ok(Vec::new());
    }
    let staged = staged::by_release(delivery.commit.bundles()?.iter().flatten());
    let missing: Vec<_> =
        required.into_iter().filter(|release| !staged.get(release).is_some_and(Staged::is_complete)).collect();
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    delivery.expect_agent()?;
    // A release with some bundles did not render to nothing.
    let is_begun = |release: &RemoteRelease| staged.contains_key(release);
    let walk = Walk::of(delivery.summary());
    let is_failure = |release: &RemoteRelease| is_begun(release) || walk.explains(release).is_some();
    let (failed, unexplained): (Vec<_>, Vec<_>) = missing.iter().cloned().partition(is_failure);
    let left_out = |missing: &[RemoteRelease]| {
        let name = |release: &RemoteRelease| {
            let lacks = staged.get(release).map(|staged| format!(" ({})", staged.lacks()));
            format!("{release}{}", lacks.unwrap_or_default())
        };
        format!(
            "{} leaves out {} {}: the agent would remove what was delivered to cluster {}.",
            delivery.of_summary.subject(),
            noun(missing),
            enumerated(missing.iter().map(name), MAX_ENUMERATED),
            delivery.cluster()
        )
    };
    if delivered::any_release(delivery, &failed)? {
        let meant: HashSet<_> = failed.into_iter().chain(not_allowed_anyway(delivery, unexplained)?).collect();
        let missing: Vec<_> = missing.into_iter().filter(|release| meant.contains(release)).collect();
        return Ok(vec![failure(delivery, &walk, &left_out(&missing), &missing)]);
    }
    let unexplained = not_allowed(delivery, unexplained)?;
    if delivered::any_release(delivery, &unexplained)? {
        return match delivery.case.policy.dropped_bundles.unexplained {
            OnUnexplained::Deny => Ok(vec![silence(delivery, &left_out(&unexplained), &unexplained)]),
            OnUnexplained::Warn => Err(Undecided::Unclear {
                why: format!("it has no bundle of {}, and no chart is reported as failed", listed(&unexplained)),
                way_out: "If a chart is meant to render to nothing, list its release in the annotation \
                          interlock.dev/may-render-nothing of the profile.",
            }),
        };
    }
    let allowed: HashSet<_> = failed.iter().chain(&unexplained).collect();
    let never: Vec<_> = missing.iter().filter(|release| allowed.contains(release)).cloned().collect();
    if never.is_empty() { Ok(Vec::new()) } else { delivery.first_install(&listed(&never)) }
}

/// The releases that neither the ClusterSummary nor the profile allows to render to nothing.
fn not_allowed(delivery: &Delivery<'_, '_>, releases: Vec<RemoteRelease>) -> Result<Vec<RemoteRelease>, Undecided> {
    let left = explained::not_allowed_by_summary(delivery.summary(), &releases);
    let profile = delivery.of_summary.profile();
    if left.is_empty() || !matches!(profile.kind.as_ref(), "ClusterProfile" | "Profile") {
        return Ok(left);
    }
    let key = ObjectKey::new(sveltos::CONFIG_GROUP, &profile.kind, &profile.namespace, &profile.name);
    let profile = delivery.case.read::<Profile<'_>>(key)?;
    Ok(profile.map_or_else(|| left.clone(), |profile| explained::not_allowed_by_profile(&profile, &left)))
}

/// The same, if something else is refused anyway. A profile that cannot be parsed then allows nothing.
fn not_allowed_anyway(
    delivery: &Delivery<'_, '_>,
    releases: Vec<RemoteRelease>,
) -> Result<Vec<RemoteRelease>, Undecided> {
    match not_allowed(delivery, releases.clone()) {
        Err(Undecided::Unclear { .. }) => Ok(releases),
        read => read,
    }
}

/// In versions up to 1.7.0, the error of a chart is not in the API.
const IN_THE_LOG: &str =
    "No chart is reported as failed: up to Sveltos 1.7.0 the error is only in the log of addon-controller";

/// The refusal if charts failed.
fn failure(delivery: &Delivery<'_, '_>, walk: &Walk<'_, '_>, left_out: &str, missing: &[RemoteRelease]) -> Refusal {
    let mut causes: Vec<&HelmReleaseSummary<'_>> = Vec::new();
    for cause in missing.iter().filter_map(|release| walk.explains(release)) {
        if causes.len() < MAX_CAUSES && !causes.iter().any(|known| std::ptr::eq(*known, cause)) {
            causes.push(cause);
        }
    }
    let texts: Vec<_> = causes.iter().map(|cause| explained::failure_text(cause)).collect();
    let texts = if texts.is_empty() { IN_THE_LOG.to_owned() } else { texts.join("; ") };
    let contested: Vec<_> =
        causes.iter().filter(|cause| cause.is_in_conflict()).map(|cause| cause.release().to_string()).collect();
    let mut ways_out = WaysOut::default();
    if !contested.is_empty() {
        let conflict = format!("to end the conflict over {}", contested.join(", "));
        ways_out = ways_out.when(conflict, "take the chart out of one profile");
    }
    if contested.len() < causes.len().max(1) {
        ways_out = ways_out.and("the commit is admitted once every chart renders");
    }
    if !causes.is_empty() {
        ways_out = ways_out.note(format!("The status of {} has the details.", delivery.of_summary.summary_name()));
    }
    delivery.refusal(format!("{left_out} {texts}."), ways_out)
}

/// The refusal if a failed chart cannot be distinguished from one that renders to nothing.
fn silence(delivery: &Delivery<'_, '_>, left_out: &str, missing: &[RemoteRelease]) -> Refusal {
    let names: Vec<_> = missing.iter().map(ToString::to_string).collect();
    let (profile, names) = (delivery.of_summary.profile(), names.join(","));
    let (kind, annotation) = (profile.kind.to_lowercase(), format!("{MAY_RENDER_NOTHING}={names}"));
    let mut words = vec!["kubectl", "annotate", &kind, &profile.name, "--overwrite", &annotation];
    if !profile.namespace.is_empty() {
        words.extend(["-n", &profile.namespace]);
    }
    let text = format!("annotate {} with {MAY_RENDER_NOTHING}: {names} ({{}})", delivery.of_summary.profile_name());
    let annotate = Step::run(text, command(&words));
    let ways_out = WaysOut::default().when("if a chart is meant to render to nothing", annotate);
    delivery.refusal(format!("{left_out} {IN_THE_LOG}, and a chart that renders to nothing has no error."), ways_out)
}
