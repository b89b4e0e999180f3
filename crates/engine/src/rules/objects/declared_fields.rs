//! The declared fields of an object that a request changes.

use serde_json::{Value, json};

use super::case::ObjectCase;
use crate::evidence::{Freshness, RecordRef, ScaledObject, question};
use crate::facts::{EditedObject, ManagedWrite, ObjectChange};
use crate::json::{FieldPath, RawObject};
use crate::managed::{Declared, Delta, ManagedFields, Owner, declared_by, implied_by, is_custom_resource, touched};
use crate::owners::Marks;
use crate::policy::{ScalableResource, ignored_fields};
use crate::release::manifest::DocumentKey;
use crate::rules::undecided::{Undecided, ask};

/// The fields that people may edit although they are declared.
type Excepted<'e> = &'e dyn Fn(&FieldPath) -> bool;

/// The maximum number of fields to list if the document of the object cannot be read.
const MAX_FIELDS: usize = 100;

/// Steps to parse a byte of the document that an owner has applied.
const APPLIED_STEPS: u64 = 20;

/// What a record declares about the object of the request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Declaration<'d> {
    /// The manifest has no document of the object.
    Nothing,
    Document(&'d Value),
    /// The document cannot be read, for this reason. All of the object then counts as declared: a chart must not open its objects
    /// this way.
    Unreadable(&'d str),
}

/// What a request takes from a release.
#[derive(Debug)]
pub(crate) struct LostFields {
    /// Empty if the object is deleted.
    pub(crate) fields: Vec<FieldPath>,
    /// The reason, if the document of the object cannot be read.
    pub(crate) unreadable: Option<String>,
}

impl ObjectCase<'_> {
    /// The declared fields that change; empty if the object is deleted. `None` if no declared field changes, or if the release no
    /// longer declares the object.
    pub(crate) fn changed_declared_fields(
        &self,
        marks: &Marks,
        record: RecordRef,
        default_namespace: String,
    ) -> Result<Option<LostFields>, Undecided> {
        let readable = |fields| LostFields { fields, unreadable: None };
        match (&self.write.change, self.declaration(record, default_namespace)) {
            (_, Err(Undecided::Ask(query))) => Err(Undecided::Ask(query)),
            (_, Ok(Declaration::Nothing)) => Ok(None),
            (_, Ok(Declaration::Document(document))) => {
                Ok(self.changed_in_manifest(marks, document, &|_| false).map(readable))
            }
            (_, Ok(Declaration::Unreadable(why))) => {
                Ok(self.changed_at_all(marks).map(|fields| LostFields { fields, unreadable: Some(why.to_owned()) }))
            }
            // managedFields show only a part of what is declared: the fields that the release owns.
            (ObjectChange::Edited { sides, .. }, Err(unavailable)) => {
                match lost(self.changed_among(marks, sides, [self.owned_fields(marks, sides)], &|_| false)) {
                    None => Err(unavailable),
                    fields => Ok(fields.map(readable)),
                }
            }
            (ObjectChange::Deleted { .. } | ObjectChange::Scaled { .. }, Err(unavailable)) => Err(unavailable),
        }
    }

    /// The fields that change, declared or not; empty if the object is deleted. `None` if no field changes.
    fn changed_at_all(&self, marks: &Marks) -> Option<Vec<FieldPath>> {
        let ManagedWrite { kind, namespace, name, .. } = self.write;
        match &self.write.change {
            ObjectChange::Deleted { .. } => Some(Vec::new()),
            ObjectChange::Edited { sides, .. } => {
                let is_ignored = ignored_fields(&self.policy.ignore, kind, namespace, name);
                let changed = sides.delta.iter().flat_map(Delta::changed_values).map(|changed| changed.path);
                let counts = |field: &FieldPath| {
                    let pointer = field.pointer();
                    !is_ignored(&pointer) && pointer.first().is_none_or(|first| first.decoded() != "status")
                };
                let mut fields: Vec<_> = changed.filter(counts).take(MAX_FIELDS).collect();
                if self.loses_basis(marks, sides) {
                    fields.push(FieldPath::of(["metadata", "managedFields"]));
                }
                lost(fields)
            }
            ObjectChange::Scaled { .. } => {
                let field = self.scalable_resource().map(replicas_field);
                field.map(|field| vec![field])
            }
        }
    }

    /// The declared fields that change, except the excepted ones, by the document of the object; empty if the object is deleted.
    /// `None` if no such field changes.
    pub(super) fn changed_in_manifest(
        &self,
        marks: &Marks,
        document: &Value,
        is_excepted: Excepted<'_>,
    ) -> Option<Vec<FieldPath>> {
        match &self.write.change {
            ObjectChange::Deleted { .. } => Some(Vec::new()),
            ObjectChange::Edited { sides, .. } => lost(self.changed_in_document(marks, document, sides, is_excepted)),
            ObjectChange::Scaled { new, .. } => {
                let scaled = self.scalable_resource().and_then(|scalable| scaled_field(scalable, document, *new));
                scaled.filter(|field| !is_excepted(field)).map(|field| vec![field])
            }
        }
    }

    /// What a record declares about the object. `default_namespace` applies to documents without a namespace.
    pub(crate) fn declaration(
        &self,
        record: RecordRef,
        default_namespace: String,
    ) -> Result<Declaration<'_>, Undecided> {
        let object = DocumentKey {
            group: self.write.group().to_owned(),
            kind: self.kind().to_owned(),
            namespace: self.write.namespace.clone(),
            name: self.write.name.clone(),
            default_namespace,
        };
        match ask(self.evidence, question::Document { record, object })? {
            Some(Ok(None)) => Ok(Declaration::Nothing),
            Some(Ok(Some(document))) => Ok(Declaration::Document(document)),
            Some(Err(why)) => Ok(Declaration::Unreadable(why)),
            None => Err(Undecided::Unavailable("its record was deleted in the meantime".to_owned())),
        }
    }

    /// The declared fields that change, by the document in the manifest. A document of another API version may use other field
    /// names, so managedFields are added for the fields that it does not have.
    fn changed_in_document(
        &self,
        marks: &Marks,
        document: &Value,
        sides: &EditedObject<'_>,
        is_excepted: Excepted<'_>,
    ) -> Vec<FieldPath> {
        let account = || sides.managed_fields(self.facts.effort).of(&self.write.api_version, |_| true);
        let written = if is_custom_resource(document) { account() } else { Declared::nothing() };
        let same_version = document.get("apiVersion").and_then(Value::as_str) == Some(self.write.api_version.as_str());
        let owned = (!same_version).then(|| self.owned_fields(marks, sides).outside(document));
        let implied = implied_by(document, &self.write.api_version);
        let declared = [declared_by(document, &written)].into_iter().chain(implied).chain(owned);
        self.changed_among(marks, sides, declared, is_excepted)
    }

    /// The fields that the owner wrote last, by managedFields.
    fn owned_fields(&self, marks: &Marks, sides: &EditedObject<'_>) -> Declared<'static> {
        let fields = sides.managed_fields(self.facts.effort);
        fields.of_any_version(&self.write.api_version, |manager| marks.is_manager(manager))
    }

    /// Whether it would no longer be known what the owner has written. A release has its manifest for that.
    fn loses_basis(&self, marks: &Marks, sides: &EditedObject<'_>) -> bool {
        let (managers, effort) = (marks.managers(), self.facts.effort);
        sides.loses_managers(managers, effort)
            || (!matches!(marks.owner, Owner::Release { .. })
                && sides.loses_kept_fields(&self.write.api_version, managers, effort))
    }

    /// The fields that are declared, changed and not ignored. The marks count as declared. So do managedFields if the
    /// owner loses entries, or a field that keeps its value.
    fn changed_among<'d>(
        &self,
        marks: &Marks,
        sides: &EditedObject<'_>,
        declared: impl IntoIterator<Item = Declared<'d>>,
        is_excepted: Excepted<'_>,
    ) -> Vec<FieldPath> {
        let ManagedWrite { kind, namespace, name, .. } = self.write;
        let mut fields = Vec::new();
        if let Some(delta) = &sides.delta {
            let mut declared: Vec<_> = declared.into_iter().collect();
            declared.extend(marks.declared());
            let is_ignored = ignored_fields(&self.policy.ignore, kind, namespace, name);
            let is_ignored = |field: &FieldPath| is_ignored(&field.pointer()) || is_excepted(field);
            fields = touched(&declared, delta, &is_ignored, self.facts.effort);
        }
        if self.loses_basis(marks, sides) {
            fields.push(FieldPath::of(["metadata", "managedFields"]));
        }
        fields
    }

    /// The changed fields of an object whose owner has no manifest in this cluster, by managedFields alone.
    pub(crate) fn changed_managed_fields(
        &self,
        marks: &Marks,
        freshness: Freshness,
    ) -> Result<Option<Vec<FieldPath>>, Undecided> {
        match &self.write.change {
            ObjectChange::Edited { sides, marks_after, .. } => {
                let applied = marks.applied.as_deref().filter(|_| sides.delta.is_some());
                let applied = applied.and_then(|text| self.read_applied(text));
                let implied = applied.as_ref().and_then(|document| implied_by(document, &self.write.api_version));
                // Without a document, what binds the object is guarded all the same: finalizers, owner references, `immutable`.
                let document = applied.unwrap_or_else(
                    || json!({"apiVersion": self.write.api_version, "kind": self.write.kind, "metadata": {}}),
                );
                let written = Declared::nothing();
                let declared = [declared_by(&document, &written), self.owned_fields(marks, sides)];
                let mut fields = self.changed_among(marks, sides, declared.into_iter().chain(implied), &|_| false);
                fields.extend(set_switches(marks, marks_after.as_deref()));
                fields.sort_unstable();
                fields.dedup();
                Ok(lost(fields))
            }
            ObjectChange::Deleted { .. } => Ok(Some(Vec::new())),
            ObjectChange::Scaled { new, .. } => {
                let (Some(scaled), Some(scalable)) = (self.scaled(freshness)?, self.scalable_resource()) else {
                    return Ok(None);
                };
                // A scaling takes the field out of the owner's entry, but not out of the document.
                let applied = marks.applied.as_deref().and_then(|text| self.read_applied(text));
                if let Some(field) = applied.and_then(|document| scaled_field(scalable, &document, *new)) {
                    return Ok(Some(vec![field]));
                }
                let field = replicas_field(scalable);
                Ok(self.has_written(marks, scaled, &field).then(|| vec![field]))
            }
        }
    }

    /// The changed fields that somebody else has written since the owner last wrote the object. The owner may declare them all the same:
    /// an edit takes a field out of its entry. Annotations are left out, because people add them all the time.
    pub(super) fn suspect_fields(&self, marks: &Marks) -> Vec<FieldPath> {
        let ObjectChange::Edited { sides, .. } = &self.write.change else { return Vec::new() };
        let Some(delta) = &sides.delta else { return Vec::new() };
        let ManagedWrite { api_version, kind, namespace, name, .. } = self.write;
        let fields = sides.managed_fields(self.facts.effort);
        let suspect = fields.since(api_version, |manager| marks.is_manager(manager));
        let is_ignored = ignored_fields(&self.policy.ignore, kind, namespace, name);
        let is_left_out =
            |field: &FieldPath| is_ignored(&field.pointer()) || field.fields().any(|name| name == "annotations");
        touched(&[suspect], delta, &is_left_out, self.facts.effort)
    }

    /// The document that the owner applied last. One of another version may use other names of fields. What is too large to be read
    /// declares nothing: `managedFields` remain.
    fn read_applied(&self, text: &str) -> Option<Value> {
        self.facts.effort.take_text(text, APPLIED_STEPS).ok()?;
        let document: Value = serde_json::from_str(text).ok()?;
        let is_same_version = document.get("apiVersion").and_then(Value::as_str) == Some(&self.write.api_version);
        is_same_version.then_some(document)
    }

    /// Whether the owner wrote a field of the object as it is stored; `None` if that is unknown, as from a cache.
    pub(crate) fn wrote(&self, marks: &Marks, field: &[&str], freshness: Freshness) -> Option<bool> {
        let fields = match &self.write.change {
            ObjectChange::Edited { sides, .. } => sides.managed_fields(self.facts.effort),
            ObjectChange::Deleted { managed_fields, .. } => ManagedFields::read(*managed_fields, self.facts.effort),
            ObjectChange::Scaled { .. } => {
                // The marks come from this answer.
                let scaled = self.scaled(freshness).ok().flatten()?;
                let text = scaled.managed_fields.as_deref()?;
                ManagedFields::read(Some(RawObject::delimited(text)), self.facts.effort)
            }
        };
        Some(fields.of_any_version(&self.write.api_version, |manager| marks.is_manager(manager)).has(field))
    }

    /// Whether one of these managers wrote a field of the edited object.
    pub(super) fn is_held(&self, field: &FieldPath, managers: &[String]) -> bool {
        let ObjectChange::Edited { sides, .. } = &self.write.change else { return false };
        let is_one = |manager: &str| managers.iter().any(|it| it == manager);
        let names: Vec<_> = field.fields().collect();
        sides.managed_fields(self.facts.effort).of(&self.write.api_version, is_one).has(&names)
    }

    /// Whether the owner of a scaled object wrote a field of it. A cache has no managedFields, so the answer is then yes.
    fn has_written(&self, marks: &Marks, scaled: &ScaledObject, field: &FieldPath) -> bool {
        let Some(managed_fields) = &scaled.managed_fields else { return true };
        let written = ManagedFields::read(Some(RawObject::delimited(managed_fields)), self.facts.effort);
        let owned = written.of(&self.write.api_version, |manager| marks.is_manager(manager));
        let names: Vec<_> = field.fields().collect();
        owned.has(&names)
    }
}

/// The switches that an edit sets. Taking one off is no loss: the owner puts back what it has set itself.
fn set_switches(before: &Marks, after: Option<&Marks>) -> impl Iterator<Item = FieldPath> {
    let set = after.into_iter().flat_map(|after| &after.switches).filter(|switch| !before.switches.contains(switch));
    set.map(|(key, _)| FieldPath::of(["metadata", "annotations", *key]))
}

/// The fields of a conflict; `None` if there are none.
fn lost(fields: Vec<FieldPath>) -> Option<Vec<FieldPath>> {
    (!fields.is_empty()).then_some(fields)
}

/// The declared field that a scaling changes.
fn scaled_field(scalable: &ScalableResource, document: &Value, new: i64) -> Option<FieldPath> {
    let declared = scalable.replicas.resolve(document).ok().filter(|declared| !declared.is_null())?;
    (declared.as_i64() != Some(new)).then(|| replicas_field(scalable))
}

fn replicas_field(scalable: &ScalableResource) -> FieldPath {
    let tokens: Vec<_> = scalable.replicas.tokens().map(|token| token.decoded().into_owned()).collect();
    FieldPath::of(tokens.iter().map(String::as_str))
}
