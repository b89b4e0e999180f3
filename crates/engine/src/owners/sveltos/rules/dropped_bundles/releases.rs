//! Commits of charts.

use std::collections::{HashMap, HashSet};

use super::delivery::{Delivery, listed, noun};
use super::explained::Walk;
use super::staged::Staged;
use super::{annotation, delivered, departing, explained, required, staged};
use crate::owners::sveltos::{HelmReleaseSummary, MAY_RENDER_NOTHING, RemoteRelease};
use crate::policy::OnUnexplained;
use crate::rules::check::{CheckedAll, Refusal, WaysOut};
use crate::rules::undecided::Undecided;
use crate::rules::wording::{MAX_ENUMERATED, enumerated};

/// The maximum number of failed charts in a message.
const MAX_CAUSES: usize = 3;

/// A release is complete if it has its last bundle, and all bundles with lower numbers. A chart that was only partly staged lacks
/// the rest.
pub(super) fn check(delivery: &Delivery<'_, '_>) -> CheckedAll {
    // The ClusterSummary is searched a few times for each chart and each entry.
    let summary = delivery.summary();
    let entries = summary.spec.cluster_profile_spec.helm_charts.len() + summary.releases().len();
    delivery.case.pay_for_pairs(entries, 4 * entries)?;
    let mut required = required::releases(summary);
    let nameless = required::charts_without_entry(summary);
    if required.is_empty() && nameless.is_empty() {
        return Ok(Vec::new());
    }
    let staged = staged::by_release(delivery.commit.bundles()?.iter().flatten());
    let nameless = required::unstaged(&nameless, &required, &staged);
    required.extend(departing::of_charts(delivery, &nameless, &required)?);
    let is_missing = |release: &&RemoteRelease| !staged.get(release).is_some_and(Staged::is_complete);
    let missing: Vec<_> = required.iter().filter(is_missing).cloned().collect();
    if missing.is_empty() && nameless.is_empty() {
        return Ok(Vec::new());
    }
    delivery.expect_agent()?;
    let missing = match lost(delivery, &staged, missing)? {
        Missing::Lost(refusal) => return Ok(vec![refusal]),
        Missing::NeverDelivered(missing) => missing,
    };
    if missing.is_empty() && nameless.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(refusal) = departing::check(delivery, &staged, &required.into_iter().collect(), &missing)? {
        return Ok(vec![refusal]);
    }
    if missing.is_empty() { Ok(Vec::new()) } else { delivery.first_install(&listed(&missing)) }
}

/// The missing releases of a commit.
enum Missing {
    /// The refusal, because one of them was delivered.
    Lost(Refusal),
    /// None was delivered. Without those that may render to nothing.
    NeverDelivered(Vec<RemoteRelease>),
}

fn lost(
    delivery: &Delivery<'_, '_>,
    staged: &HashMap<&RemoteRelease, Staged>,
    missing: Vec<RemoteRelease>,
) -> Result<Missing, Undecided> {
    // A release with some bundles did not render to nothing.
    let is_begun = |release: &RemoteRelease| staged.contains_key(release);
    let walk = Walk::of(delivery.summary());
    let is_failure = |release: &RemoteRelease| is_begun(release) || walk.explains(release).is_some();
    let (failed, unexplained): (Vec<_>, Vec<_>) = missing.iter().cloned().partition(is_failure);
    if delivered::any_release(delivery, &failed)? {
        let meant = annotation::not_named_anyway(delivery, MAY_RENDER_NOTHING, unexplained)?;
        let meant: HashSet<_> = failed.into_iter().chain(meant).collect();
        let missing: Vec<_> = missing.into_iter().filter(|release| meant.contains(release)).collect();
        return Ok(Missing::Lost(failure(delivery, &walk, &left_out(delivery, staged, &missing), &missing)));
    }
    let unexplained = annotation::not_named(delivery, MAY_RENDER_NOTHING, unexplained)?;
    if delivered::any_release(delivery, &unexplained)? {
        return match delivery.case.policy.dropped_bundles.unexplained {
            OnUnexplained::Deny => {
                Ok(Missing::Lost(silence(delivery, &left_out(delivery, staged, &unexplained), &unexplained)?))
            }
            OnUnexplained::Warn => Err(Undecided::Unclear {
                why: format!("it has no bundle of {}, and no chart is reported as failed", listed(&unexplained)),
                way_out: "If a chart is meant to render to nothing, list its release in the annotation \
                          interlock.dev/may-render-nothing of the profile.",
            }),
        };
    }
    let wanted: HashSet<_> = failed.iter().chain(&unexplained).collect();
    Ok(Missing::NeverDelivered(missing.iter().filter(|release| wanted.contains(release)).cloned().collect()))
}

/// What a commit leaves out.
fn left_out(
    delivery: &Delivery<'_, '_>,
    staged: &HashMap<&RemoteRelease, Staged>,
    missing: &[RemoteRelease],
) -> String {
    let name = |release: &RemoteRelease| {
        let lacks = staged.get(release).map(|staged| format!(" ({})", staged.lacks()));
        format!("{release}{}", lacks.unwrap_or_default())
    };
    format!(
        "{} leaves out {} {}: {}.",
        delivery.of_summary.subject(),
        noun(missing),
        enumerated(missing.iter().map(name), MAX_ENUMERATED),
        delivery.consequence()
    )
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
fn silence(delivery: &Delivery<'_, '_>, left_out: &str, missing: &[RemoteRelease]) -> Result<Refusal, Undecided> {
    let annotate = annotation::step(delivery, MAY_RENDER_NOTHING, missing)?;
    let ways_out = WaysOut::default().when("if a chart is meant to render to nothing", annotate);
    let sentence = format!("{left_out} {IN_THE_LOG}, and a chart that renders to nothing has no error.");
    Ok(delivery.refusal(sentence, ways_out))
}
