//! The change to an object that has an owner.

use memchr::memmem;
use serde::Deserialize;

use super::added::adds_owner;
use crate::effort::Effort;
use crate::json::{RawObject, redacted};
use crate::managed::{Delta, Exceptions, ManagedFields, delta_except};
use crate::object::{Metadata, group_of};
use crate::owners::{Marks, may_be_marked};
use crate::release::ReleaseRef;
use crate::review::{BadReview, Operation, Request};

/// Fields that the API server maintains. They are not content of the object.
const SERVER_MAINTAINED_FIELDS: [&[&str]; 4] =
    [&["metadata", "generation"], &["metadata", "managedFields"], &["metadata", "resourceVersion"], &["status"]];

/// A write of an object that names an owner.
#[derive(Debug)]
pub struct ManagedWrite<'r> {
    /// For example `apps/v1`. For a Scale, that of the scaled object.
    pub api_version: String,
    /// For example `Deployment`. For a Scale, `Scale`.
    pub kind: &'r str,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
    /// Whether a deletion of the object has already started.
    pub being_deleted: bool,
    pub change: ObjectChange<'r>,
}

/// The change to an object.
#[derive(Debug)]
pub enum ObjectChange<'r> {
    /// An UPDATE of the object.
    Edited {
        /// The owner that the stored object names.
        marks: Marks,
        /// The owner that the new object names.
        marks_after: Option<Box<Marks>>,
        sides: EditedObject<'r>,
    },
    /// A DELETE of the object.
    Deleted {
        /// The owner that the object names.
        marks: Marks,
        /// Who wrote which field, not parsed yet.
        managed_fields: Option<RawObject<'r>>,
    },
    /// A new number of replicas through the scale subresource. A Scale does not name the owner.
    Scaled { resource: &'r str, old: i64, new: i64 },
}

/// An object before and after.
#[derive(Debug)]
pub struct EditedObject<'r> {
    old_fields: Option<RawObject<'r>>,
    new_fields: Option<RawObject<'r>>,
    /// Whether the object gets a new owner.
    pub adds_owner: bool,
    /// The difference, without the fields that the API server maintains; `None` if there is none.
    pub delta: Option<Delta<'r>>,
}

impl<'r> EditedObject<'r> {
    /// The field managers of the stored object.
    #[must_use]
    pub fn managed_fields(&self, effort: &Effort) -> ManagedFields<'r> {
        ManagedFields::read(self.old_fields, effort)
    }

    /// Whether `managedFields` differ.
    #[must_use]
    pub fn changes_managed_fields(&self) -> bool {
        self.new_fields.map(RawObject::get) != self.old_fields.map(RawObject::get)
    }

    /// Whether `managedFields` are cleared, or these managers lose all their entries. What they wrote would then not be known. The API
    /// server takes an entry away only with its last field, and keeps it if somebody else sets the same value.
    #[must_use]
    pub fn loses_managers(&self, managers: &[&str], effort: &Effort) -> bool {
        if !self.changes_managed_fields() || is_blank(self.old_fields) {
            return false;
        }
        if is_blank(self.new_fields) {
            return true;
        }
        let is_one = |manager: &str| managers.contains(&manager);
        !self.new_fields.is_some_and(|fields| names_one_of(fields.get(), managers))
            && self.managed_fields(effort).names(is_one)
            && !ManagedFields::read(self.new_fields, effort).names(is_one)
    }

    /// Whether these managers lose a field whose value stays. The API server takes a field from a manager only with its value.
    #[must_use]
    pub fn loses_kept_fields(&self, api_version: &str, managers: &[&str], effort: &Effort) -> bool {
        if !self.changes_managed_fields() || is_blank(self.old_fields) {
            return false;
        }
        let after = ManagedFields::read(self.new_fields, effort);
        let is_one = |manager: &str| managers.contains(&manager);
        self.managed_fields(effort).lose_kept_in(&after, (api_version, is_one), self.delta.as_ref(), effort)
    }
}

