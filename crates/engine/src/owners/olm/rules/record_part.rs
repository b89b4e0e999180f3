//! The parts of a record that OLM stores in several Secrets. They are guarded together with the record: deleting a part in effect
//! deletes the record, and creating or relabelling a part changes the record, or hides it from OLM.
//!
//! Such a record cannot be compared while its parts are rewritten. So only its keepers may write the parts: its holder and the
//! managers.

use crate::evidence::{Evidence, question};
use crate::facts::{Actor, ChunkChange, Facts, RecordChunk};
use crate::json::redacted;
use crate::object::{Metadata, ObjectKey};
use crate::owners::OwnerWords;
use crate::policy::Policy;
use crate::release::record::extra_chunks;
use crate::release::{Stamps, Storage, Stored};
use crate::rules::check::{Checked, Refusal, Step, WaysOut};
use crate::rules::undecided::{Undecided, ask};

/// One request about a part of a record.
pub(crate) struct RecordPartCase<'a> {
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) part: &'a RecordChunk<'a>,
    pub(crate) policy: &'a Policy,
    pub(crate) evidence: &'a Evidence,
}

/// A record that may list the part.
struct Index {
    name: String,
    lists_it: bool,
    being_deleted: bool,
    stamps: Stamps,
}

impl RecordPartCase<'_> {
    /// `Secret shop.v2-1, a part of a record`.
    pub(crate) fn subject(&self) -> String {
        format!("Secret {}, a part of a record", self.part.name)
    }

    /// The record that lists the part, or else a record that the part names.
    fn index(&self) -> Result<Option<Index>, Undecided> {
        let mut named = None;
        for name in &self.part.indexes {
            let Some(index) = self.read(name)? else {
                continue;
            };
            if index.lists_it {
                return Ok(Some(index));
            }
            named = named.or(Some(index));
        }
        Ok(named)
    }

    fn read(&self, name: &str) -> Result<Option<Index>, Undecided> {
        let key = ObjectKey::new("", "Secret", self.part.namespace, name);
        let Some(text) = ask(self.evidence, question::Object(key))? else {
            return Ok(None);
        };
        let unreadable = |error: String| Undecided::Unavailable(format!("the record {name} cannot be parsed: {error}"));
        let index: Stored<'_> = serde_json::from_str(text).map_err(|error| unreadable(redacted(&error)))?;
        let listed = extra_chunks(&index.data).map_err(|error| unreadable(error.to_string()))?;
        Ok(Some(Index {
            name: name.to_owned(),
            lists_it: listed.contains(&self.part.name),
            being_deleted: index.metadata.deletion_timestamp.is_some(),
            stamps: stamps(&index.metadata),
        }))
    }

    fn words(&self) -> OwnerWords<'_> {
        OwnerWords { storage: Storage::Index, namespace: self.part.namespace, release: &self.part.release }
    }

    fn is_kept_by_actor(&self, stamps: &Stamps) -> bool {
        keeps(self.facts.actor, self.policy, self.part.namespace, stamps)
    }
}

/// Whether the actor is a keeper of a record in parts: its holder, or a manager. If the record has no stamp, accounts of its
/// namespace are keepers too, because OLM stores records in its own namespace. But if a manager has an account in that namespace,
/// only managers are keepers.
pub(crate) fn keeps(actor: Actor<'_>, policy: &Policy, namespace: &str, stamps: &Stamps) -> bool {
    let is_at_home = || {
        let account = actor.service_account().and_then(|account| account.split_once(':'));
        let is_neighbour = account.is_some_and(|(home, _)| home == namespace);
        is_neighbour && !policy.managers.have_an_account_in(namespace)
    };
    policy.managers.contains(actor.name) || stamps.holder().map_or_else(is_at_home, |_| actor.holds(stamps))
}

fn stamps(metadata: &Metadata<'_>) -> Stamps {
    Stamps::of(|key| metadata.annotation(key).map(str::to_owned))
}

