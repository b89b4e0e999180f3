//! Applies admitted requests, and objects given by tests and replay, to a world in memory.

use serde::Deserialize;
use serde_json::Value;

use super::{Memory, MetadataOnly};
use crate::engine::json::{RawObject, null_is_default};
use crate::engine::object::{ObjectKey, group_of};
use crate::engine::release::InterruptedOperation;
use crate::engine::release::stamps::INTERRUPTED;
use crate::engine::review::{Operation, Request};
use crate::world::read;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypedObject {
    api_version: String,
    kind: String,
    metadata: ObjectMetadata,
}

#[derive(Deserialize)]
struct UntypedObject {
    metadata: ObjectMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectMetadata {
    name: String,
    namespace: String,
    deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "null_is_default")]
    finalizers: Vec<String>,
}

impl Memory {
    /// Applies an admitted request as an API server does. A dry run and most subresources change nothing.
    pub fn apply(&self, request: &Request<'_>) {
        let whole_object = matches!(request.sub_resource(), None | Some("status"));
        if request.dry_run.unwrap_or_default() || !whole_object {
            return;
        }
        let object = match request.operation {
            Operation::Create | Operation::Update => request.object,
            Operation::Delete => request.old_object,
            Operation::Connect => None,
        };
        let Some(key) = object.and_then(|object| key_of(request, object)) else {
            return;
        };
        match (request.operation, object) {
            // The API server answers that the object exists. An object that was being deleted is gone by now.
            (Operation::Create, _) if self.get(&key).is_some_and(|known| !is_terminating(&known)) => {}
            (Operation::Delete, Some(object)) if lingers(&key, object) => self.terminate(key, object),
            (Operation::Delete, Some(object)) => {
                self.remove(&key);
                self.note_interruption(&key, object);
            }
            // The last finalizer is removed: no DELETE follows.
            (Operation::Update, Some(object)) if is_gone(object) => self.remove(&key),
            (_, Some(object)) => self.put(key, object.get().to_owned()),
            (_, None) => {}
        }
    }

    /// Removes an object, named by its apiVersion, kind, namespace and name.
    ///
    /// # Errors
    /// When one of these cannot be parsed.
    pub fn remove_object(&self, object: RawObject<'_>) -> Result<(), serde_json::Error> {
        self.remove(&ObjectKey::of_object(object)?);
        Ok(())
    }

    /// Annotates the newest record that is left when the record of an interrupted operation is deleted, as the leader does in a
    /// cluster.
    fn note_interruption(&self, key: &ObjectKey, object: RawObject<'_>) {
        let Ok(MetadataOnly { metadata }) = serde_json::from_str(object.get()) else { return };
        let Some((storage, release, lost)) = read::record(&key.kind, &metadata) else { return };
        let Some(interrupted) = InterruptedOperation::of(&lost) else { return };
        let history = self.history(storage, &key.namespace, release);
        let Some(heir) = history.heir_of(&lost) else { return };
        let heir = ObjectKey::new("", &key.kind, &key.namespace, &heir.name);
        let Some(mut record) = self.get(&heir).and_then(|text| serde_json::from_str::<Value>(&text).ok()) else {
            return;
        };
        record["metadata"]["annotations"][INTERRUPTED] = interrupted.to_string().into();
        self.put(heir, record.to_string());
    }

    /// Marks an object as being deleted.
    fn terminate(&self, key: ObjectKey, object: RawObject<'_>) {
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
    /// When it lacks apiVersion, kind or metadata.
    pub fn of_object(object: RawObject<'_>) -> Result<Self, serde_json::Error> {
        let object: TypedObject = serde_json::from_str(object.get())?;
        let group = group_of(&object.api_version);
        Ok(Self::new(group, &object.kind, &object.metadata.namespace, &object.metadata.name))
    }

    /// The key of the object of a request.
    #[must_use]
    pub fn of_request(request: &Request<'_>) -> Option<Self> {
        key_of(request, request.object.or(request.old_object)?)
    }
}

fn metadata(object: &str) -> Option<ObjectMetadata> {
    serde_json::from_str::<UntypedObject>(object).ok().map(|object| object.metadata)
}

/// Whether an object is being deleted.
fn is_terminating(object: &str) -> bool {
    metadata(object).is_some_and(|metadata| metadata.deletion_timestamp.is_some())
}

/// Whether an object is being deleted and has no finalizers left.
fn is_gone(object: RawObject<'_>) -> bool {
    metadata(object.get())
        .is_some_and(|metadata| metadata.deletion_timestamp.is_some() && metadata.finalizers.is_empty())
}

/// Whether a deleted object remains for a while: a namespace until its contents are gone, other objects until their last
/// finalizer is removed.
fn lingers(key: &ObjectKey, object: RawObject<'_>) -> bool {
    let is_namespace = key.kind == "Namespace" && key.group.is_empty();
    is_namespace || metadata(object.get()).is_some_and(|metadata| !metadata.finalizers.is_empty())
}

fn key_of(request: &Request<'_>, object: RawObject<'_>) -> Option<ObjectKey> {
    let name = match request.name() {
        Some(name) => name.to_owned(),
        None => metadata(object.get())?.name,
    };
    // In a review of a Namespace, the namespace of the request is its own name.
    let scoped = !(request.kind.group.is_empty() && request.kind.kind == "Namespace");
    let namespace = if scoped { request.namespace() } else { "" };
    Some(ObjectKey::new(&request.kind.group, &request.kind.kind, namespace, &name))
}
