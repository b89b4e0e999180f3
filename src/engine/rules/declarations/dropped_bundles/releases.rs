//! Commits of charts.

use super::{AGAIN, Rollout, delivered, explained, listed, noun, required};
use crate::engine::evidence::ObjectKey;
use crate::engine::policy::Unexplained;
use crate::engine::rules::check::{CheckedAll, Refusal};
use crate::engine::rules::need::Need;
use crate::engine::rules::wording::{ENUMERATED, enumerated};
use crate::engine::sveltos::{self, MAY_RENDER_NOTHING, Profile, ReleaseRef};

/// How many errors of charts a message repeats.
const CAUSES: usize = 3;

/// A release is there if its last bundle is: a chart that could not be staged whole has the first ones only.
pub(super) fn check(rollout: &Rollout<'_>) -> CheckedAll {
    let required = required::releases(&rollout.summary);
    if required.is_empty() {
        return Ok(Vec::new());
    }
    let bundles = rollout.commit.bundles()?;
    let is_whole = |release: &ReleaseRef| bundles.iter().flatten().any(|it| it.deploys(release) && it.is_last);
    let missing: Vec<_> = required.into_iter().filter(|release| !is_whole(release)).collect();
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    rollout.expect_agent()?;
    // What has some bundles did not render to nothing.
    let is_begun = |release: &ReleaseRef| bundles.iter().flatten().any(|it| it.deploys(release));
    let is_failure = |release: &ReleaseRef| is_begun(release) || explained::by(&rollout.summary, release).is_some();
    let (failed, unexplained): (Vec<_>, Vec<_>) = missing.iter().cloned().partition(is_failure);
    let left_out = |missing: &[ReleaseRef]| {
        let name = |release: &ReleaseRef| {
            if is_begun(release) { format!("{release} (its last bundle)") } else { release.to_string() }
        };
        format!(
            "{} leaves out {} {}: the agent would remove what was delivered to cluster {}.",
            rollout.commit.subject(),
            noun(missing),
            enumerated(missing.iter().map(name), ENUMERATED),
            rollout.cluster()
        )
    };
    if delivered::any_release(rollout, &failed)? {
        return Ok(vec![failure(rollout, &left_out(&missing), &missing)]);
    }
    let unexplained = not_allowed(rollout, unexplained)?;
    if delivered::any_release(rollout, &unexplained)? {
        return match rollout.case.policy.rollouts.unexplained {
            Unexplained::Deny => Ok(vec![silence(rollout, &left_out(&unexplained), &unexplained)]),
            Unexplained::Warn => Err(Need::Unclear {
                why: format!("it has no bundle of {}, and no chart is reported as failed", listed(&unexplained)),
                way_out: "If a chart is meant to render to nothing, list its release in the annotation \
                          interlock.dev/may-render-nothing of the profile.",
            }),
        };
    }
    let never: Vec<_> = missing.into_iter().filter(|it| failed.contains(it) || unexplained.contains(it)).collect();
    if never.is_empty() { Ok(Vec::new()) } else { rollout.first_install(&listed(&never)) }
}

/// Leaves the releases of which nobody has said that they may render to nothing.
fn not_allowed(rollout: &Rollout<'_>, releases: Vec<ReleaseRef>) -> Result<Vec<ReleaseRef>, Need> {
    let left = explained::not_allowed_by_summary(&rollout.summary, &releases);
    let profile = &rollout.commit.group.spec.source_ref;
    if left.is_empty() || !matches!(profile.kind.as_ref(), "ClusterProfile" | "Profile") {
        return Ok(left);
    }
    let key = ObjectKey::new(sveltos::CONFIG, &profile.kind, &profile.namespace, &profile.name);
    let profile = rollout.case.read::<Profile<'_>>(key)?;
    Ok(profile.map_or_else(|| left.clone(), |profile| explained::not_allowed_by_profile(&profile, &left)))
}

/// Up to 1.7.0 the error of a chart is nowhere in the API.
const IN_THE_LOG: &str =
    "No chart is reported as failed: up to Sveltos 1.7.0 the error is only in the log of addon-controller";

/// What to say where charts failed.
fn failure(rollout: &Rollout<'_>, left_out: &str, missing: &[ReleaseRef]) -> Refusal {
    let mut causes: Vec<String> = Vec::new();
    for cause in missing.iter().filter_map(|release| explained::by(&rollout.summary, release)) {
        let cause = explained::told(cause);
        if causes.len() < CAUSES && !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    let causes = if causes.is_empty() { IN_THE_LOG.to_owned() } else { causes.join("; ") };
    let way_out = format!("{AGAIN} The commit is admitted once every chart renders.");
    Refusal::new(format!("{left_out} {causes}."), way_out).at("/spec/configurationItem")
}

/// What to say where nothing tells a chart that failed from one that renders to nothing.
fn silence(rollout: &Rollout<'_>, left_out: &str, missing: &[ReleaseRef]) -> Refusal {
    let names: Vec<_> = missing.iter().map(ToString::to_string).collect();
    let way_out = format!(
        "{AGAIN} If a chart is meant to render to nothing, annotate {} with {MAY_RENDER_NOTHING}: {}",
        rollout.commit.profile(),
        names.join(",")
    );
    let sentence = format!("{left_out} {IN_THE_LOG}, and a chart that renders to nothing has no error.");
    Refusal::new(sentence, way_out).at("/spec/configurationItem")
}