/// Refuses the deletion of a part that a live record lists, except by keepers of the record: OLM starts an update of such a
/// record by deleting its parts.
pub(crate) fn deletion(case: &RecordPartCase<'_>) -> Checked {
    let RecordPartCase { facts, part, policy, .. } = *case;
    if part.change != (ChunkChange::Deleted { already: false }) || policy.managers.contains(facts.actor.name) {
        return Ok(None);
    }
    let guarded = |index: &Index| index.lists_it && !index.being_deleted && !case.is_kept_by_actor(&index.stamps);
    let Some(index) = case.index()?.filter(guarded) else {
        return Ok(None);
    };
    let sentence = format!(
        "Cannot delete Secret {}/{}: it holds a part of the record {}, which cannot be read without it.",
        part.namespace, part.name, index.name
    );
    let delete = Step::run("delete its index Secret: {}", case.words().delete_command(&[&index.name]));
    let ways_out = WaysOut::default().when("to delete the record", delete).note("The parts are deleted with it.");
    Ok(Some(Refusal::new(sentence, ways_out)))
}

/// Refuses to create a part, or to change one that a record lists, except by keepers of the record.
pub(crate) fn write(case: &RecordPartCase<'_>) -> Checked {
    let RecordPartCase { facts, part, policy, .. } = *case;
    let is_exempt = || [&policy.managers, &policy.tools].into_iter().any(|users| users.contains(facts.actor.name));
    let (verb, pointer) = match &part.change {
        ChunkChange::Deleted { .. } | ChunkChange::Updated(None) => return Ok(None),
        _ if is_exempt() => return Ok(None),
        ChunkChange::Created => ("create".to_owned(), "/metadata/name"),
        ChunkChange::Updated(Some((what, pointer))) => (format!("change {what} of"), *pointer),
    };
    let index = case.index()?;
    // A created part is never free, even if no record lists it: OLM's next write could collide with it.
    let is_free = part.change != ChunkChange::Created && !index.as_ref().is_some_and(|index| index.lists_it);
    let of_record = index.map(|index| index.stamps).unwrap_or_default();
    if is_free || case.is_kept_by_actor(&of_record) {
        return Ok(None);
    }
    let words = case.words();
    let sentence = format!(
        "Cannot {verb} Secret {}/{}: it is a part of a record of {}/{}, and only the holder of the record or a manager writes its parts.",
        part.namespace, part.name, part.namespace, part.release
    );
    let ways_out = words.change().note("A restore tool must be listed under `tools` in the cluster policy.");
    Ok(Some(Refusal::new(sentence, ways_out).at(pointer)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::stamps::HOLDER;

    #[test]
    fn an_unstamped_record_is_kept_by_accounts_of_its_namespace() {
        const OLM: &str = "system:serviceaccount:olmv1-system:operator-controller-controller-manager";
        let keeps = |user: &str, namespace: &str, holder: &str| {
            let user = crate::review::UserInfo { username: user.into(), groups: Vec::new(), ..Default::default() };
            let stamps = Stamps::of(|key| (key == HOLDER && !holder.is_empty()).then(|| holder.to_owned()));
            super::keeps(Actor::of(&user), &Policy::shipped().unwrap(), namespace, &stamps)
        };
        for (user, namespace, holder, wanted) in [
            (OLM, "olmv1-system", "", true),
            (OLM, "olmv1-system", "alice", true),
            ("system:serviceaccount:olmv1-system:default", "olmv1-system", "", false),
            // OLM with an account that the policy does not list.
            ("system:serviceaccount:olm:operator", "olm", "", true),
            ("system:serviceaccount:olm:operator", "olm", OLM, false),
            ("system:serviceaccount:ci:deployer", "olm", "", false),
            ("alice", "olm", "", false),
            ("alice", "olm", "alice", true),
        ] {
            assert_eq!(keeps(user, namespace, holder), wanted, "{user} {namespace} {holder}");
        }
    }
}
