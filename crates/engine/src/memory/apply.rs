//! Applies admitted requests, and objects given by tests and replay, to a world in memory.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;

use super::store::ObjectStore;
use crate::answers::read;
use crate::json::{RawObject, cursor, first_at};
use crate::object::{Metadata, ObjectKey, group_of, have_lengths_of_names};
use crate::release::InterruptedOperation;
use crate::release::stamps::INTERRUPTED;
use crate::review::{Operation, Request};

/// The effect of a request on the stored objects.
pub(super) struct Change<'a> {
    pub(super) operation: Operation,
    /// If the request has no name, the name is empty, and the object has it.
    pub(super) key: ObjectKey,
    /// The object as stored, or as it was before the deletion.
    pub(super) object: RawObject<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypedObject {
    api_version: String,
    kind: String,
    metadata: ObjectName,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectName {
    name: String,
    namespace: String,
}

impl<'a> Change<'a> {
    /// The change of a request; `None` if it stores nothing, like a dry run and most subresources, or if its names are invalid.
    pub(super) fn of(request: &Request<'a>) -> Option<Self> {
        let stores_object = matches!(request.sub_resource(), None | Some("status"));
        if request.dry_run.unwrap_or_default() || !stores_object {
            return None;
        }
        let object = match request.operation {
            Operation::Create | Operation::Update => request.object,
            Operation::Delete => request.old_object,
            Operation::Connect => None,
        }?;
        Some(Self { operation: request.operation, key: key_in(request)?, object })
    }
}

impl ObjectStore {
    /// Applies a change as an API server does.
    pub(super) fn apply(&mut self, Change { operation, mut key, object }: Change<'_>) {
        if key.name.is_empty() {
            key.name = name_of(object);
        }
        match operation {
            // If the object exists, the API server refuses to create it. An object that was being deleted counts as gone.
            Operation::Create if self.get(&key).is_some_and(|known| !is_terminating(known)) => {}
            Operation::Delete if lingers(&key, object) => self.terminate(key, object),
            Operation::Delete => {
                self.discard(&key);
                self.note_interruption(&key, object);
            }
            // The update removes the last finalizer. No DELETE follows.
            Operation::Update if is_gone(object) => {
                self.discard(&key);
            }
            Operation::Create | Operation::Update => self.put(key, object.get().to_owned()),
            Operation::Connect => {}
        }
    }

    /// When the record of an interrupted operation is deleted, annotates the newest remaining record. In a cluster, the
    /// leader does this.
    fn note_interruption(&mut self, key: &ObjectKey, object: RawObject<'_>) {
        let Ok(Some(metadata)) = first_at::<ObjectMeta>(object.get(), &["metadata"]) else { return };
        let Some((storage, release, lost)) = read::record(&key.kind, &metadata) else { return };
        let Some(interrupted) = InterruptedOperation::of(&lost) else { return };
        let history = self.history(storage, &key.namespace, release);
        let Some(heir) = history.heir_of(&lost) else { return };
        let heir = ObjectKey::new("", &key.kind, &key.namespace, &heir.name);
        let Some(mut record) = self.get(&heir).and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
            return;
        };
        record["metadata"]["annotations"][INTERRUPTED] = interrupted.to_string().into();
        self.put(heir, record.to_string());
    }

    /// Marks an object as being deleted.
    fn terminate(&mut self, key: ObjectKey, object: RawObject<'_>) {
        let Ok(mut object) = serde_json::from_str::<Value>(object.get()) else { return };
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            let since = metadata.get("creationTimestamp").cloned().unwrap_or_else(|| "1970-01-01T00:00:00Z".into());
            metadata.insert("deletionTimestamp".to_owned(), since);
        }
        self.put(key, object.to_string());
    }
}

impl ObjectKey {
    /// The key of an object given as JSON.
    ///
    /// # Errors
    /// The JSON lacks apiVersion, kind or metadata.
    pub fn of_object(object: RawObject<'_>) -> Result<Self, serde_json::Error> {
        let object: TypedObject = serde_json::from_str(object.get())?;
        let group = group_of(&object.api_version);
        Ok(Self::new(group, &object.kind, &object.metadata.namespace, &object.metadata.name))
    }

    /// The key of the object of a request.
    #[must_use]
    pub fn of_request(request: &Request<'_>) -> Option<Self> {
        let object = request.object.or(request.old_object)?;
        let key = key_in(request)?;
        Some(if key.name.is_empty() { Self { name: name_of(object), ..key } } else { key })
    }
}

/// The key from the request; `None` if an API server would not accept its names.
fn key_in(request: &Request<'_>) -> Option<ObjectKey> {
    let (group, kind) = (&*request.kind.group, &*request.kind.kind);
    let (namespace, name) = (request.namespace(), request.name().unwrap_or_default());
    if !have_lengths_of_names([group, kind, namespace, name]) {
        return None;
    }
    // In a review of a Namespace, the namespace of the request is its own name.
    let namespace = if (group, kind) == ("", "Namespace") { "" } else { namespace };
    Some(ObjectKey::new(group, kind, namespace, name))
}

fn metadata(object: RawObject<'_>) -> Metadata<'_> {
    Metadata::of(object).unwrap_or_default()
}

fn name_of(object: RawObject<'_>) -> String {
    metadata(object).name.into_owned()
}

/// Whether an object is being deleted.
fn is_terminating(object: &str) -> bool {
    metadata(RawObject::delimited(object)).deletion_timestamp.is_some()
}

/// Whether an object is being deleted and has no finalizers left.
fn is_gone(object: RawObject<'_>) -> bool {
    let metadata = metadata(object);
    metadata.deletion_timestamp.is_some() && !has_finalizers(&metadata)
}

/// Whether a deleted object remains for a while: a namespace until its contents are gone, other objects until their last
/// finalizer is removed.
fn lingers(key: &ObjectKey, object: RawObject<'_>) -> bool {
    let is_namespace = key.kind == "Namespace" && key.group.is_empty();
    is_namespace || has_finalizers(&metadata(object))
}

fn has_finalizers(metadata: &Metadata<'_>) -> bool {
    metadata.finalizers.and_then(|list| cursor::items(list.get())).is_some_and(|items| !items.is_empty())
}
