//! The declared fields of an object that a request changes.

use serde_json::Value;

use super::case::ObjectCase;
use crate::engine::evidence::{Knowledge, Query, RecordRef};
use crate::engine::facts::{EditedObject, ManagedWrite, ObjectChange};
use crate::engine::json::FieldPath;
use crate::engine::managed::{Declared, Marks, declared_by, is_custom_resource, touched};
use crate::engine::policy::{ScalableResource, ignored_fields};
use crate::engine::release::manifest::DocumentKey;
use crate::engine::rules::undecided::{Undecided, lookup};

/// The fields that people may edit nevertheless.
type Excepted<'e> = &'e dyn Fn(&FieldPath) -> bool;

impl ObjectCase<'_> {
    /// The declared fields that change, none of them if the object is deleted. `None` if no declared field changes, and if the object
    /// is not in the manifest: then the release no longer declares it.
    pub(crate) fn changed_declared_fields(
        &self,
        marks: &Marks,
        record: RecordRef,
        default_namespace: String,
    ) -> Result<Option<Vec<FieldPath>>, Undecided> {
        let document = self.document(record, default_namespace);
        match (&self.write.change, document) {
            (_, Err(Undecided::Ask(query))) => Err(Undecided::Ask(query)),
            (_, Ok(None)) => Ok(None),
            (_, Ok(Some(document))) => Ok(self.changed_in_manifest(marks, document, &|_| false)),
            // managedFields show a part: the fields that the release owns, it has declared.
            (ObjectChange::Edited { sides, .. }, Err(unavailable)) => {
                match lost(self.changed_among(marks, sides, [self.owned_fields(marks, sides)], &|_| false)) {
                    None => Err(unavailable),
                    fields => Ok(fields),
                }
            }
            (ObjectChange::Deleted { .. } | ObjectChange::Scaled { .. }, Err(unavailable)) => Err(unavailable),
        }
    }

    /// The fields that change beside the excepted ones, by the document of the object; none of them if the object is deleted. `None`
    /// if no such field changes.
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

    /// The document of the object in a record; `None` if it has none. `default_namespace` is that of documents without one.
    pub(crate) fn document(&self, record: RecordRef, default_namespace: String) -> Result<Option<&Value>, Undecided> {
        let object = DocumentKey {
            group: self.write.group().to_owned(),
            kind: self.kind().to_owned(),
            namespace: self.write.namespace.clone(),
            name: self.write.name.clone(),
            default_namespace,
        };
        match lookup(self.evidence, Query::Document { record, object })? {
            Some(Knowledge::Document(document)) => Ok(document.as_deref()),
            _ => Err(Undecided::Unavailable("its record was deleted in the meantime".to_owned())),
        }
    }

    /// The declared fields that change, by the document in the manifest. A document of another API version may name fields
    /// differently; then managedFields are used too, for fields that it does not have.
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
        self.changed_among(marks, sides, [declared_by(document, &written)].into_iter().chain(owned), is_excepted)
    }

    /// The fields that the owner wrote last, by managedFields.
    fn owned_fields(&self, marks: &Marks, sides: &EditedObject<'_>) -> Declared<'static> {
        sides.managed_fields(self.facts.effort).of(&self.write.api_version, |manager| marks.is_manager(manager))
    }

    /// The fields that are declared, changed and not ignored. The marks count as declared, and so do managedFields if they are
    /// cleared.
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
            let declared: Vec<_> = declared.into_iter().chain(marks.declared()).collect();
            let is_ignored = ignored_fields(&self.policy.ignore, kind, namespace, name);
            let is_ignored = |field: &FieldPath| is_ignored(&field.pointer()) || is_excepted(field);
            fields = touched(&declared, delta, &is_ignored, self.facts.effort);
        }
        if sides.clears_managed_fields() {
            fields.push(FieldPath::of(["metadata", "managedFields"]));
        }
        fields
    }

    /// The changed fields of an owner without a manifest in this cluster, by managedFields alone.
    pub(crate) fn changed_managed_fields(&self, marks: &Marks) -> Option<Vec<FieldPath>> {
        match &self.write.change {
            ObjectChange::Edited { sides, .. } => {
                lost(self.changed_among(marks, sides, [self.owned_fields(marks, sides)], &|_| false))
            }
            ObjectChange::Deleted { .. } => Some(Vec::new()),
            ObjectChange::Scaled { .. } => None,
        }
    }
}

/// The fields of a conflict; `None` without any.
fn lost(fields: Vec<FieldPath>) -> Option<Vec<FieldPath>> {
    (!fields.is_empty()).then_some(fields)
}

/// The declared field that a scaling changes.
fn scaled_field(scalable: &ScalableResource, document: &Value, new: i64) -> Option<FieldPath> {
    let declared = scalable.replicas.resolve(document).ok().filter(|declared| !declared.is_null())?;
    let tokens: Vec<_> = scalable.replicas.tokens().map(|token| token.decoded().into_owned()).collect();
    (declared.as_i64() != Some(new)).then(|| FieldPath::of(tokens.iter().map(String::as_str)))
}
