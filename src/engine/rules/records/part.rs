//! A part of a record that somebody deletes, which is a deletion of the record in effect.

use crate::engine::evidence::Evidence;
use crate::engine::facts::{ActorKind, Facts, RecordChunk};
use crate::engine::json::redacted;
use crate::engine::object::ObjectKey;
use crate::engine::policy::Policy;
use crate::engine::release::record::extra_chunks;
use crate::engine::release::{Stamps, Stored};
use crate::engine::rules::need::{Need, object};
use crate::engine::rules::{Finding, Refusal};

/// Refuses to take a part away that a living record lists, unless it is the record's own holder, or a manager, who does:
/// an update of such a record starts with the deletion of its parts.
pub(crate) fn check(facts: &Facts<'_>, part: &RecordChunk<'_>, policy: &Policy, evidence: &Evidence) -> Finding {
    let actor = facts.actor.name;
    if part.being_deleted || policy.managers.contains(actor) {
        return Ok(None);
    }
    let key = ObjectKey::new("", "Secret", part.namespace, &part.index);
    let Some(text) = object(evidence, key)? else {
        return Ok(None);
    };
    let unreadable = |error: String| Need::Unavailable(format!("the record {} does not read: {error}", part.index));
    let index: Stored<'_> = serde_json::from_str(text).map_err(|error| unreadable(redacted(&error)))?;
    let listed = extra_chunks(&index.data).map_err(|error| unreadable(error.to_string()))?;
    let stamps = Stamps::of(|key| index.metadata.annotation(key).map(str::to_owned));
    let dying = index.metadata.deletion_timestamp.is_some();
    // A stamp that was lost is no reason to refuse: an account that may be the keeper's goes on.
    let keeps = stamps.holder().map_or(facts.actor.kind == ActorKind::ServiceAccount, |holder| holder == actor);
    if dying || !listed.contains(&part.name) || keeps {
        return Ok(None);
    }
    let sentence = format!(
        "Cannot delete {}/{}: it holds a part of the record {}, which nobody can read without it.",
        part.namespace, part.name, part.index
    );
    Ok(Some(Refusal::new(sentence, "Delete the record itself, if it is to go; its parts go with it.")))
}
