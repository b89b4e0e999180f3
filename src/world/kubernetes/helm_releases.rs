//! Flux's HelmReleases, as far as a copy of them is kept.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use kube::core::DynamicResourceScope;
use kube::{Client, Resource};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::task::JoinSet;

use super::custom::{Custom, CustomKind};
use super::reach::Reach;
use super::watch::Feed;
use crate::engine::flux::{self, Driver, HelmRelease, HelmReleaseSpec, HelmReleaseStatus};
use crate::engine::managed::Origin;
use crate::engine::object::OwnedMetadata;
use crate::readiness::Gate;

/// Flux's HelmReleases.
const HELM_RELEASES: CustomKind =
    CustomKind { group: flux::GROUP, kind: flux::HELM_RELEASE, definition: flux::DEFINITION };

/// What is known of the HelmReleases of a cluster. Nothing, until it is followed.
#[derive(Debug)]
pub(super) struct HelmReleases(Arc<Custom<Drivers>>);

impl HelmReleases {
    /// Of a cluster that nobody watches yet.
    pub(super) fn new() -> Self {
        Self(Arc::new(Custom::new(HELM_RELEASES)))
    }

    /// The HelmReleases, by namespace and name, that drive the release with these records; `None` where that is not known
    /// at the moment. Where the definition is not installed there are none.
    pub(super) fn driving(&self, namespace: &str, release: &str) -> Option<Vec<(String, String)>> {
        self.0.read(|drivers| drivers.driving(namespace, release))
    }

    /// Where the HelmRelease of an object says that the records of its release are; `None` where that is not known at the
    /// moment.
    pub(super) fn told(&self, origin: &Origin, release: &str) -> Option<Option<String>> {
        self.0.read(|drivers| {
            let driver = drivers.0.get(&Object::new(&origin.namespace, &origin.name))?.as_ref()?;
            driver.records_of(release).map(str::to_owned)
        })
    }

    /// Follows them and their definition, for ever.
    pub(super) fn follow(&self, client: &Client, reach: &Reach, gate: Gate, tasks: &mut JoinSet<()>) {
        tasks.spawn(Arc::clone(&self.0).follow_definition(client.clone()));
        tasks.spawn(Arc::clone(&self.0).follow::<Watched>(client.clone(), reach.clone(), gate));
    }
}

/// HelmReleases in the order in which they were created, those of one second by name.
pub(crate) fn oldest_first(drivers: impl IntoIterator<Item = Driver>) -> Vec<Driver> {
    let mut drivers: Vec<_> = drivers.into_iter().collect();
    drivers.sort_by(|one, other| {
        let rank = |driver: &'_ Driver| (driver.created.is_none(), driver.created);
        let name = |driver: &Driver| (driver.namespace.clone(), driver.name.clone());
        rank(one).cmp(&rank(other)).then_with(|| name(one).cmp(&name(other)))
    });
    drivers
}

/// A HelmRelease as it is watched: what rules do not read, values above all, is not kept.
#[derive(Debug, Clone, Deserialize)]
struct Watched {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Part<HelmReleaseSpec>,
    #[serde(default)]
    status: Part<HelmReleaseStatus>,
}

/// One object of another shape must not end the watch of all.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Part<T> {
    Read(T),
    Unread(IgnoredAny),
}

impl<T: Default> Default for Part<T> {
    fn default() -> Self {
        Self::Read(T::default())
    }
}

impl Watched {
    /// What is kept of it; `None` where it does not read.
    fn driver(&self) -> Option<Driver> {
        let Part::Read(spec) = &self.spec else { return None };
        let status = match &self.status {
            Part::Read(status) => status.clone(),
            Part::Unread(_) => HelmReleaseStatus::default(),
        };
        let ObjectMeta { namespace, name, creation_timestamp, deletion_timestamp, .. } = &self.metadata;
        let metadata = OwnedMetadata {
            namespace: namespace.clone().unwrap_or_default(),
            name: name.clone().unwrap_or_default(),
            creation_timestamp: creation_timestamp.as_ref().map(|time| time.0),
            deletion_timestamp: deletion_timestamp.as_ref().map(|time| time.0),
            ..OwnedMetadata::default()
        };
        Some(Driver::from(&HelmRelease { metadata, spec: spec.clone(), status }))
    }
}

