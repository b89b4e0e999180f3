//! How a world in memory learns: from writes that were admitted, and from objects given to it.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Memory, MetadataOnly};
use crate::engine::object::{ObjectKey, group_of};
use crate::engine::release::InterruptedOperation;
use crate::engine::release::stamps::INTERRUPTED;
use crate::engine::review::{Operation, Request};
use crate::world::read;

/// Group, kind and name of an object given as JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    api_version: String,
    kind: String,
    metadata: Names,
}

#[derive(Deserialize)]
struct Names {
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
}

#[derive(Deserialize)]
struct Named {
    metadata: Names,
}

impl Memory {
    /// Does what an API server does with an admitted request. A dry run and most subresources change nothing here.
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
            // Who creates an object that is there is answered that it is. One on its way out has gone by now.
            (Operation::Create, _) if self.get(&key).is_some_and(|known| !is_dying(&known)) => {}
            (Operation::Delete, Some(object)) if lingers(&key, object) => self.terminate(key, object),
            (Operation::Delete, Some(object)) => {
                self.remove(&key);
                self.remember(&key, object);
            }
            // The last finalizer is taken off: no DELETE follows.
            (Operation::Update, Some(object)) if is_gone(object) => self.remove(&key),
            (_, Some(object)) => self.put(key, object.get().to_owned()),
            (_, None) => {}
        }
    }

    /// Takes an object out, named by its apiVersion, kind, namespace and name.
    ///
    /// # Errors
    /// When these do not read.
    pub fn remove_object(&self, object: &RawValue) -> Result<(), serde_json::Error> {
        self.remove(&ObjectKey::of_object(object)?);
        Ok(())
    }

    /// Notes on the deployed record that the operation of a deleted one was interrupted, as the leader does in a cluster.
    fn remember(&self, key: &ObjectKey, object: &RawValue) {
        let Ok(MetadataOnly { metadata }) = serde_json::from_str(object.get()) else { return };
        let Some((storage, release, lost)) = read::record(&key.kind, &metadata) else { return };
        let Some(interrupted) = InterruptedOperation::of(&lost) else { return };
        let history = self.history(storage, &key.namespace, release);
        let Some(heir) = history.deployed_before(&lost) else { return };
        let heir = ObjectKey::new("", &key.kind, &key.namespace, &heir.name);
        let Some(mut record) = self.get(&heir).and_then(|text| serde_json::from_str::<Value>(&text).ok()) else {
            return;
        };
        record["metadata"]["annotations"][INTERRUPTED] = interrupted.to_string().into();
        self.put(heir, record.to_string());
    }

    /// Marks an object as being deleted.
    fn terminate(&self, key: ObjectKey, object: &RawValue) {
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
    pub fn of_object(object: &RawValue) -> Result<Self, serde_json::Error> {
        let identity: Identity = serde_json::from_str(object.get())?;
        let group = group_of(&identity.api_version);
        Ok(Self::new(group, &identity.kind, &identity.metadata.namespace, &identity.metadata.name))
    }

    /// The key of the object of a request.
    #[must_use]
    pub fn of_request(request: &Request<'_>) -> Option<Self> {
        key_of(request, request.object.or(request.old_object)?)
    }
}

#[derive(Deserialize)]
struct Mortal {
    metadata: Death,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Death {
    deletion_timestamp: Option<String>,
    #[serde(default)]
    finalizers: Vec<String>,
}

fn death(object: &str) -> Option<Death> {
    serde_json::from_str::<Mortal>(object).ok().map(|mortal| mortal.metadata)
}

/// Whether an object is being deleted.
fn is_dying(object: &str) -> bool {
    death(object).is_some_and(|death| death.deletion_timestamp.is_some())
}

/// Whether an object is being deleted and nothing holds it any more.
fn is_gone(object: &RawValue) -> bool {
    death(object.get()).is_some_and(|death| death.deletion_timestamp.is_some() && death.finalizers.is_empty())
}

/// Whether an object that is deleted stays for a while: a namespace until its contents are gone, others until somebody takes
/// their last finalizer off.
fn lingers(key: &ObjectKey, object: &RawValue) -> bool {
    let is_namespace = key.kind == "Namespace" && key.group.is_empty();
    is_namespace || death(object.get()).is_some_and(|death| !death.finalizers.is_empty())
}

fn key_of(request: &Request<'_>, object: &RawValue) -> Option<ObjectKey> {
    let name = match request.name() {
        Some(name) => name.to_owned(),
        None => serde_json::from_str::<Named>(object.get()).ok()?.metadata.name,
    };
    // A Namespace carries its own name as the namespace of the request.
    let scoped = !(request.kind.group.is_empty() && request.kind.kind == "Namespace");
    let namespace = if scoped { request.namespace() } else { "" };
    Some(ObjectKey::new(&request.kind.group, &request.kind.kind, namespace, &name))
}