/// Whether the text of `managedFields` names one of these managers. A search is much faster than parsing. The API server writes no spaces
/// between member and value, and the names of fields in the text have escaped quotes.
fn names_one_of(fields: &str, managers: &[&str]) -> bool {
    const MEMBER: &str = "\"manager\":\"";
    memmem::find_iter(fields.as_bytes(), MEMBER).any(|at| {
        let named = fields[at + MEMBER.len()..].split_once('"').map_or("", |(named, _)| named);
        managers.contains(&named)
    })
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Scale {
    spec: Replicas,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Replicas {
    replicas: i64,
}

impl<'r> ManagedWrite<'r> {
    /// Reads the marks of an object; `None` if the object has none, or if the request cannot disturb an owner.
    ///
    /// # Errors
    /// The metadata of a marked object, or a Scale, has the wrong shape.
    pub(super) fn read(request: &'r Request<'r>) -> Result<Option<Self>, BadReview> {
        match (request.operation, request.sub_resource()) {
            (Operation::Update | Operation::Delete, None) => Self::of_object(request),
            // For most built-in kinds, a write of the status also writes the metadata. A resize writes the resources of a pod.
            (Operation::Update, Some("status" | "resize")) => Self::of_object(request),
            (Operation::Update, Some("scale")) => Self::of_scale(request).map(Some),
            _ => Ok(None),
        }
    }

    fn of_object(request: &'r Request<'r>) -> Result<Option<Self>, BadReview> {
        let Some(old) = request.old_object.filter(|old| may_be_marked(old.get())) else {
            return Ok(None);
        };
        let before = metadata(request, old)?;
        let Some(marks) = marks(&before) else {
            return Ok(None);
        };
        let change = match request.object {
            Some(new) if request.operation == Operation::Update => {
                let after = metadata(request, new)?;
                let found = [&before, &after].map(|metadata| metadata.managed_fields.map_or("", RawObject::get));
                let except = Exceptions { paths: &SERVER_MAINTAINED_FIELDS, found: &found };
                let sides = EditedObject {
                    old_fields: before.managed_fields,
                    new_fields: after.managed_fields,
                    adds_owner: adds_owner(before.owner_references, after.owner_references),
                    delta: delta_except(old.get(), new.get(), except),
                };
                ObjectChange::Edited { marks, marks_after: self::marks(&after).map(Box::new), sides }
            }
            _ => ObjectChange::Deleted { marks, managed_fields: before.managed_fields },
        };
        let name = request.name().unwrap_or(&before.name);
        Ok(Some(Self::new(request, &request.kind.version, name, before.deletion_timestamp.is_some(), change)))
    }

    fn of_scale(request: &'r Request<'r>) -> Result<Self, BadReview> {
        let replicas = |object: Option<RawObject<'_>>| {
            let scale = object.map(|object| serde_json::from_str::<Option<Scale>>(object.get())).transpose();
            let scale = scale
                .map_err(|error| BadReview::Malformed(format!("the Scale cannot be parsed: {}", redacted(&error))))?;
            Ok(scale.flatten().unwrap_or_default().spec.replicas)
        };
        let change = ObjectChange::Scaled {
            resource: &request.resource.resource,
            old: replicas(request.old_object)?,
            new: replicas(request.object)?,
        };
        let name = request.name().unwrap_or_default();
        Ok(Self::new(request, &request.resource.version, name, false, change))
    }

    fn new(request: &'r Request<'r>, version: &str, name: &str, being_deleted: bool, change: ObjectChange<'r>) -> Self {
        let group = &request.resource.group;
        Self {
            api_version: if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") },
            kind: &request.kind.kind,
            namespace: request.namespace_of_object().to_owned(),
            name: name.to_owned(),
            being_deleted,
            change,
        }
    }

    /// The release or profile that the object names, with the namespace of the object. The namespace of the records is not in the
    /// request.
    #[must_use]
    pub fn release(&self) -> Option<ReleaseRef> {
        let (ObjectChange::Edited { marks, .. } | ObjectChange::Deleted { marks, .. }) = &self.change else {
            return None;
        };
        Some(ReleaseRef::new(&self.namespace, marks.owner.name()))
    }

    /// The API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        group_of(&self.api_version)
    }
}

fn metadata<'r>(request: &Request<'_>, object: RawObject<'r>) -> Result<Metadata<'r>, BadReview> {
    Metadata::of(object).map_err(|error| {
        BadReview::Malformed(format!(
            "the metadata of the {} cannot be parsed: {}",
            request.kind.kind,
            redacted(&error)
        ))
    })
}

/// Whether `managedFields` is absent, or has the value of cleared `managedFields`.
fn is_blank(fields: Option<RawObject<'_>>) -> bool {
    fields.is_none_or(|fields| matches!(fields.get(), "[]" | "[{}]"))
}

fn marks(metadata: &Metadata<'_>) -> Option<Marks> {
    let marks = Marks::of(|key| metadata.label(key), |key| metadata.annotation(key))?;
    Some(marks.newest_first(metadata.managed_fields))
}
