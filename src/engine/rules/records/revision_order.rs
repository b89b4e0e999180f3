//! `revision-order`: a new record has a higher revision than every other record of its release.
//!
//! Higher than the highest, not the next one: pruning with a small limit leaves gaps, and after the deletion of the newest
//! record its number comes again.
//!
//! Allowed: CREATE of revision 7 over 3, 4 and 6. Denied: CREATE of revision 5 over the same.

use super::case::Case;
use crate::engine::facts::RecordChange;
use crate::engine::rules::{Finding, Refusal};

pub(crate) fn check(case: &Case<'_>) -> Finding {
    let (RecordChange::Created(_), Some(revision)) = (case.change, case.target.revision) else {
        return Ok(None);
    };
    if case.policy.tools.contains(case.facts.actor.name) {
        return Ok(None);
    }
    let newest = case.history()?.newest().filter(|newest| newest.revision >= revision);
    Ok(newest.map(|newest| {
        Refusal::new(
            format!("Cannot create {}: the release is at {}.", case.subject(), case.state(newest)),
            "Run the operation again, so that it starts from the newest revision.",
        )
        .at("/metadata/name")
    }))
}
