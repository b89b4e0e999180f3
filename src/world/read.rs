//! From API objects to what rules know of them; shared by every world.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::engine::evidence::Workload;
use crate::engine::json::redacted;
use crate::engine::managed::Marks;
use crate::engine::object::ObjectKey;
use crate::engine::release::{Entry, Stamps, Storage};
use crate::engine::sveltos::{self, Bundle, BundleRef};

/// The labels by which clients list records, of every release and storage.
pub(crate) const RECORDS: &str = "owner in (helm,operator-controller)";

/// A record by the metadata of its object, a `Secret` or `ConfigMap`: how it is stored, of which release, and what it
/// says. `None` for what a client of that storage would not list as a record.
pub(crate) fn record<'m>(kind: &str, metadata: &'m ObjectMeta) -> Option<(Storage, &'m str, Entry)> {
    let label = |key: &str| metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    let storage = match (kind, label("owner")?) {
        ("Secret", "helm") => Storage::Secret,
        ("ConfigMap", "helm") => Storage::ConfigMap,
        // The Secrets with the further parts of a record are of another type.
        ("Secret", "operator-controller") if label("type") == Some("index") => Storage::OlmIndex,
        _ => return None,
    };
    Some((storage, label("name")?, entry(metadata)?))
}

/// What the labels and annotations of an object say of who manages it.
pub(super) fn marks(metadata: &ObjectMeta) -> Option<Marks> {
    let label = |key: &str| metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    let annotation = |key: &str| metadata.annotations.as_ref().and_then(|all| all.get(key)).map(String::as_str);
    Marks::of(label, annotation)
}

/// A record by its metadata; `None` where the labels are not those of a record, which Helm would not list either.
pub(super) fn entry(metadata: &ObjectMeta) -> Option<Entry> {
    let label = |key: &str| metadata.labels.as_ref().and_then(|labels| labels.get(key));
    let annotation = |key: &str| metadata.annotations.as_ref().and_then(|all| all.get(key)).cloned();
    let writes = metadata.managed_fields.iter().flatten().filter_map(|entry| entry.time.as_ref());
    Some(Entry {
        name: metadata.name.clone()?,
        uid: metadata.uid.clone().unwrap_or_default(),
        resource_version: metadata.resource_version.clone().unwrap_or_default(),
        revision: label("version")?.parse().ok()?,
        status: label("status")?.parse().ok()?,
        created: metadata.creation_timestamp.as_ref().map(|time| time.0),
        written: writes.map(|time| time.0).max(),
        stamps: Stamps::of(annotation),
    })
}

impl ObjectKey {
    /// The key of a ConfigurationBundle.
    pub(super) fn of_bundle(BundleRef { namespace, name }: &BundleRef) -> Self {
        Self::new(sveltos::LIB_GROUP, sveltos::CONFIGURATION_BUNDLE, namespace, name)
    }
}

/// What the JSON text of a ConfigurationBundle says of it.
pub(super) fn bundle(BundleRef { namespace, name }: &BundleRef, text: &str) -> Result<Bundle, String> {
    Bundle::read(text)
        .map_err(|error| format!("ConfigurationBundle {namespace}/{name} does not read ({})", redacted(&error)))
}

/// What rules know of a kind of workload.
pub(super) trait Rollout {
    /// How its rollout stands.
    fn rollout(&self) -> Workload;
}

impl Rollout for Deployment {
    fn rollout(&self) -> Workload {
        let status = self.status.clone().unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let conditions = conditions.into_iter().map(|condition| (condition.type_, condition.status == "True"));
        let known = |condition: &str| (condition.to_owned(), false);
        // A controller that has written no condition yet has not said that all is well.
        let unknown = [known("Available"), known("Progressing")];
        Workload {
            // The API server's default for an absent number of replicas is 1.
            desired: self.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1).into(),
            updated: status.updated_replicas.unwrap_or_default().into(),
            available: status.available_replicas.unwrap_or_default().into(),
            observed: observed(&self.metadata, status.observed_generation),
            conditions: unknown.into_iter().chain(conditions).collect(),
        }
    }
}

impl Rollout for StatefulSet {
    fn rollout(&self) -> Workload {
        let status = self.status.clone().unwrap_or_default();
        Workload {
            desired: self.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1).into(),
            updated: status.updated_replicas.unwrap_or_default().into(),
            available: status.ready_replicas.unwrap_or_default().into(),
            observed: observed(&self.metadata, status.observed_generation),
            conditions: BTreeMap::new(),
        }
    }
}

impl Rollout for DaemonSet {
    fn rollout(&self) -> Workload {
        let status = self.status.clone().unwrap_or_default();
        Workload {
            desired: status.desired_number_scheduled.into(),
            updated: status.updated_number_scheduled.unwrap_or_default().into(),
            available: status.number_available.unwrap_or_default().into(),
            observed: observed(&self.metadata, status.observed_generation),
            conditions: BTreeMap::new(),
        }
    }
}

fn observed(metadata: &ObjectMeta, observed: Option<i64>) -> bool {
    observed.unwrap_or_default() >= metadata.generation.unwrap_or_default()
}
