//! One log line a decision. Never any of the object: objects include Secrets.

use super::Decision;

/// Writes the line. A denial is not an error of ours.
pub(super) fn write(decision: &Decision) {
    let list =
        |of: fn(&super::DecisionFinding) -> String| decision.findings.iter().map(of).collect::<Vec<_>>().join(",");
    let rules = list(|finding| {
        let undecided = if finding.is_undecided() { "(undecided)" } else { "" };
        format!("{}={}{undecided}", finding.rule, finding.mode.as_str())
    });
    tracing::info!(
        uid = decision.uid,
        operation = decision.operation.as_str(),
        resource = decision.resource,
        namespace = decision.namespace,
        name = decision.name,
        user = decision.user,
        release = decision.release.as_ref().map(ToString::to_string).unwrap_or_default(),
        verdict = if decision.allowed { "allowed" } else { "denied" },
        rules,
        reason = decision.findings.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join(" "),
        dry_run = decision.dry_run,
        micros = u64::try_from(decision.took.as_micros()).unwrap_or(u64::MAX),
        "decided"
    );
}
