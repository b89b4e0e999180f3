//! The one structured account of what happened to a review; log line, metrics and audit annotations are made of it.

use std::time::Duration;

use crate::facts::{Facts, Subject};
use crate::mode::Outcome;
use crate::policy::Mode;
use crate::release::ReleaseRef;
use crate::review::{Operation, Request};
use crate::rules::{Kind, RuleId};

/// What happened to one review. Never holds any of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Of the review.
    pub uid: String,
    /// What was asked for.
    pub operation: Operation,
    /// `secrets`, `deployments.apps/scale`.
    pub resource: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// From the request, or from the object in a collection delete.
    pub name: String,
    /// `userInfo.username`.
    pub user: String,
    /// The release concerned, where one is known.
    pub release: Option<ReleaseRef>,
    /// Whether the API server may go on.
    pub allowed: bool,
    /// Whether nothing would have been stored anyway.
    pub dry_run: bool,
    /// The rules that were broken or undecided.
    pub findings: Vec<DecisionFinding>,
    /// From the body's arrival to the verdict.
    pub took: Duration,
}

/// One rule in a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionFinding {
    /// Which rule.
    pub rule: RuleId,
    /// How the policy applies it.
    pub mode: Mode,
    /// Broken, or why it could not be decided.
    pub kind: Kind,
    /// Whether it refuses the request.
    pub refuses: bool,
    /// The places in the object that are concerned, as JSON pointers.
    pub pointers: Vec<String>,
    /// The sentence for the user.
    pub message: String,
}

impl DecisionFinding {
    /// Whether it could not be decided.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        self.kind != Kind::Refused
    }
}

impl Decision {
    /// The account of a judged request.
    #[must_use]
    pub fn of(request: &Request<'_>, facts: &Facts<'_>, outcome: &Outcome, took: Duration) -> Self {
        let target = facts.record().map(|(target, _)| target);
        let known = match (&facts.subject, facts.managed) {
            (Subject::Record(target, _), _) => Some(target.object.as_str()),
            (Subject::Part(part), _) => Some(part.name.as_str()),
            (_, Some(write)) => Some(write.name.as_str()),
            (Subject::Declaration(_) | Subject::Other, None) => None,
        };
        let name = request.name().or(known).unwrap_or_default();
        let disturbed = outcome.judged.iter().find_map(|judged| judged.violation.release.clone());
        let findings = outcome.judged.iter().map(|judged| DecisionFinding {
            rule: judged.violation.rule,
            mode: judged.mode,
            kind: judged.violation.kind,
            refuses: judged.refuses,
            pointers: judged.violation.pointers.clone(),
            message: judged.violation.message(),
        });
        Self {
            uid: request.uid.to_string(),
            operation: request.operation,
            resource: request.resource_name(),
            namespace: request.namespace().to_owned(),
            name: name.to_owned(),
            user: facts.actor.name.to_owned(),
            release: target.map(|target| ReleaseRef::new(&target.namespace, &target.release)).or(disturbed),
            allowed: outcome.allowed,
            dry_run: request.dry_run.unwrap_or_default(),
            findings: findings.collect(),
            took,
        }
    }
}
