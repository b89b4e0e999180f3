//! Converts API objects to the types that rules use. All worlds share this code.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::evidence::{Candidates, NamespaceState, ScaledObject};
use crate::json::{RawObject, redacted};
use crate::object::{ObjectKey, PROTECTED, protects};
use crate::owners::{BUNDLES, Bundle, BundleRef, CandidateSearch, Driver, Marks};
use crate::policy::{Creation, Freeze};
use crate::policy_files::FreezeName;
use crate::release::{Entry, Stamps, Storage};
use crate::release_override::{CREATED_BY, Override, OverrideSpec, VOID};
use crate::text::printable_name;

/// The label selector of records, of every release and storage.
pub const RECORD_SELECTOR: &str = "owner in (helm,operator-controller)";

/// A record by the metadata of its object, a `Secret` or `ConfigMap`: its storage, the name of its release, and its entry.
/// `None` for an object that a client of that storage would not list as a record.
pub fn record<'m>(kind: &str, metadata: &'m ObjectMeta) -> Option<(Storage, &'m str, Entry)> {
    let label = |key: &str| metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    let storage = match (kind, label("owner")?) {
        ("Secret", "helm") => Storage::Secret,
        ("ConfigMap", "helm") => Storage::ConfigMap,
        // The Secrets with the further chunks of a record have another label `type`.
        ("Secret", "operator-controller") if label("type") == Some("index") => Storage::Index,
        _ => return None,
    };
    Some((storage, label("name")?, entry(metadata)?))
}

/// The ownership marks of an object, from its labels and annotations.
pub fn marks(metadata: &ObjectMeta) -> Option<Marks> {
    Marks::of(
        |key: &str| metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str),
        |key: &str| metadata.annotations.as_ref().and_then(|all| all.get(key)).map(String::as_str),
    )
}

/// Parses a scaled object from its JSON text, but only its metadata; `None` if it has no owner.
///
/// # Errors
/// The metadata cannot be parsed.
pub fn scaled(text: &str) -> Result<Option<ScaledObject>, String> {
    #[derive(Deserialize)]
    struct Stored<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        #[serde(default)]
        labels: Option<BTreeMap<String, String>>,
        #[serde(default)]
        annotations: Option<BTreeMap<String, String>>,
        #[serde(borrow, default)]
        managed_fields: Option<&'a RawValue>,
    }
    let Stored { metadata } = serde_json::from_str(text).map_err(|error| redacted(&error))?;
    let marks = Marks::of(
        |key: &str| metadata.labels.as_ref()?.get(key).map(String::as_str),
        |key: &str| metadata.annotations.as_ref()?.get(key).map(String::as_str),
    );
    let managed_fields = metadata.managed_fields.map_or("[]", RawValue::get).to_owned();
    let marks = marks.map(|marks| marks.newest_first(Some(RawObject::delimited(&managed_fields))));
    Ok(marks.map(|marks| ScaledObject { marks, managed_fields: Some(managed_fields) }))
}

/// The entry of a record by its metadata; `None` if the labels are not those of a record. Helm does not list such an
/// object either.
pub fn entry(metadata: &ObjectMeta) -> Option<Entry> {
    let label = |key: &str| metadata.labels.as_ref().and_then(|labels| labels.get(key));
    Some(Entry {
        name: metadata.name.clone()?,
        uid: metadata.uid.clone().unwrap_or_default(),
        resource_version: metadata.resource_version.clone().unwrap_or_default(),
        revision: label("version")?.parse().ok()?,
        status: label("status")?.parse().ok()?,
        created: metadata.creation_timestamp.as_ref().map(|time| time.0),
        stamps: Stamps::of(|key: &str| metadata.annotations.as_ref().and_then(|all| all.get(key)).cloned()),
    })
}

