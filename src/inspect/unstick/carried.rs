//! The operation that an object carries itself: it is ended, or started again if nothing works on it.

use interlock_engine::evidence::question;
use interlock_engine::object::ObjectKey;
use interlock_engine::owners::{CarriedOperation, Carrier};
use interlock_engine::release::ReleaseRef;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ObjectMeta, Patch, PatchParams};
use kube::{Client, Error};
use serde_json::{Value, json};

use super::error::UnstickError;
use super::store::unstick_error;
use crate::inspect::annotation::FIELD_MANAGER;
use crate::world::ask;
use crate::world::kubernetes::Cluster;
use crate::world::metadata_only::MetadataOnly;

/// An object with its operation, as read at one moment. A patch applies to this version only.
pub(crate) struct CarryingObject {
    carrier: &'static Carrier,
    place: ReleaseRef,
    /// Its kind, in the version in which the API server has sent the object.
    resource: ApiResource,
    metadata: ObjectMeta,
    /// `None` if the last operation has ended.
    pub(crate) operation: Option<CarriedOperation>,
}

impl CarryingObject {
    /// Reads an object; `None` if it does not exist, or if its kind is not installed.
    ///
    /// # Errors
    /// When the API server does not answer, or the object cannot be parsed.
    pub(crate) async fn read(
        cluster: &Cluster,
        carrier: &'static Carrier,
        place: &ReleaseRef,
    ) -> Result<Option<Self>, UnstickError> {
        let failed = |why| UnstickError::Failed { what: format!("read {} {place}", carrier.kind), why };
        let key = ObjectKey::new(carrier.group, carrier.kind, &place.namespace, &place.name);
        let Some(text) = ask(cluster, question::Object(key)).await.map_err(failed)? else { return Ok(None) };
        let MetadataOnly { types, metadata, .. } =
            serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        let kind = GroupVersionKind::try_from(types.unwrap_or_default()).map_err(|error| failed(error.to_string()))?;
        let resource = ApiResource::from_gvk_with_plural(&kind, carrier.plural);
        let operation = carrier.operation(&text).map_err(|error| failed(error.to_string()))?;
        Ok(Some(Self { carrier, place: place.clone(), resource, metadata, operation }))
    }

    /// Patches the object, if it has not changed since it was read.
    ///
    /// # Errors
    /// When the object has changed, an admission webhook refuses, or the API server does not answer.
    pub(crate) async fn patch(&self, client: &Client, patch: &Value, dry_run: bool) -> Result<(), UnstickError> {
        let Self { carrier, place, resource, metadata, .. } = self;
        let mut patch = patch.clone();
        patch["metadata"] = json!({"uid": metadata.uid, "resourceVersion": metadata.resource_version});
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), dry_run, ..PatchParams::default() };
        let objects: Api<DynamicObject> = Api::namespaced_with(client.clone(), &place.namespace, resource);
        match objects.patch(&place.name, &params, &Patch::Merge(&patch)).await {
            Ok(_) => Ok(()),
            Err(Error::Api(status)) if status.code == 409 => {
                let why = format!("{} {place} has changed since it was read: run the command again", carrier.kind);
                Err(UnstickError::Overtaken(why))
            }
            Err(error) => Err(unstick_error(format!("patch {} {place}", carrier.kind), &place.name, error)),
        }
    }
}
