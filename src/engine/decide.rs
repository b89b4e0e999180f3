//! The decision: the rules, their modes, and what overrides open.

use jiff::Timestamp;

use super::evidence::{Evidence, Query};
use super::facts::Facts;
use super::outcome::{WeighedViolation, weigh};
use super::overrides::relieve;
use super::policy::Policy;
use super::rule::RuleId;
use super::rules::{self, Family};
use super::violation::{Violation, ViolationKind};

/// The next step of a decision.
#[derive(Debug)]
pub enum Step {
    /// A rule needs to know this. Decide again with the answer.
    Ask(Query),
    /// The rules have decided.
    Done(Vec<WeighedViolation>),
}

/// Judges a request. Pure: the same arguments give the same step.
#[must_use]
pub fn decide(facts: &Facts<'_>, policy: &Policy, evidence: &Evidence, now: Timestamp) -> Step {
    let scope = policy.scope(facts);
    let judged = rules::check(facts, policy, &scope, evidence, now)
        .map(|violations| weigh(policy, &scope, violations))
        .and_then(|judged| relieve(facts, policy, evidence, now, judged));
    judged.map_or_else(Step::Ask, Step::Done)
}

/// The violations of a request about a record if there was no memory to read its body in time.
#[must_use]
pub fn overloaded(facts: &Facts<'_>, policy: &Policy) -> Vec<WeighedViolation> {
    let overloaded = |rule: RuleId| Violation {
        rule,
        kind: ViolationKind::Overloaded,
        sentence: "The record could not be read in time: too many large records are being checked.".to_owned(),
        way_out: "Try again.".to_owned(),
        pointers: Vec::new(),
        // No override helps: there is no time left to look for one.
        release: None,
        overridden: None,
    };
    weigh(policy, &policy.scope(facts), Family::Records.rules().map(overloaded).collect())
}
