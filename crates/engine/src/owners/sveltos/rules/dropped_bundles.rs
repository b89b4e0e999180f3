//! The rule `dropped-bundles`.
//!
//! The agent removes what an earlier commit delivered and this one does not list. If a chart fails, addon-controller up to 1.8.0
//! commits only the bundles that it has.
//!
//! The rule checks the completeness of each release, not the difference to an earlier commit: between rollouts there is no
//! earlier group, a complete chart may have fewer bundles than before, and an empty list is correct after the last chart was
//! removed. A release that lacks one of its bundles is incomplete. So is a commit that lacks the bundle of a required reference.
//!
//! As long as something that the profile wants is missing, nothing that was delivered may go either: a failed chart may be the
//! replacement of one that was taken out in the same edit. Sveltos does not commit then, since version 1.9.0.
//!
//! Not covered: if another profile manages the only chart of a profile, the profile correctly commits an empty list. Whether the
//! agent then leaves the release to its new owner depends on the marks of its objects.

mod annotation;
mod delivered;
mod delivery;
mod departing;
mod explained;
mod releases;
pub(crate) mod removed;
mod required;
mod sources;
mod staged;

use super::group_commit::GroupCommit;
use crate::owners::sveltos;
use crate::owners::sveltos::CONFIGURATION_GROUP;
use crate::owners::sveltos::Feature;
use crate::review::Operation;
use crate::rule::{FailsClosed, Mode, Requests, Specification, UNPROCESSABLE};
use crate::rules::check::{Check, CheckedAll, Rule};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::undecided::Undecided;
use delivery::Delivery;

/// The rule `dropped-bundles`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "dropped-bundles",
        owners: &[sveltos::NAME],
        mode: Mode::Enforce,
        status_code: UNPROCESSABLE,
        fails_closed: FailsClosed::Always,
        requests: Requests { operations: &[Operation::Create, Operation::Update], kinds: &[CONFIGURATION_GROUP] },
        summary: "A commit of Sveltos drops nothing that was delivered and is still wanted.",
        why: "The agent removes what a commit no longer names, and addon-controller up to 1.8.0 commits an incomplete \
              list when a chart fails to stage.",
        allowed: "An upgrade to fewer bundles; a chart that was removed from the profile; a first install that is \
              incomplete; a chart with the action Uninstall, whatever else fails, unless the profile has its chart under another \
              name.",
        refused: "A ConfigurationGroup without any item after the first chart failed; one without the old release while the \
              chart that replaces it fails; one with sourceStatus Deleted though the ClusterSummary is not being deleted.",
        way_out: "Repair what failed to stage. If two profiles contest a release, take the chart out of one profile. If a chart \
              renders to nothing on purpose, name its release in the annotation interlock.dev/may-render-nothing. For a \
              release that may go before the rest is complete, name it in interlock.dev/allow-removal. An \
              override names the ClusterSummary and the feature, as in shop-sveltos-prod.helm.",
        settings: &["unexplained", "firstInstall"],
    },
    checks: &[Check::Declaration(check)],
};

pub(crate) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    let Some(commit) = GroupCommit::delivering(case)? else {
        return Ok(Vec::new());
    };
    let Some(of_summary) = commit.summary()? else {
        // After a teardown, the ClusterSummary may no longer exist.
        if commit.group.is_teardown() {
            return Ok(Vec::new());
        }
        let why = commit.unknown();
        return Err(Undecided::Unclear { why, way_out: "Let addon-controller write ConfigurationGroups." });
    };
    if of_summary.is_being_deleted() {
        return Ok(Vec::new());
    }
    if commit.features().is_empty() {
        let why = "it is of a feature that Interlock does not know".to_owned();
        return Err(Undecided::Unclear { why, way_out: "Update Interlock, or switch the rule off." });
    }
    let mut refusals = Vec::new();
    for feature in commit.features() {
        let delivery = Delivery { case, commit: &commit, of_summary: &of_summary, feature };
        refusals.extend(match feature {
            Feature::Helm => releases::check(&delivery)?,
            Feature::Resources => sources::check(&delivery, &of_summary.summary.spec.cluster_profile_spec.policy_refs)?,
            Feature::Kustomize => {
                sources::check(&delivery, &of_summary.summary.spec.cluster_profile_spec.kustomization_refs)?
            }
        });
    }
    Ok(refusals)
}
