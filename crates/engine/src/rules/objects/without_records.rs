//! The conflict of a request with an owner that keeps no records of the object: a profile, or an object that applies it.

use super::case::ObjectCase;
use super::conflict::{OwnershipConflict, declaration};
use super::content::is_content;
use crate::evidence::Freshness;
use crate::facts::{ActorKind, ManagedWrite, ObjectChange};
use crate::json::FieldPath;
use crate::managed::Owner;
use crate::object::ObjectKey;
use crate::owners::{self, Marks};
use crate::release::ReleaseRef;
use crate::rules::undecided::Undecided;

impl ObjectCase<'_> {
    /// The conflict with a profile, by its title and its name.
    pub(super) fn conflict_with_profile(
        &self,
        marks: &Marks,
        (profile, name): (&str, &str),
        freshness: Freshness,
    ) -> Result<Option<OwnershipConflict>, Undecided> {
        let fields = self.changed_managed_fields(marks, freshness)?;
        Ok(fields.map(|fields| self.without_records((profile.to_owned(), "the profile"), profile, name, fields)))
    }

    /// The conflict with an object that applies this one. Its marks alone prove nothing: it must list what it applies.
    pub(super) fn conflict_with_applied(
        &self,
        marks: &Marks,
        (program, name): (&str, &str),
        freshness: Freshness,
    ) -> Result<Option<OwnershipConflict>, Undecided> {
        if marks.contradiction.is_some() {
            return Ok(None);
        }
        let Some(fields) = self.changed_managed_fields(marks, freshness)? else {
            return Ok(None);
        };
        let Some(applier) = self.applier(marks, freshness)? else { return Ok(None) };
        let is_deletion = fields.is_empty();
        let fields = self.without_left(fields, marks, &applier);
        if applier.user.as_deref() == Some(self.facts.actor.name) || (fields.is_empty() && !is_deletion) {
            return Ok(None);
        }
        let lasts = !fields.iter().all(|field| is_content(field, marks));
        let owner = format!("{program}'s {}", applier.title);
        let source = format!("the source of {}", applier.title);
        Ok(Some(OwnershipConflict {
            is_suspended: applier.is_suspended && !lasts,
            ..self.without_records((owner, "its source"), &source, name, fields)
        }))
    }

    /// An edit by a person that may change what the source declares; `None` if nothing says so.
    pub(super) fn suspicion(&self) -> Result<Option<OwnershipConflict>, Undecided> {
        let ObjectChange::Edited { marks, .. } = &self.write.change else { return Ok(None) };
        let Owner::Applied { program, name, .. } = &marks.owner else { return Ok(None) };
        let is_by_people = matches!(self.facts.actor.kind, ActorKind::Person | ActorKind::Pipeline);
        let fields = if is_by_people { self.suspect_fields(marks) } else { Vec::new() };
        if fields.is_empty() || marks.contradiction.is_some() {
            return Ok(None);
        }
        let Some(applier) = self.applier(marks, Freshness::Live)? else { return Ok(None) };
        let fields = self.without_left(fields, marks, &applier);
        let (owner, source) = (format!("{program}'s {}", applier.title), format!("the source of {}", applier.title));
        let suspicion = self.without_records((owner, "its source"), &source, name, fields);
        Ok(Some(suspicion).filter(|suspicion| !suspicion.fields.is_empty()))
    }

    /// Fields without the content that what applies the object leaves to others.
    fn without_left(&self, fields: Vec<FieldPath>, marks: &Marks, applier: &owners::rules::Applier) -> Vec<FieldPath> {
        let is_held = |field: &FieldPath, managers: &[String]| self.is_held(field, managers);
        let is_left = |field: &FieldPath| is_content(field, marks) && applier.left.contains(field, is_held);
        fields.into_iter().filter(|field| !is_left(field)).collect()
    }

    /// What applies the object, by these marks; `None` if it does not list the object.
    pub(crate) fn applier(
        &self,
        marks: &Marks,
        freshness: Freshness,
    ) -> Result<Option<owners::rules::Applier>, Undecided> {
        let ManagedWrite { api_version, namespace, name, .. } = self.write;
        let object = owners::rules::AppliedObject {
            marks,
            key: ObjectKey::new(self.write.group(), self.kind(), namespace, name),
            version: api_version.rsplit('/').next().unwrap_or_default(),
            wrote: &|field| self.wrote(marks, field, freshness),
            policy: self.policy,
            effort: self.facts.effort,
        };
        owners::rules::applier(self.evidence, &object)
    }

    /// A conflict that no operation and no uninstall has a part in.
    fn without_records(
        &self,
        (owner, declarer): (String, &'static str),
        source: &str,
        name: &str,
        fields: Vec<FieldPath>,
    ) -> OwnershipConflict {
        OwnershipConflict {
            owner,
            declarer,
            through: declaration(source),
            uninstall: None,
            release: ReleaseRef::new(&self.write.namespace, name),
            fields,
            in_flight: false,
            declaring: None,
            is_suspended: false,
            unusable_exception: None,
            unreadable: None,
        }
    }
}
