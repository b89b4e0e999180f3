//! The rule `remove-while-live`.

use super::group_commit::GroupCommit;
use crate::owners::sveltos;
use crate::owners::sveltos::CONFIGURATION_GROUP;
use crate::review::Operation;
use crate::rule::{FailsClosed, Mode, Requests, Specification, UNPROCESSABLE};
use crate::rules::check::{Check, CheckedAll, Rule, WaysOut};
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
        summary: "A commit of Sveltos removes everything only when the ClusterSummary is being deleted or gone.",
        why: "The action Remove deletes every release from the managed cluster while the profile still wants them there.",
        allowed: "The action Remove while the ClusterSummary is being deleted, or after it is gone.",
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
    let Some(live) = commit.summary()?.filter(|commit| !commit.is_being_deleted()) else {
        return Ok(Vec::new());
    };
    let sentence = format!(
        "{} tells the agent to remove everything, though {} is not being deleted.",
        live.subject(),
        live.summary_name()
    );
    let ways_out = WaysOut::from("delete the profile")
        .or("change its selector so that it no longer selects the cluster")
        .note("Sveltos then removes what it deployed.");
    Ok(vec![live.refusal(sentence, ways_out).at("/spec/action")])
}
