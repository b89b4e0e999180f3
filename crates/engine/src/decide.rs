//! The decision: the rules, their modes, and overrides.

mod review_failure;

use jiff::Timestamp;

pub use review_failure::{ReviewFailure, outcome_of_failure};

use super::effort::Effort;
use super::evidence::{Evidence, Query};
use super::facts::Facts;
use super::outcome::{WeighedViolation, weigh};
use super::overrides::apply_overrides;
use super::policy::{Policy, Scope};
use super::rule::Requests;
use super::rules;
use super::violation::{Violation, ViolationKind};

/// The next step of a decision.
#[derive(Debug)]
pub enum Step {
    /// A rule needs this information. Decide again with the answer.
    Ask(Query),
    /// The rules have decided.
    Done(Vec<WeighedViolation>),
}

/// Judges a request. Pure: the same arguments give the same step.
#[must_use]
pub fn decide(facts: &Facts<'_>, policy: &Policy, evidence: &Evidence, now: Timestamp) -> Step {
    let scope = policy.scope(facts);
    let judged = rules::check(facts, policy, &scope, evidence, now)
        .inspect(|violations| debug_assert!(violations.iter().all(|violation| is_of_its_requests(violation, &scope))))
        .map(|violations| {
            violations.into_iter().map(|violation| unavailable_as_overload(violation, facts.effort)).collect()
        })
        .map(|violations| weigh(policy, &scope, violations))
        .and_then(|judged| apply_overrides(facts, policy, evidence, now, judged));
    judged.map_or_else(Step::Ask, Step::Done)
}

/// Whether the violation is in a kind of request that its rule declares. `interlock policy check` relies on these declarations.
fn is_of_its_requests(violation: &Violation, scope: &Scope<'_>) -> bool {
    let Requests { operations, kinds } = &violation.rule.specification().requests;
    violation.kind.is_undecided()
        || operations.contains(&scope.operation) && (kinds.is_empty() || kinds.contains(&scope.kind))
}

/// After the budget is exhausted, unavailable data counts as overload, because the user's own request caused it.
fn unavailable_as_overload(violation: Violation, effort: &Effort) -> Violation {
    match violation.kind {
        ViolationKind::Unavailable if effort.was_exceeded() => {
            Violation { kind: ViolationKind::Overloaded, ..violation }
        }
        _ => violation,
    }
}
