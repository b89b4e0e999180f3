//! An annotation on a record, written only over the version that was read.

use interlock_engine::release::{Entry, Storage};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Error};
use serde_json::json;

use crate::world::metadata_only::{MetadataOnly, resource_of};

/// The field manager of Interlock's writes.
pub(crate) const FIELD_MANAGER: &str = "interlock";

/// Sets an annotation, or removes it.
pub(crate) async fn annotate(
    client: &Client,
    (storage, namespace): (Storage, &str),
    record: &Entry,
    (key, value): (&str, Option<&str>),
    dry_run: bool,
) -> Result<(), Error> {
    let patch = json!({
        "metadata": {"resourceVersion": record.resource_version, "uid": record.uid, "annotations": {key: value}},
    });
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), dry_run, ..PatchParams::default() };
    let resource = match storage.kind() {
        "ConfigMap" => resource_of::<ConfigMap>(),
        _ => resource_of::<Secret>(),
    };
    let records: Api<MetadataOnly> = Api::namespaced_with(client.clone(), namespace, &resource);
    records.patch_metadata(&record.name, &params, &Patch::Merge(&patch)).await.map(drop)
}
