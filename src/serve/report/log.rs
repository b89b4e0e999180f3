//! One log line for each decision, at level debug if it is to admit the write and no rule has a finding: metrics count these, and on a busy
//! cluster nearly all are such. The line contains no data of the object, because
//! objects include Secrets. Its texts come from a [`Decision`], so they are printable and bounded. The line has at most 16 KiB before the log
//! format escapes quotes.
//!
//! - `verdict`: the answer to the API server
//! - `rules`: the mode of each rule, as `manual-edit=audit`, and the reason if the rule was undecided, as `(late)`
//! - `ways_out`: what the user can do about each finding, as JSON; see `interlock_engine::ways_out`
//! - `overridden`, `ticket`: the overrides that were used, and their tickets
//! - `repeated`: a review that the API server sent again, which is counted nowhere else
//!
//! Keys for which OpenTelemetry has a name have that name: `k8s.namespace.name`, `user.name`. The cluster's name is on every line of the log.
//!
//! A change of the status of a record has a second line, `transition`: a contract for programs, see `docs/changes.md`.

use interlock_engine::decision::{Decision, DecisionFinding, Transition, TransitionOutcome};
use interlock_engine::release::Status;
use interlock_engine::text::{MAX_MESSAGE_BYTES, into_printable};
use interlock_engine::ways_out::to_json;

/// The longest list of rules, in bytes.
const MAX_LIST_BYTES: usize = 1024;

/// A macro, because the level must be known at compile time. Nothing is computed if the level is off.
macro_rules! line {
    ($level:ident, $decision:expr, $repeated:expr) => {{
        let decision = $decision;
        tracing::$level!(
            uid = decision.uid,
            operation = decision.operation.as_str(),
            resource = decision.resource,
            k8s.namespace.name = decision.namespace,
            name = decision.name,
            user.name = decision.user,
            release = decision.release.as_ref().map(ToString::to_string).unwrap_or_default(),
            verdict = if decision.allowed { "allowed" } else { "denied" },
            rules = rules(decision),
            reason = reason(decision),
            ways_out = ways_out(decision),
            overridden = decision.overrides(),
            ticket = decision.tickets(),
            dry_run = decision.dry_run,
            repeated = $repeated,
            micros = u64::try_from(decision.took.as_micros()).unwrap_or(u64::MAX),
            "decided"
        );
    }};
}

/// Writes the lines. `repeated` says whether the API server sent the same request a moment ago. A denial is not an error of Interlock, so its level is info too.
pub(super) fn write(decision: &Decision, repeated: bool) {
    let is_news = !decision.allowed || !decision.findings.is_empty() || decision.objection.is_some();
    if is_news {
        line!(info, decision, repeated);
    } else {
        line!(debug, decision, repeated);
    }
    if let Some(transition) = decision.transition.as_deref().filter(|_| !repeated) {
        write_transition(decision, transition);
    }
}

/// Writes the line of a transition. Unknown fields are absent.
fn write_transition(decision: &Decision, transition: &Transition) {
    tracing::info!(
        transition = transition.kind.as_str(),
        outcome = TransitionOutcome::of(decision).as_str(),
        time = format!("{:.3}", transition.time),
        uid = decision.uid,
        user.name = decision.user,
        groups = transition.groups.to_json(),
        omitted_groups = Some(transition.groups.omitted()).filter(|omitted| *omitted > 0),
        storage = transition.storage,
        release = decision.release.as_ref().map(ToString::to_string),
        revision = transition.revision.map(|revision| revision.0),
        from = transition.from.map(Status::as_str),
        to = transition.to.map(Status::as_str),
        chart = transition.chart,
        seconds = transition.seconds,
        holder = transition.holder,
        "override" = non_empty(decision.overrides()),
        ticket = non_empty(decision.tickets()),
        freeze = transition.freeze,
        "transition"
    );
}

fn non_empty(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn rules(decision: &Decision) -> String {
    into_printable(decision.findings.iter().map(rule).collect::<Vec<_>>().join(","), MAX_LIST_BYTES)
}

fn reason(decision: &Decision) -> String {
    let messages = decision.findings.iter().map(|finding| finding.message.as_str());
    into_printable(messages.chain(decision.objection.as_deref()).collect::<Vec<_>>().join(" "), MAX_MESSAGE_BYTES)
}

fn ways_out(decision: &Decision) -> Option<String> {
    to_json(decision.findings.iter().map(|finding| (finding.rule.as_str(), &finding.ways_out)), 4 * MAX_LIST_BYTES)
}

fn rule(finding: &DecisionFinding) -> String {
    let undecided = if finding.is_undecided() { format!("({})", finding.kind.as_str()) } else { String::new() };
    format!("{}={}{undecided}", finding.rule, finding.mode.as_str())
}

#[cfg(test)]
mod tests {
    use interlock_engine::decision::fixtures::finding;
    use interlock_engine::rule::{Mode, RuleId};
    use interlock_engine::violation::ViolationKind as Kind;

    use super::*;

    #[test]
    fn a_rule_is_logged_with_its_mode_and_undecided_reason() {
        let plain = finding(RuleId::known("manual-edit"), Mode::Audit);
        assert_eq!(rule(&plain), "manual-edit=audit");
        assert_eq!(rule(&DecisionFinding { kind: Kind::Late, ..plain }), "manual-edit=audit(late)");
    }
}
