//! The releases that were delivered and that a commit no longer contains, because the profile does not want them any more.
//!
//! While something that the profile wants is missing, they stay: what is missing may replace them. Two kinds go all the same: a chart
//! with the action Uninstall, unless a missing one is the same chart under another name, and a release that people name in an
//! annotation.

use std::collections::{HashMap, HashSet};

use super::annotation;
use super::delivered;
use super::delivery::{Delivery, listed};
use super::staged::Staged;
use crate::object::ALLOW_REMOVAL;
use crate::owners::sveltos::{HelmChart, RemoteRelease};
use crate::rules::check::{Refusal, WaysOut};
use crate::rules::undecided::Undecided;

/// The delivered releases that can belong to these charts, but for the required ones.
pub(super) fn of_charts(
    delivery: &Delivery<'_, '_>,
    charts: &[&HelmChart<'_>],
    required: &[RemoteRelease],
) -> Result<Vec<RemoteRelease>, Undecided> {
    if charts.is_empty() {
        return Ok(Vec::new());
    }
    let required: HashSet<_> = required.iter().collect();
    let delivered = delivered::releases(delivery, |release| !required.contains(release))?;
    delivery.case.pay_for_pairs(delivered.len(), charts.len())?;
    Ok(delivered.into_iter().filter(|release| charts.iter().any(|chart| chart.can_be(release))).collect())
}

/// The refusal of a commit that lacks some of the required releases, or a chart of unknown name, if a release would go that is not
/// required.
pub(super) fn check(
    delivery: &Delivery<'_, '_>,
    staged: &HashMap<&RemoteRelease, Staged>,
    required: &HashSet<RemoteRelease>,
    missing: &[RemoteRelease],
) -> Result<Option<Refusal>, Undecided> {
    let goes = |release: &RemoteRelease| !staged.contains_key(release) && !required.contains(release);
    let mut going: Vec<_> = delivered::releases(delivery, goes)?.into_iter().collect();
    let charts = delivery.summary().spec.cluster_profile_spec.helm_charts.len();
    delivery.case.pay_for_pairs(going.len(), charts * (1 + missing.len()))?;
    going.retain(|release| !is_asked_for(delivery, release, missing));
    let going = annotation::not_named(delivery, ALLOW_REMOVAL, going)?;
    if going.is_empty() {
        return Ok(None);
    }
    let lacks = match missing {
        [] => "a chart is not staged".to_owned(),
        missing => format!("{} {} not staged", listed(missing), if missing.len() == 1 { "is" } else { "are" }),
    };
    let sentence = format!(
        "{} no longer contains {}, while {lacks}: {}, and what replaces it may be missing.",
        delivery.of_summary.subject(),
        listed(&going),
        delivery.consequence(),
    );
    let annotate = annotation::step(delivery, ALLOW_REMOVAL, &going)?;
    let ways_out = WaysOut::from("the commit is admitted once every chart renders")
        .when("if nothing that is missing replaces it", annotate);
    Ok(Some(delivery.refusal(sentence, ways_out)))
}

/// Whether the profile says by name that a release must go, and no missing release replaces it.
fn is_asked_for(delivery: &Delivery<'_, '_>, release: &RemoteRelease, missing: &[RemoteRelease]) -> bool {
    let charts = &delivery.summary().spec.cluster_profile_spec.helm_charts;
    let (uninstalled, kept): (Vec<_>, Vec<_>) = charts.iter().partition(|chart| chart.uninstalls());
    let mut asked = uninstalled.iter().filter(|chart| chart.can_be(release)).peekable();
    if asked.peek().is_none() || kept.iter().any(|chart| chart.can_be(release)) {
        return false;
    }
    let replacing = || kept.iter().filter(|chart| missing.iter().any(|missing| chart.can_be(missing)));
    !asked.any(|chart| replacing().any(|other| other.is_chart_of(chart)))
}
