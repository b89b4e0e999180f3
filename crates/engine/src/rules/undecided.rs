//! Why a rule is undecided, and lookups in the evidence.

use crate::effort::OverBudget;
use crate::evidence::{Answer, Evidence, Knowledge, Query};
use crate::object::ObjectKey;
use crate::violation::ViolationKind;

/// Why a rule is undecided: not yet, or for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Undecided {
    /// The rule needs this query answered first.
    Ask(Query),
    /// The query has no answer, for this reason.
    Unavailable(String),
    /// The answer does not decide the rule.
    Unclear { why: String, way_out: &'static str },
    /// The HelmReleases beside the records are too many or too large to be read, for this reason. Whoever writes them must not open the
    /// guard, so the rule refuses.
    HelmReleasesOverLimit(String),
    /// The rule takes more work than the review has left.
    OverBudget,
}

impl From<OverBudget> for Undecided {
    fn from(_: OverBudget) -> Self {
        Self::OverBudget
    }
}

impl Undecided {
    /// Why the rule is undecided and what to do about it; the query, if only its answer is missing.
    pub(crate) fn reason(self) -> Result<(ViolationKind, String, &'static str), Query> {
        match self {
            Self::Ask(query) => Err(query),
            Self::Unavailable(why) => Ok((ViolationKind::Unavailable, why, "Try again once the API server answers.")),
            Self::Unclear { why, way_out } => Ok((ViolationKind::Unclear, why, way_out)),
            Self::HelmReleasesOverLimit(why) => {
                let way_out = "Delete all HelmReleases but the one that manages the release, make that one smaller, and try again.";
                Ok((ViolationKind::Refused, why, way_out))
            }
            Self::OverBudget => {
                let way_out = "Make the object smaller, or ask for a ReleaseOverride.";
                Ok((ViolationKind::Unavailable, OverBudget.to_string(), way_out))
            }
        }
    }
}

/// The answer to a query; `None` if the object does not exist.
pub(crate) fn lookup(evidence: &Evidence, query: Query) -> Result<Option<&Knowledge>, Undecided> {
    match evidence.get(&query) {
        None => Err(Undecided::Ask(query)),
        Some(Answer::Known(knowledge)) => Ok(Some(knowledge)),
        Some(Answer::Absent) => Ok(None),
        Some(Answer::Unavailable(why)) => Err(Undecided::Unavailable(why.clone())),
    }
}

/// The JSON text of an object; `None` if it does not exist.
pub(crate) fn lookup_object(evidence: &Evidence, key: ObjectKey) -> Result<Option<&str>, Undecided> {
    match lookup(evidence, Query::Object(key))? {
        Some(Knowledge::Object(text)) => Ok(Some(text)),
        _ => Ok(None),
    }
}

/// Whether a namespace is being deleted.
pub(crate) fn is_terminating(evidence: &Evidence, namespace: &str) -> Result<bool, Undecided> {
    let found = lookup(evidence, Query::Namespace { name: namespace.to_owned() })?;
    Ok(matches!(found, Some(Knowledge::Namespace { terminating: true, .. })))
}

/// Whether a namespace is annotated as protected.
pub(crate) fn is_protected_namespace(evidence: &Evidence, namespace: &str) -> Result<bool, Undecided> {
    let found = lookup(evidence, Query::Namespace { name: namespace.to_owned() })?;
    Ok(matches!(found, Some(Knowledge::Namespace { protected: true, .. })))
}
