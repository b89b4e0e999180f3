//! The rule `remove-while-live`.

use super::group_commit::{GroupCommit, SummaryCommit};
use crate::owners::sveltos;
use crate::owners::sveltos::CONFIGURATION_GROUP;
use crate::review::Operation;
use crate::rule::{FailsClosed, Mode, Requests, Specification, UNPROCESSABLE};
use crate::rules::check::{Check, CheckedAll, Refusal, Rule, WaysOut};
use crate::rules::declarations::case::DeclarationCase;

/// The rule `remove-while-live`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "remove-while-live",
        owners: &[sveltos::NAME],
        mode: Mode::Enforce,
        status_code: UNPROCESSABLE,
        fails_closed: FailsClosed::Never,
        requests: Requests { operations: &[Operation::Create, Operation::Update], kinds: &[CONFIGURATION_GROUP] },
        summary: "The action Remove in a commit of Sveltos waits until the ClusterSummary is being deleted or gone.",
        why: "The action Remove deletes every release from the managed cluster while the profile still wants them there.",
        allowed: "The action Remove while the ClusterSummary is being deleted. By a manager also after it is gone.",
        refused: "The action Remove for a profile that still selects the cluster, also with sourceStatus Deleted. Sveltos \
              never sends it.",
        way_out: "Delete the profile, or change its selector so that it no longer selects the cluster. Sveltos then removes \
              what it deployed.",
        settings: &[],
    },
    checks: &[Check::Declaration(check)],
};

pub(crate) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    let Some(commit) = GroupCommit::of(case)?.filter(|commit| commit.group.removes()) else {
        return Ok(Vec::new());
    };
    match commit.summary()? {
        Some(live) if live.is_being_deleted() => Ok(Vec::new()),
        Some(live) => Ok(vec![of_live(&commit, &live)]),
        // Sveltos itself removes while the ClusterSummary still exists, and knows best whether one is gone.
        None if case.policy.is_manager_or_tool(case.facts.actor.name) => Ok(Vec::new()),
        None => Ok(vec![without_summary(&commit, case)]),
    }
}

fn of_live(commit: &GroupCommit<'_>, live: &SummaryCommit<'_>) -> Refusal {
    let what = if commit.leaves_behind() { "to manage nothing any more" } else { "to remove everything" };
    let sentence =
        format!("{} tells the agent {what}, though {} is not being deleted.", live.subject(), live.summary_name());
    let ways_out = WaysOut::from("delete the profile")
        .or("change its selector so that it no longer selects the cluster")
        .note("Sveltos then removes what it deployed.");
    live.refusal(sentence, ways_out).at("/spec/action")
}

/// The refusal of a removal by somebody else than Sveltos, without the ClusterSummary that would show whether it is meant.
fn without_summary(commit: &GroupCommit<'_>, case: &DeclarationCase<'_>) -> Refusal {
    let sentence = format!(
        "{} tells the agent to remove everything, and no ClusterSummary shows that the profile was withdrawn: {}.",
        case.subject(),
        commit.lacks_summary()
    );
    let ways_out =
        WaysOut::from("delete the profile, or delete the cluster in Sveltos: it then writes the group itself");
    Refusal::new(sentence, ways_out).at("/spec/action")
}
