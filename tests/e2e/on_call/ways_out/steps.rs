//! The ways out of a refusal, as the webhook's log has them: the API server passes on the text alone.

use std::time::Duration;

use interlock_engine::ways_out::StepKind;
use serde::Deserialize;

use crate::harness::eventually::eventually;
use crate::harness::plane::Plane;

/// Until the line of a decision is in the log.
const WRITTEN: Duration = Duration::from_secs(10);

/// One thing that a way out asks for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Step {
    pub(super) kind: StepKind,
    pub(super) text: String,
    pub(super) command: Option<String>,
    /// The end of a wait; without it, the wait is for the operation in flight.
    pub(super) when: Option<String>,
}

#[derive(Deserialize)]
struct Way {
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct OfRule {
    rule: String,
    ways: Vec<Way>,
}

/// The line of a decision.
#[derive(Deserialize)]
struct Line {
    reason: String,
    ways_out: Option<String>,
}

/// The ways out of a printed refusal by a rule: those of the newest decision whose message was printed.
#[track_caller]
pub(super) fn ways(plane: &Plane, printed: &str, rule: &str) -> Vec<Vec<Step>> {
    // A warning is printed in several lines, each with a prefix.
    let words = printed.split_whitespace().filter(|word| !["Warning:", "interlock:"].contains(word));
    let printed = words.collect::<Vec<_>>().join(" ");
    let ways = eventually(WRITTEN, "the decision is in the log", || {
        let log = plane.webhook().log();
        let decided = log.lines().rev().filter(|line| line.contains("\"decided\""));
        let mut lines = decided.filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let line = lines.find(|line| message(&line.reason, rule).is_some_and(|message| printed.contains(message)));
        let ways = line.and_then(|line| ways_of(&line.ways_out?, rule));
        ways.ok_or_else(|| format!("no decision by {rule} says this with a way out: {printed}"))
    });
    assert!(!ways.is_empty() && ways.iter().all(|way| !way.is_empty()), "{printed}");
    ways
}

/// The first message of a rule in the reason of a decision, without the name of the rule.
fn message<'r>(reason: &'r str, rule: &str) -> Option<&'r str> {
    let (before, _) = reason.split_once(&format!(" [{rule}]"))?;
    before.rsplit("] ").next()
}

fn ways_of(listed: &str, rule: &str) -> Option<Vec<Vec<Step>>> {
    let listed: Vec<OfRule> = serde_json::from_str(listed).unwrap_or_else(|error| panic!("{error}: {listed}"));
    let found = listed.into_iter().find(|found| found.rule == rule)?;
    let ways = found.ways.into_iter().map(|way| way.steps);
    Some(ways.filter(|steps| steps.iter().any(|step| step.kind != StepKind::Note)).collect())
}
