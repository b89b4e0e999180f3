//! `remove-while-live`: the agent is told to remove everything only once the ClusterSummary is being deleted.
//!
//! Allowed: action Remove with sourceStatus Deleted, after the ClusterSummary is gone, or while it is being deleted.
//! Warned of: action Remove of a profile that still wants its releases on the cluster. Sveltos never does this.

use super::case::DeclarationCase;
use super::commit::Commit;
use crate::engine::rules::{Findings, Refusal};

pub(crate) fn check(case: &DeclarationCase<'_>) -> Findings {
    let commit = Commit::of(case)?.filter(|commit| commit.group.removes() && !commit.group.is_teardown());
    let Some(commit) = commit else {
        return Ok(Vec::new());
    };
    let live = commit.summary()?.is_some_and(|summary| summary.metadata.deletion_timestamp.is_none());
    if !live {
        return Ok(Vec::new());
    }
    let sentence = format!(
        "{} tells the agent to remove everything, though {} is not being deleted.",
        commit.subject(),
        commit.summary_name()
    );
    let way_out = "Delete the profile, or let it no longer select the cluster; Sveltos then removes what it deployed.";
    Ok(vec![Refusal::new(sentence, way_out).at("/spec/action")])
}
