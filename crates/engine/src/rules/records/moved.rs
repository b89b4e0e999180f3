//! Whether a release has moved to an owner without records: an Application or a Kustomization has adopted its objects. Its records stay,
//! and nobody needs them.

use super::case::RecordCase;
use crate::evidence::{can_be_asked_for, question};
use crate::json::RawObject;
use crate::managed::{ManagedFields, Owner};
use crate::object::{Metadata, ObjectKey};
use crate::owners::Marks;
use crate::owners::rules::{AppliedObject, applier};
use crate::release::Record;
use crate::release::manifest::{DocumentKey, object_keys};
use crate::rules::undecided::{Undecided, ask};

/// How many objects of the manifest are read, until one exists.
const MOST: usize = 3;

impl RecordCase<'_> {
    /// Whether another owner applies the objects of this record now, and has written them last. The first that exists is enough: an owner
    /// adopts all of a release. An owner that may be forged does not make a release obsolete.
    pub(super) fn is_moved(&self) -> Result<bool, Undecided> {
        let Some(Ok(body)) = self.body(&self.id.object)? else { return Ok(false) };
        let Ok(record) = Record::read(body, self.facts.effort) else { return Ok(false) };
        let Ok(keys) = object_keys(&record.manifest(), &record.namespace, self.facts.effort) else { return Ok(false) };
        let readable = keys.into_iter().filter(|key| can_be_asked_for(&key.group, &key.kind));
        for key in readable.take(MOST) {
            if let Some(is_moved) = self.is_object_moved(&key)? {
                return Ok(is_moved);
            }
        }
        Ok(false)
    }

    /// The same of one object; `None` if it does not exist.
    fn is_object_moved(&self, document: &DocumentKey) -> Result<Option<bool>, Undecided> {
        let DocumentKey { group, kind, namespace, name, .. } = document;
        let key = ObjectKey::new(group, kind, namespace, name);
        let Some(text) = ask(self.evidence, question::Object(key.clone()))? else { return Ok(None) };
        let Ok(metadata) = Metadata::of(RawObject::delimited(text)) else { return Ok(Some(false)) };
        let marks = Marks::of(|key| metadata.label(key), |key| metadata.annotation(key));
        let marks = marks.map(|marks| marks.newest_first(metadata.managed_fields));
        let Some(marks) = marks.filter(|marks| matches!(marks.owner, Owner::Applied { .. })) else {
            return Ok(Some(false));
        };
        let written = ManagedFields::read(metadata.managed_fields, self.facts.effort);
        let owned = written.of_any_version("", |manager| marks.is_manager(manager));
        let object = AppliedObject {
            marks: &marks,
            key,
            version: "",
            wrote: &|field| Some(owned.has(field)),
            policy: self.policy,
            effort: self.facts.effort,
        };
        Ok(Some(applier(self.evidence, &object)?.is_some_and(|applier| !applier.may_be_forged)))
    }
}