impl Resource for Watched {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// What is known of every HelmRelease; `None` of one that does not read.
#[derive(Debug, Default)]
struct Drivers(HashMap<Object, Option<Driver>>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Object {
    namespace: Box<str>,
    name: Box<str>,
}

impl Object {
    fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    fn of(metadata: &ObjectMeta) -> Self {
        Self::new(metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
    }
}

impl Drivers {
    /// Looks at each of them: it is only asked on the way to a refusal, and there are thousands at most.
    fn driving(&self, namespace: &str, release: &str) -> Vec<(String, String)> {
        let driving = self.0.values().flatten().filter(|driver| driver.drives(namespace, release));
        driving.map(|driver| (driver.namespace.clone(), driver.name.clone())).collect()
    }
}

impl Feed<Watched> for Drivers {
    fn fresh(&self) -> Self {
        Self::default()
    }

    fn apply(&mut self, object: &Watched) {
        let driver = object.driver();
        let reads = driver.is_some();
        let before = self.0.insert(Object::of(&object.metadata), driver);
        // Flux writes its status again and again; one line is enough.
        if !reads && !matches!(before, Some(None)) {
            let Object { namespace, name } = Object::of(&object.metadata);
            tracing::warn!(%namespace, %name, "a HelmRelease does not read, so it is taken to drive nothing");
        }
    }

    fn delete(&mut self, object: &Watched) {
        self.0.remove(&Object::of(&object.metadata));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::world::kubernetes::definition::Definition;

    fn watched(name: &str, spec: Value) -> Watched {
        let object = json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": name, "namespace": "shop", "managedFields": []}, "spec": spec, "status": {"conditions": []},
        });
        serde_json::from_value(object).unwrap()
    }

    fn known(helm_releases: &HelmReleases, release: &str) -> Option<usize> {
        helm_releases.driving("shop", release).map(|found| found.len())
    }

    fn installed() -> Definition {
        Definition::Installed { uid: "a".to_owned() }
    }

    #[test]
    fn what_is_not_installed_drives_nothing_and_what_is_not_listed_is_not_known() {
        let helm_releases = HelmReleases::new();
        let origin = Origin { namespace: "shop".to_owned(), name: "web".to_owned() };
        assert_eq!((known(&helm_releases, "web"), helm_releases.told(&origin, "web")), (None, None));
        helm_releases.0.definition.send_replace(Definition::Absent);
        assert_eq!((known(&helm_releases, "web"), helm_releases.told(&origin, "web")), (Some(0), Some(None)));
        helm_releases.0.definition.send_replace(installed());
        assert_eq!(known(&helm_releases, "web"), None);

        let mut drivers = Drivers::default();
        drivers.apply(&watched("web", json!({"storageNamespace": "records"})));
        helm_releases.0.objects.replace(drivers);
        assert_eq!(known(&helm_releases, "web"), Some(0));
        assert_eq!(helm_releases.told(&origin, "web"), Some(Some("records".to_owned())));
        assert_eq!(helm_releases.told(&origin, "other"), Some(None));
        // The copy of a definition's earlier life is of no use.
        helm_releases.0.objects.clear(Drivers::default());
        assert_eq!(known(&helm_releases, "web"), None);
    }

    #[test]
    fn helm_releases_come_change_and_go() {
        let mut drivers = Drivers::default();
        drivers.apply(&watched("one", json!({"releaseName": "web"})));
        drivers.apply(&watched("two", json!({"releaseName": "web", "values": {"large": true}})));
        assert_eq!(drivers.driving("shop", "web").len(), 2);
        drivers.apply(&watched("two", json!({"releaseName": "other"})));
        assert_eq!(drivers.driving("shop", "web"), [("shop".to_owned(), "one".to_owned())]);
        drivers.apply(&watched("one", json!("of another shape")));
        assert!(drivers.driving("shop", "web").is_empty());
        drivers.delete(&watched("one", json!({})));
        drivers.delete(&watched("two", json!({})));
        assert!(drivers.0.is_empty());
    }
}
