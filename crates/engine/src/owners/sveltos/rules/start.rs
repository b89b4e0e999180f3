//! Commits, with which the agent of a managed cluster starts to deploy or to remove something.

use super::group_commit::GroupCommit;
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::freeze::started::StartedOperation;
use crate::rules::undecided::Undecided;

/// Whether a write is such a commit, without a question.
pub(crate) fn may_start(case: &DeclarationCase<'_>) -> bool {
    GroupCommit::removing_or_delivering(case).is_ok_and(|commit| commit.is_some())
}

pub(crate) fn started(case: &DeclarationCase<'_>) -> Result<Option<StartedOperation>, Undecided> {
    let Some(commit) = GroupCommit::removing_or_delivering(case)? else {
        return Ok(None);
    };
    let Some(of_summary) = commit.summary()? else {
        return Ok(None);
    };
    let release = of_summary.release();
    let sentence = format!("{} would change cluster {}", of_summary.subject(), of_summary.summary.cluster());
    Ok(Some(StartedOperation { frozen_as: vec![release.clone()], release, sentence }))
}
