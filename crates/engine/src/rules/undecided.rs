//! Why a rule is undecided, and its questions to the evidence.

use crate::effort::OverBudget;
use crate::evidence::question::Namespace;
use crate::evidence::{Answer, Evidence, Query, Question};
use crate::violation::ViolationKind;
use crate::ways_out::{Step, Way, WaysOut};

/// Why a rule is undecided: a query is missing, or the reason is final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Undecided {
    /// The rule needs this query answered first.
    Ask(Query),
    /// The query has no answer, for this reason.
    Unavailable(String),
    /// The answer is not enough for a decision.
    Unclear { why: String, way_out: &'static str },
    /// There are too many HelmReleases in the records' namespace, or they are too large. Their authors must not be able to
    /// disable the rule this way, so it refuses.
    HelmReleasesOverLimit(String),
    /// The rule needs more work than the budget of the review allows.
    OverBudget,
}

impl From<OverBudget> for Undecided {
    fn from(_: OverBudget) -> Self {
        Self::OverBudget
    }
}

impl Undecided {
    /// The world answered a different question.
    fn mismatched(query: &Query) -> Self {
        Self::Unavailable(format!("the answer to {} was of another kind", query.kind()))
    }

    /// Why the rule is undecided and what to do about it; or the query, if only its answer is missing.
    pub(crate) fn into_query_or_violation(self) -> Result<(ViolationKind, String, WaysOut), Query> {
        match self {
            Self::Ask(query) => Err(query),
            Self::Unavailable(why) => {
                let retry = Step::retry("try again once the API server answers");
                Ok((ViolationKind::Unavailable, why, retry.into()))
            }
            Self::Unclear { why, way_out } => Ok((ViolationKind::Unclear, why, way_out.into())),
            Self::HelmReleasesOverLimit(why) => {
                let act = "delete all HelmReleases but the one that manages the release, make that one smaller";
                Ok((ViolationKind::Refused, why, Way::from(act).then(Step::retry("try again")).into()))
            }
            Self::OverBudget => {
                let ways_out = WaysOut::from("make the object smaller").or(Step::release_override());
                Ok((ViolationKind::Unavailable, OverBudget.to_string(), ways_out))
            }
        }
    }
}

/// The answer to a question; `None` if the object does not exist.
pub(crate) fn ask<Q: Question>(evidence: &Evidence, question: Q) -> Result<Option<&Q::Answer>, Undecided> {
    let query = question.into();
    match evidence.get(&query) {
        None => Err(Undecided::Ask(query)),
        Some(Answer::Known(known)) => Q::read(known).map(Some).ok_or_else(|| Undecided::mismatched(&query)),
        Some(Answer::Absent) => Ok(None),
        Some(Answer::Unavailable(why)) => Err(Undecided::Unavailable(why.clone())),
    }
}

/// Takes a missing answer for nothing, where the decision does not depend on it. A question that was not asked yet is asked.
pub(crate) fn if_answered<T>(found: Result<Option<T>, Undecided>) -> Result<Option<T>, Undecided> {
    match found {
        Err(need @ Undecided::Ask(_)) => Err(need),
        found => Ok(found.ok().flatten()),
    }
}

/// The answer to a question that every cluster can answer. `what` names the subject in the message about a missing answer.
pub(crate) fn ask_for<'e, Q: Question>(
    evidence: &'e Evidence,
    question: Q,
    what: &str,
) -> Result<&'e Q::Answer, Undecided> {
    ask(evidence, question)?.ok_or_else(|| Undecided::Unavailable(format!("{what} could not be read")))
}

/// Whether a namespace is being deleted.
pub(crate) fn is_terminating(evidence: &Evidence, namespace: &str) -> Result<bool, Undecided> {
    let found = ask(evidence, Namespace { name: namespace.to_owned() })?;
    Ok(found.is_some_and(|namespace| namespace.terminating))
}

/// Whether a namespace is annotated as protected.
pub(crate) fn is_protected_namespace(evidence: &Evidence, namespace: &str) -> Result<bool, Undecided> {
    let found = ask(evidence, Namespace { name: namespace.to_owned() })?;
    Ok(found.is_some_and(|namespace| namespace.protected))
}
