//! The check of `record-deletion` over the parts of a record that OLM stores in several Secrets: deleting a part deletes the
//! record in effect.

use crate::engine::evidence::Evidence;
use crate::engine::facts::{ActorKind, Facts, RecordChunk};
use crate::engine::json::redacted;
use crate::engine::object::ObjectKey;
use crate::engine::policy::Policy;
use crate::engine::release::record::extra_chunks;
use crate::engine::release::{Stamps, Stored};
use crate::engine::rules::check::{Checked, Refusal};
use crate::engine::rules::undecided::{Undecided, lookup_object};

/// One request that deletes a part of a record.
pub(crate) struct RecordPartCase<'a> {
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) part: &'a RecordChunk<'a>,
    pub(crate) policy: &'a Policy,
    pub(crate) evidence: &'a Evidence,
}

impl RecordPartCase<'_> {
    /// `Secret shop.v2-1, a part of a record`.
    pub(crate) fn subject(&self) -> String {
        format!("Secret {}, a part of a record", self.part.name)
    }
}

/// Refuses the deletion of a part that a live record lists, except by the holder of the record or a manager: an update of such
/// a record starts with the deletion of its parts.
pub(crate) fn check(case: &RecordPartCase<'_>) -> Checked {
    let RecordPartCase { facts, part, policy, evidence } = *case;
    let actor = facts.actor.name;
    if part.being_deleted || policy.managers.contains(actor) {
        return Ok(None);
    }
    let key = ObjectKey::new("", "Secret", part.namespace, &part.index);
    let Some(text) = lookup_object(evidence, key)? else {
        return Ok(None);
    };
    let unreadable =
        |error: String| Undecided::Unavailable(format!("the record {} cannot be parsed: {error}", part.index));
    let index: Stored<'_> = serde_json::from_str(text).map_err(|error| unreadable(redacted(&error)))?;
    let listed = extra_chunks(&index.data).map_err(|error| unreadable(error.to_string()))?;
    let stamps = Stamps::of(|key| index.metadata.annotation(key).map(str::to_owned));
    let dying = index.metadata.deletion_timestamp.is_some();
    // A lost stamp is no reason to refuse: a service account may be the holder.
    let is_holder = stamps.holder().map_or(facts.actor.kind == ActorKind::ServiceAccount, |holder| holder == actor);
    if dying || !listed.contains(&part.name) || is_holder {
        return Ok(None);
    }
    let sentence = format!(
        "Cannot delete Secret {}/{}: it holds a part of the record {}, which cannot be read without it.",
        part.namespace, part.name, part.index
    );
    Ok(Some(Refusal::new(sentence, "To delete the record, delete its index Secret: the parts are deleted with it.")))
}
