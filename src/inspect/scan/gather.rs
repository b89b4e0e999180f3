//! The lists of records and HelmReleases that scans, status and changes read.

use std::sync::Arc;

use interlock_engine::answers::read::RECORD_SELECTOR;
use interlock_engine::owners::{Driver, HELM_RELEASES};
use interlock_engine::release::ReleaseRef;
use interlock_engine::release::storage::{HELM_SECRET_TYPE, INDEX_TYPE};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::ObjectMeta;
use kube::{Client, Error};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::context::DECODE_BYTES;
use super::inventory::Inventory;
use super::listing::Listing;
use super::report::Gap;
use crate::budget::Budget;
use crate::world::kubernetes::api_error::reason;
use crate::world::kubernetes::helm_releases;
use crate::world::kubernetes::intake::{self, Projected};
use crate::world::kubernetes::kinds::Kinds;
use crate::world::metadata_only::resource_of;

/// The part of a list that may be missing.
pub(crate) const CONFIG_MAPS: &str = "records in ConfigMaps";

/// The records in Secrets and in ConfigMaps, and the gap if those in ConfigMaps cannot be listed.
///
/// # Errors
/// Why the records in Secrets cannot be listed.
pub(crate) async fn records<'p>(
    client: &Client,
    places: impl IntoIterator<Item = Option<&'p str>> + Clone,
) -> Result<(Inventory, Option<Gap>), String> {
    let mut all = of_other_types(client, places.clone()).await?;
    let listed = helm_secrets(places.clone()).whole(client).await;
    all.merge(listed.map_err(|error| reason(&error))?);
    match config_maps(places).whole(client).await {
        Ok(more) => all.merge(more),
        Err(error) => return Ok((all, Some(Gap::new(CONFIG_MAPS, reason(&error))))),
    }
    Ok((all, None))
}

/// A list of records of one kind.
pub(super) struct RecordListing {
    pub(super) listing: Listing,
    pub(super) kind: &'static str,
    pub(super) secret_type: Option<&'static str>,
}

impl RecordListing {
    async fn whole(&self, client: &Client) -> Result<Inventory, Error> {
        let add = |all: &mut Inventory, item: &RawValue| all.add(self.kind, self.secret_type, item);
        self.listing.fold(client, Inventory::default, add).await
    }
}

/// Helm's records in Secrets. By type, to include those without labels.
pub(super) fn helm_secrets<'p>(places: impl IntoIterator<Item = Option<&'p str>>) -> RecordListing {
    let listing = Listing::of(&resource_of::<Secret>(), places).fields(&format!("type={HELM_SECRET_TYPE}"));
    RecordListing { listing, kind: "Secret", secret_type: Some(HELM_SECRET_TYPE) }
}

/// The records in ConfigMaps.
pub(super) fn config_maps<'p>(places: impl IntoIterator<Item = Option<&'p str>>) -> RecordListing {
    let listing = Listing::of(&resource_of::<ConfigMap>(), places).labels("owner=helm");
    RecordListing { listing, kind: "ConfigMap", secret_type: None }
}

/// The records in Secrets of another type: those of OLM, and by label those that Helm accepts.
///
/// # Errors
/// Why they cannot be listed.
pub(super) async fn of_other_types<'p>(
    client: &Client,
    places: impl IntoIterator<Item = Option<&'p str>> + Clone,
) -> Result<Inventory, String> {
    let others = format!("type!={HELM_SECRET_TYPE},type!={INDEX_TYPE}");
    let listing = Listing::of(&resource_of::<Secret>(), places.clone()).fields(&others).labels("owner=helm");
    let labelled = RecordListing { listing, kind: "Secret", secret_type: None };
    let mut all = labelled.whole(client).await.map_err(|error| reason(&error))?;
    all.merge(extensions(client, places).await.map_err(|error| reason(&error))?);
    Ok(all)
}

/// The records of OLM.
///
/// # Errors
/// When the API server does not answer, or its answer cannot be parsed.
pub(crate) async fn extensions<'p>(
    client: &Client,
    places: impl IntoIterator<Item = Option<&'p str>>,
) -> Result<Inventory, Error> {
    let listing = Listing::of(&resource_of::<Secret>(), places).fields(&format!("type={INDEX_TYPE}"));
    RecordListing { listing, kind: "Secret", secret_type: Some(INDEX_TYPE) }.whole(client).await
}

