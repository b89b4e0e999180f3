//! The rule `remove-while-live`.

use super::case::DeclarationCase;
use super::group_commit::GroupCommit;
use crate::engine::rule::{FailsClosed, Mode, ReleaseOwner, Specification, UNPROCESSABLE};
use crate::engine::rules::check::{Check, CheckedAll, Refusal, Rule};

/// The rule `remove-while-live`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "remove-while-live",
        owners: &[ReleaseOwner::Sveltos],
        mode: Mode::Warn,
        status_code: UNPROCESSABLE,
        fails_closed: FailsClosed::Never,
        summary: "The Sveltos agent is told to remove everything only when the ClusterSummary is being deleted or gone.",
        why: "The action Remove deletes every release from the managed cluster while the profile still wants them there.",
        allowed: "The action Remove with sourceStatus Deleted, while the ClusterSummary is being deleted or after it is \
              gone.",
        refused: "The action Remove for a profile that still selects the cluster. Sveltos never sends it.",
        way_out: "Delete the profile, or change its selector so that it no longer selects the cluster. Sveltos then removes \
              what it deployed.",
        settings: &[],
    },
    checks: &[Check::Declaration(check)],
};

pub(crate) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    let commit = GroupCommit::of(case)?.filter(|commit| commit.group.removes() && !commit.group.is_teardown());
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
    let way_out = "Delete the profile, or change its selector so that it no longer selects the cluster. Sveltos then removes what it \
                   deployed.";
    Ok(vec![Refusal::new(sentence, way_out).at("/spec/action")])
}
