//! The webhook's decisions, read from its log.

use serde::Deserialize;

use crate::harness::namespace::Namespace;

#[derive(Debug, Deserialize)]
pub(crate) struct Decision {
    pub(crate) operation: String,
    pub(crate) resource: String,
    #[serde(rename = "k8s.namespace.name")]
    namespace: String,
    pub(crate) name: String,
    #[serde(rename = "user.name")]
    pub(crate) user: String,
    pub(crate) verdict: String,
    /// For example `manual-edit=audit`, for every rule with a finding.
    pub(crate) rules: String,
    pub(crate) reason: String,
    pub(crate) dry_run: bool,
    /// The API server repeated the review.
    pub(crate) repeated: bool,
}

/// Every decision about a namespace, and about cluster-scoped objects whose names contain the namespace's.
#[track_caller]
pub(crate) fn decisions(namespace: &Namespace<'_>) -> Vec<Decision> {
    let log = namespace.plane().webhook().log();
    // The last line may be half written.
    let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let decided = whole.lines().filter(|line| line.contains("\"decided\"") && line.contains(namespace.name()));
    let read = |line: &str| match serde_json::from_str::<Decision>(line) {
        Ok(decision) => decision,
        Err(error) => panic!("expected a decision: {error}\n{line}"),
    };
    let ours = |decision: &Decision| {
        decision.namespace == namespace.name()
            || (decision.namespace.is_empty() && decision.name.contains(namespace.name()))
    };
    decided.map(read).filter(ours).collect()
}

/// The decisions about other users in which a rule has a finding, even in a mode that admits.
#[track_caller]
pub(crate) fn findings_of_others(namespace: &Namespace<'_>, culprits: &[&str]) -> Vec<Decision> {
    let decisions = decisions(namespace);
    assert!(!decisions.is_empty(), "the webhook was not asked about {}", namespace.name());
    let of_others = decisions.into_iter().filter(|decision| !culprits.contains(&decision.user.as_str()));
    of_others.filter(|decision| decision.verdict != "allowed" || !decision.rules.is_empty()).collect()
}

/// No rule has a finding about any other user, not even in a mode that admits.
#[track_caller]
pub(crate) fn expect_findings_only_of(namespace: &Namespace<'_>, culprits: &[&str]) {
    let found: Vec<_> =
        findings_of_others(namespace, culprits).iter().map(|decision| format!("{decision:?}")).collect();
    assert!(found.is_empty(), "expected no finding\n{}", found.join("\n"));
}