/// Flux's HelmReleases, and the reason for each one that cannot be parsed; `None` if the kind is not installed.
///
/// # Errors
/// When the API server does not answer, or its answer cannot be parsed.
pub(crate) async fn helm_releases<'p>(
    client: &Client,
    places: impl IntoIterator<Item = Option<&'p str>>,
) -> Result<Option<(Vec<Driver>, Vec<String>)>, Error> {
    let Some(resource) = Kinds::default().resolve(client, HELM_RELEASES.0, HELM_RELEASES.1).await? else {
        return Ok(None);
    };
    let client = intake::client(client.clone(), &Budget::new(DECODE_BYTES), &Arc::default());
    let listing = Listing::of(&resource, places).complete();
    let listed = listing.fold(
        client.kube(),
        || (Vec::new(), Vec::new()),
        |(drivers, unread), item| match driver(item) {
            Ok(driver) => drivers.push(driver),
            Err(error) => unread.push(error),
        },
    );
    listed.await.map(Some)
}

/// What `read` finds in the text of each object of a kind. Nothing if the kind is not installed.
///
/// # Errors
/// When the API server does not answer, or its answer cannot be parsed.
pub(crate) async fn objects<'p, T, I: IntoIterator<Item = T>>(
    client: &Client,
    (group, kind): (&str, &str),
    places: impl IntoIterator<Item = Option<&'p str>>,
    read: impl Fn(&ReleaseRef, &str) -> I,
) -> Result<Vec<T>, Error> {
    let Some(resource) = Kinds::default().resolve(client, group, kind).await? else { return Ok(Vec::new()) };
    let add = |found: &mut Vec<T>, item: &RawValue| {
        let place = named(item).map(|(namespace, name)| ReleaseRef::new(namespace, name));
        found.extend(place.into_iter().flat_map(|place| read(&place, item.get())));
    };
    Listing::of(&resource, places).complete().fold(client, Vec::new, add).await
}

/// The number of objects of a kind; 0 if the kind is not installed.
///
/// # Errors
/// When the API server does not answer, or its answer cannot be parsed.
pub(crate) async fn count(client: &Client, (group, kind): (&str, &str)) -> Result<usize, Error> {
    let Some(resource) = Kinds::default().resolve(client, group, kind).await? else { return Ok(0) };
    Listing::of(&resource, [None]).fold(client, || 0, |count, _| *count += 1).await
}

fn driver(item: &RawValue) -> Result<Driver, String> {
    let object = Projected::read(item.get()).map_err(|error| error.to_string())?;
    helm_releases::driver(&object).map_err(|error| {
        let ObjectMeta { namespace, name, .. } = object.metadata();
        let [namespace, name] = [namespace, name].map(|text| text.as_deref().unwrap_or_default());
        format!("HelmRelease {namespace}/{name} {error}")
    })
}

/// The complete objects of records that a client would list, of one namespace or all, and of the releases with one name or all.
///
/// # Errors
/// When the API server does not answer, or its answer cannot be parsed.
pub(crate) async fn full_records<A>(
    client: &Client,
    kind: &str,
    namespace: Option<&str>,
    release: Option<&str>,
    start: impl Fn() -> A,
    add: impl FnMut(&mut A, &RawValue),
) -> Result<A, Error> {
    let of_release = release.map(|release| format!(",name={release}")).unwrap_or_default();
    let resource = if kind == "ConfigMap" { resource_of::<ConfigMap>() } else { resource_of::<Secret>() };
    let listing = Listing::of(&resource, [namespace]).complete();
    listing.labels(&format!("{RECORD_SELECTOR}{of_release}")).fold(client, start, add).await
}

#[derive(Deserialize)]
struct Named {
    metadata: Names,
}

#[derive(Deserialize)]
struct Names {
    namespace: String,
    name: String,
}

/// The namespace and name of an object.
pub(crate) fn named(item: &RawValue) -> Option<(String, String)> {
    let Named { metadata: Names { namespace, name } } = serde_json::from_str(item.get()).ok()?;
    Some((namespace, name))
}
