//! Writes of declarations with which an owner starts an operation. The owner tries a refused one again, or a person does.

use super::standing::{stops_something, stored, ways_out};
use crate::owners;
use crate::policy::in_force;
use crate::rules::check::{CheckedAll, Refusal};
use crate::rules::declarations::case::DeclarationCase;

pub(super) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    let actor = case.facts.actor;
    if !owners::rules::may_start_operation(case) {
        return Ok(Vec::new());
    }
    let stored = stored(case.evidence)?;
    if !stops_something(case.policy, stored, actor, case.now) {
        return Ok(Vec::new());
    }
    let Some(started) = owners::rules::started_operation(case)? else {
        return Ok(Vec::new());
    };
    let mut names = started.frozen_as.iter();
    let active = names.find_map(|release| in_force(case.policy.all_freezes(stored), release, actor, case.now));
    let Some(active) = active else { return Ok(Vec::new()) };
    let sentence = format!("{}: {}.", started.sentence, active.sentence());
    Ok(vec![Refusal::new(sentence, ways_out(active)).about(started.release).in_freeze(active)])
}
