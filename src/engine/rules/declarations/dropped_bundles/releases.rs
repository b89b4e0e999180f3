//! Commits of charts.

use std::collections::HashSet;

use super::delivery::{Delivery, NOTHING_CHANGED, listed, noun};
use super::{delivered, explained, required};
use crate::engine::object::ObjectKey;
use crate::engine::policy::OnUnexplained;
use crate::engine::rules::check::{CheckedAll, Refusal};
use crate::engine::rules::undecided::Undecided;
use crate::engine::rules::wording::{MAX_ENUMERATED, enumerated};
use crate::engine::sveltos::{self, MAY_RENDER_NOTHING, Profile, RemoteRelease};

/// How many errors of charts a message quotes.
const MAX_CAUSES: usize = 3;

/// A release is complete if its last bundle is present: a chart that could not be staged completely has only the first bundles.
pub(super) fn check(delivery: &Delivery<'_>) -> CheckedAll {
    let charts = delivery.summary.spec.cluster_profile_spec.helm_charts.len();
    // A ClusterSummary is searched a few times for each chart.
    delivery.case.pay_for_pairs(charts + delivery.summary.releases().len(), 4 * delivery.summary.releases().len())?;
    let required = required::releases(&delivery.summary);
    if required.is_empty() {
        return Ok(Vec::new());
    }
    let deploying = delivery.commit.bundles()?.iter().flatten().filter(|bundle| !bundle.uninstalls);
    let deploying = deploying.filter_map(|bundle| Some((bundle.release.as_ref()?, bundle.is_last)));
    let begun: HashSet<_> = deploying.clone().map(|(release, _)| release).collect();
    let whole: HashSet<_> = deploying.filter(|(_, is_last)| *is_last).map(|(release, _)| release).collect();
    let missing: Vec<_> = required.into_iter().filter(|release| !whole.contains(release)).collect();
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    delivery.expect_agent()?;
    // A release with some bundles did not render to nothing.
    let is_begun = |release: &RemoteRelease| begun.contains(release);
    let is_failure = |release: &RemoteRelease| is_begun(release) || explained::by(&delivery.summary, release).is_some();
    let (failed, unexplained): (Vec<_>, Vec<_>) = missing.iter().cloned().partition(is_failure);
    let left_out = |missing: &[RemoteRelease]| {
        let name = |release: &RemoteRelease| {
            if is_begun(release) { format!("{release} (its last bundle)") } else { release.to_string() }
        };
        format!(
            "{} leaves out {} {}: the agent would remove what was delivered to cluster {}.",
            delivery.commit.subject(),
            noun(missing),
            enumerated(missing.iter().map(name), MAX_ENUMERATED),
            delivery.cluster()
        )
    };
    if delivered::any_release(delivery, &failed)? {
        return Ok(vec![failure(delivery, &left_out(&missing), &missing)]);
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
fn not_allowed(delivery: &Delivery<'_>, releases: Vec<RemoteRelease>) -> Result<Vec<RemoteRelease>, Undecided> {
    let left = explained::not_allowed_by_summary(&delivery.summary, &releases);
    let profile = &delivery.commit.group.spec.source_ref;
    if left.is_empty() || !matches!(profile.kind.as_ref(), "ClusterProfile" | "Profile") {
        return Ok(left);
    }
    let key = ObjectKey::new(sveltos::CONFIG_GROUP, &profile.kind, &profile.namespace, &profile.name);
    let profile = delivery.case.read::<Profile<'_>>(key)?;
    Ok(profile.map_or_else(|| left.clone(), |profile| explained::not_allowed_by_profile(&profile, &left)))
}

/// Up to 1.7.0 the API does not contain the error of a chart.
const IN_THE_LOG: &str =
    "No chart is reported as failed: up to Sveltos 1.7.0 the error is only in the log of addon-controller";

/// The refusal if charts failed.
fn failure(delivery: &Delivery<'_>, left_out: &str, missing: &[RemoteRelease]) -> Refusal {
    let mut causes: Vec<String> = Vec::new();
    for cause in missing.iter().filter_map(|release| explained::by(&delivery.summary, release)) {
        let cause = explained::failure_text(cause);
        if causes.len() < MAX_CAUSES && !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    let causes = if causes.is_empty() { IN_THE_LOG.to_owned() } else { causes.join("; ") };
    let way_out = format!("{NOTHING_CHANGED} The commit is admitted once every chart renders.");
    Refusal::new(format!("{left_out} {causes}."), way_out).at("/spec/configurationItem")
}

/// The refusal if a failed chart cannot be distinguished from one that renders to nothing.
fn silence(delivery: &Delivery<'_>, left_out: &str, missing: &[RemoteRelease]) -> Refusal {
    let names: Vec<_> = missing.iter().map(ToString::to_string).collect();
    let way_out = format!(
        "{NOTHING_CHANGED} If a chart is meant to render to nothing, annotate {} with {MAY_RENDER_NOTHING}: {}",
        delivery.commit.profile(),
        names.join(",")
    );
    let sentence = format!("{left_out} {IN_THE_LOG}, and a chart that renders to nothing has no error.");
    Refusal::new(sentence, way_out).at("/spec/configurationItem")
}
