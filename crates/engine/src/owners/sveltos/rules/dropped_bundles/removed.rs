//! The releases that a commit removes from the cluster, even if the profile still wants them.

use std::collections::{BTreeSet, HashMap};

use super::delivery::Delivery;
use super::{delivered, staged};
use crate::owners::sveltos::rules::group_commit::GroupCommit;
use crate::owners::sveltos::{Feature, RemoteRelease};
use crate::release::ReleaseRef;
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::undecided::Undecided;

/// The releases that a commit removes.
pub(crate) struct RemovedReleases {
    /// The commit, as overrides name it.
    pub(crate) commit: ReleaseRef,
    /// The commit, for the start of a sentence.
    pub(crate) subject: String,
    /// `civ/prod`.
    pub(crate) cluster: String,
    /// `ClusterProfile shop`.
    pub(crate) profile: String,
    /// Whether the profile wants nothing on the cluster any more.
    pub(crate) is_withdrawn: bool,
    pub(crate) releases: BTreeSet<RemoteRelease>,
}

/// Those releases with a wanted name that the profile delivered and the request's commit does not contain; `None` if there are
/// none.
pub(crate) fn releases(
    case: &DeclarationCase<'_>,
    is_asked_for: impl Fn(&RemoteRelease) -> bool,
) -> Result<Option<RemovedReleases>, Undecided> {
    let commit = GroupCommit::removing_or_delivering(case)?;
    let Some(commit) = commit.filter(|commit| commit.features().contains(&Feature::Helm) && !commit.leaves_behind())
    else {
        return Ok(None);
    };
    let Some(of_summary) = commit.summary()? else {
        return Ok(None);
    };
    let delivery = Delivery { case, commit: &commit, of_summary: &of_summary, feature: Feature::Helm };
    let mut releases = delivered::releases(&delivery, is_asked_for)?;
    if !commit.group.removes() && !releases.is_empty() {
        let staged: HashMap<_, _> = staged::by_release(commit.bundles()?.iter().flatten());
        releases.retain(|release| !staged.contains_key(release));
    }
    if releases.is_empty() {
        return Ok(None);
    }
    delivery.expect_agent()?;
    Ok(Some(RemovedReleases {
        commit: of_summary.release(),
        subject: of_summary.subject(),
        cluster: delivery.cluster(),
        profile: of_summary.profile_name(),
        is_withdrawn: of_summary.is_being_deleted(),
        releases,
    }))
}
