//! The lists of records and HelmReleases that scans and status read.

use std::sync::Arc;

use interlock_engine::answers::read::RECORD_SELECTOR;
use interlock_engine::owners::{Driver, HELM_RELEASES};
use interlock_engine::release::storage::{HELM_SECRET_TYPE, INDEX_TYPE};
use kube::api::{ApiResource, ObjectMeta};
use kube::{Client, Error};
use serde_json::value::RawValue;

use super::context::DECODE_BYTES;
use super::inventory::Inventory;
use super::listing::Listing;
use crate::budget::Budget;
use crate::world::kubernetes::helm_releases;
use crate::world::kubernetes::intake::{self, Projected};
use crate::world::kubernetes::kinds::Kinds;

/// The records in Secrets: by type, to include records without labels, and by label, to include records of another
/// type, which Helm accepts.
///
/// # Errors
/// When the API server does not answer, or its answer cannot be parsed.
pub(crate) async fn secrets<'p>(
    client: &Client,
    places: impl IntoIterator<Item = Option<&'p str>> + Clone,
) -> Result<Inventory, Error> {
    let others = format!("type!={HELM_SECRET_TYPE},type!={INDEX_TYPE}");
    let secrets = || Listing::of(&core("Secret", "secrets"), places.clone());
    let mut all = Inventory::default();
    for (listing, secret_type) in [
        (secrets().fields(&format!("type={HELM_SECRET_TYPE}")), Some(HELM_SECRET_TYPE)),
        (secrets().fields(&others).labels("owner=helm"), None),
        (secrets().fields(&format!("type={INDEX_TYPE}")), Some(INDEX_TYPE)),
    ] {
        let listed = listing.fold(client, Inventory::default, |all, item| all.add("Secret", secret_type, item));
        all.merge(listed.await?);
    }
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
    let listing = Listing::of(&core("Secret", "secrets"), places).fields(&format!("type={INDEX_TYPE}"));
    listing.fold(client, Inventory::default, |all, item| all.add("Secret", Some(INDEX_TYPE), item)).await
}

/// The records in ConfigMaps.
///
/// # Errors
/// When the API server does not answer, or its answer cannot be parsed.
pub(crate) async fn config_maps<'p>(
    client: &Client,
    places: impl IntoIterator<Item = Option<&'p str>>,
) -> Result<Inventory, Error> {
    let listing = Listing::of(&core("ConfigMap", "configmaps"), places).labels("owner=helm");
    listing.fold(client, Inventory::default, |inventory, item| inventory.add("ConfigMap", None, item)).await
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

fn driver(item: &RawValue) -> Result<Driver, String> {
    let object = Projected::read(item.get()).map_err(|error| error.to_string())?;
    helm_releases::driver(&object).map_err(|error| {
        let ObjectMeta { namespace, name, .. } = object.metadata();
        format!(
            "HelmRelease {}/{} {error}",
            namespace.as_deref().unwrap_or_default(),
            name.as_deref().unwrap_or_default()
        )
    })
}

fn core(kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
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
    let listing = Listing::of(&core(kind, &format!("{}s", kind.to_lowercase())), [namespace]).complete();
    listing.labels(&format!("{RECORD_SELECTOR}{of_release}")).fold(client, start, add).await
}