/// The facts about a namespace that rules use.
pub fn namespace(metadata: &ObjectMeta) -> NamespaceState {
    let annotation = metadata.annotations.as_ref().and_then(|all| all.get(PROTECTED));
    NamespaceState {
        terminating: metadata.deletion_timestamp.is_some(),
        protected: protects(annotation.map(String::as_str)),
    }
}

impl ObjectKey {
    /// The key of a ConfigurationBundle.
    pub fn of_bundle(BundleRef { namespace, name }: &BundleRef) -> Self {
        Self::new(BUNDLES.0, BUNDLES.1, namespace, name)
    }
}

/// A ConfigurationBundle from its JSON text.
pub fn bundle(BundleRef { namespace, name }: &BundleRef, text: &str) -> Result<Bundle, String> {
    Bundle::read(text)
        .map_err(|error| format!("ConfigurationBundle {namespace}/{name} cannot be parsed ({})", redacted(&error)))
}

/// An override from its JSON text; `None` if it has another shape, for example that of a later version.
pub fn release_override(text: &str) -> Option<Override> {
    #[derive(Deserialize)]
    struct Stored {
        metadata: ObjectMeta,
        spec: OverrideSpec,
    }
    let Stored { metadata, spec } = serde_json::from_str(text).ok()?;
    override_of(&metadata, spec)
}

/// An override from its parts; `None` if it has no name.
pub fn override_of(metadata: &ObjectMeta, spec: OverrideSpec) -> Option<Override> {
    let annotation = |key| metadata.annotations.as_ref().and_then(|annotations| annotations.get(key));
    Some(Override {
        namespace: metadata.namespace.clone()?,
        name: metadata.name.clone()?,
        created: metadata.creation_timestamp.as_ref().map(|time| time.0),
        created_by: annotation(CREATED_BY).cloned(),
        is_void: annotation(VOID).is_some(),
        spec,
    })
}

/// A Freeze from its parts.
///
/// # Errors
/// The reason why the Freeze has no effect.
pub fn freeze_of(metadata: &ObjectMeta, spec: Option<&str>) -> Result<Freeze, String> {
    let (Some(namespace), Some(name)) = (&metadata.namespace, &metadata.name) else {
        return Err("it has no name".to_owned());
    };
    let at = metadata.creation_timestamp.as_ref().map(|time| time.0).ok_or("it has no creation time")?;
    let freeze = Freeze::of_spec(FreezeName { namespace, name }, spec.unwrap_or_default());
    let freeze = freeze.map_err(|why| why.to_string())?;
    let by = metadata.annotations.as_ref().and_then(|annotations| annotations.get(CREATED_BY));
    Ok(freeze.created(Creation { by: by.map(|user| printable_name(user)), at }))
}

/// A Freeze from its JSON text; `None` if it has no effect.
pub fn stored_freeze(text: &str) -> Option<Freeze> {
    #[derive(Deserialize)]
    struct Stored<'a> {
        metadata: ObjectMeta,
        #[serde(borrow)]
        spec: &'a RawValue,
    }
    let Stored { metadata, spec } = serde_json::from_str(text).ok()?;
    freeze_of(&metadata, Some(spec.get())).ok()
}

/// The HelmReleases that may own a release.
pub fn candidates(search: CandidateSearch<'_>, all: &[Driver]) -> Candidates {
    let found = search.among(all.iter()).map_err(|too_many| too_many.to_string())?;
    Ok(oldest_first(found.into_iter().cloned()))
}

/// HelmReleases in the order of their creation. Those of the same second are sorted by name.
pub fn oldest_first(drivers: impl IntoIterator<Item = Driver>) -> Vec<Driver> {
    let mut drivers: Vec<_> = drivers.into_iter().collect();
    drivers.sort_by(|one, other| creation_order(one).cmp(&creation_order(other)));
    drivers
}

fn creation_order(driver: &Driver) -> impl Ord {
    (driver.created.is_none(), driver.created, &driver.namespace, &driver.name)
}
