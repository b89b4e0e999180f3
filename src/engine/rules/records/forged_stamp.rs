//! `forged-stamp`: the holder stamps on a record are those that the mutating half wrote.
//!
//! The mutating half overwrites whatever a client sends, so a wrong value arrives only while it is out of service. A missing
//! stamp was lost in such a time, and is never a reason to refuse.
//!
//! Allowed: helm's PUT, which carries no annotations. Denied: a CREATE that names another user as the holder.

use super::case::Case;
use crate::engine::facts::RecordSide;
use crate::engine::object::annotation_pointer;
use crate::engine::rules::{Finding, Refusal};
use crate::engine::stamp;

pub(crate) fn check(case: &Case<'_>) -> Finding {
    let Some(write) = case.change.write() else {
        return Ok(None);
    };
    if write.before.is_none() && case.policy.tools.contains(case.facts.actor.name) {
        return Ok(None);
    }
    let sent = write.after.stamps();
    if sent.is_empty() {
        return Ok(None);
    }
    let expected = stamp::expected(case.facts, &write, case.now);
    let before = write.before.map(RecordSide::stamps).unwrap_or_default();
    let Some((key, must)) = stamp::forged(&expected, &before, &sent, case.now) else {
        return Ok(None);
    };
    let must = must.map_or("be absent".to_owned(), |value| format!("be {value:?}"));
    let sentence = format!("The annotation {key} on the record of {} must {must}.", case.subject());
    let way_out = "Leave the annotations of interlock.dev alone; they are written by the webhook.";
    Ok(Some(Refusal::new(sentence, way_out).at(annotation_pointer(key))))
}
