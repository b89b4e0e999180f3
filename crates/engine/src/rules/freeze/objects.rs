//! The deletions of an uninstall.

use super::standing::{stops_something, stored, ways_out};
use crate::facts::ObjectChange;
use crate::policy::in_force;
use crate::release::ReleaseRef;
use crate::rules::check::{Checked, Refusal};
use crate::rules::objects::case::ObjectCase;

/// Refuses the deletions of an uninstall that starts in a freeze. If the write of its record is refused, Helm only logs that and
/// continues to delete. It stops when a deletion is refused.
pub(super) fn check(case: &ObjectCase<'_>) -> Checked {
    let actor = case.facts.actor;
    let deletes = matches!(case.write.change, ObjectChange::Deleted { .. });
    if !deletes {
        return Ok(None);
    }
    let stored = stored(case.evidence)?;
    if !stops_something(case.policy, stored, actor, case.now) {
        return Ok(None);
    }
    let Some(conflict) = case.conflict_of_uninstall()? else {
        return Ok(None);
    };
    let ReleaseRef { namespace, name } = &conflict.release;
    let home = conflict.declaring.as_ref().map_or(namespace.as_str(), |declaring| {
        declaring.record.storage.home(namespace, Some(&declaring.target_namespace))
    });
    let active = in_force(case.policy.all_freezes(stored), &ReleaseRef::new(home, name), actor, case.now);
    Ok(active.map(|active| {
        let sentence = format!("{} is managed by {}: {}.", case.subject(), conflict.owner, active.sentence());
        Refusal::new(sentence, ways_out(active)).about(conflict.release.clone()).in_freeze(active)
    }))
}
