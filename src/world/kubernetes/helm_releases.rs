//! A copy of Flux's HelmReleases.

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

use super::custom::{CustomKind, CustomObjects};
use super::namespaced_name::NamespacedName;
use super::reach::Reach;
use super::watch::Feed;
use crate::engine::flux::{self, DriftDetection, Driver, HelmRelease, HelmReleaseSpec, HelmReleaseStatus};
use crate::engine::managed::Origin;
use crate::engine::object::{OwnedMetadata, PROTECTED};
use crate::engine::release::ReleaseRef;
use crate::log_limit::OF_CLIENTS;
use crate::readiness::Gate;

const HELM_RELEASES: CustomKind =
    CustomKind { group: flux::GROUP, kind: flux::HELM_RELEASE, definition: flux::DEFINITION };

/// The HelmReleases of a cluster. Unknown until they are followed.
#[derive(Debug)]
pub(super) struct HelmReleases(Arc<CustomObjects<Drivers>>);

impl HelmReleases {
    /// HelmReleases of a cluster that is not watched yet.
    pub(super) fn new() -> Self {
        Self(Arc::new(CustomObjects::new(HELM_RELEASES)))
    }

    /// The HelmReleases, by namespace and name, that drive the release with these records; `None` if the copy is not in
    /// sync. If the definition is not installed, there are none.
    pub(super) fn driving(&self, namespace: &str, release: &str) -> Option<Vec<(String, String)>> {
        self.0.read(|drivers| drivers.driving(namespace, release))
    }

    /// The releases in this cluster that Flux reports as installed into a namespace; `None` if the copy is not in sync.
    pub(super) fn installed_into(&self, target_namespace: &str) -> Option<Vec<ReleaseRef>> {
        self.0.read(|drivers| {
            let here = drivers.0.values().filter_map(|known| known.driver.as_ref());
            let here = here.filter(|driver| driver.kube_config.is_none());
            here.filter_map(|driver| driver.installed_in(target_namespace).cloned()).collect()
        })
    }

    /// The namespace in which Flux has installed a release for the HelmRelease of an object; `None` if the copy is not in sync.
    pub(super) fn installed_in(
        &self,
        origin: &Origin,
        release: &str,
        target_namespace: &str,
    ) -> Option<Option<String>> {
        self.0.read(|drivers| {
            let known = drivers.0.get(&NamespacedName::new(&origin.namespace, &origin.name))?;
            let driver = known.driver.as_ref()?;
            driver.records_of(release, target_namespace).map(str::to_owned)
        })
    }

    /// The HelmReleases with this metadata, as far as the copy has them in that very version, and the names of the others. `None` if
    /// the copy is not in sync.
    pub(super) fn seen(&self, listed: &[ObjectMeta]) -> Option<SeenHelmReleases> {
        let split = |drivers: &Drivers| {
            let mut split = SeenHelmReleases::default();
            for metadata in listed {
                match drivers.at_version(metadata) {
                    Some(known) => split.drivers.extend(known.driver.clone()),
                    None => split.unseen.extend(metadata.name.clone()),
                }
            }
            split
        };
        self.0.read(split)
    }

    /// All that can be parsed; `None` if the copy is not in sync.
    pub(super) fn all(&self) -> Option<Vec<Driver>> {
        self.0.read(|drivers| drivers.0.values().filter_map(|known| known.driver.clone()).collect())
    }

    /// Follows them and their definition, forever.
    pub(super) fn follow(&self, client: &Client, reach: &Reach, gate: Gate, tasks: &mut JoinSet<()>) {
        tasks.spawn(Arc::clone(&self.0).follow_definition(client.clone()));
        tasks.spawn(Arc::clone(&self.0).follow::<WatchedHelmRelease>(client.clone(), reach.clone(), gate));
    }
}

/// Some HelmReleases, as far as the copy has seen them.
#[derive(Debug, Default)]
pub(super) struct SeenHelmReleases {
    pub(super) drivers: Vec<Driver>,
    /// The names of those that are new or have changed.
    pub(super) unseen: Vec<String>,
}

/// A watched HelmRelease. Fields that rules do not use, above all values, are not kept.
#[derive(Debug, Clone, Deserialize)]
struct WatchedHelmRelease {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Lenient<HelmReleaseSpec>,
    #[serde(default)]
    status: Lenient<HelmReleaseStatus>,
}

/// A part that may have another shape: one such object must not end the watch of all objects.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Lenient<T> {
    Parsed(T),
    Unparsed(IgnoredAny),
}

impl<T: Default> Default for Lenient<T> {
    fn default() -> Self {
        Self::Parsed(T::default())
    }
}

impl WatchedHelmRelease {
    /// The driver; `None` if the spec cannot be parsed.
    fn driver(&self) -> Option<Driver> {
        let Lenient::Parsed(spec) = &self.spec else { return None };
        let status = match &self.status {
            Lenient::Parsed(status) => status.clone(),
            Lenient::Unparsed(_) => HelmReleaseStatus::default(),
        };
        let ObjectMeta { namespace, name, creation_timestamp, deletion_timestamp, annotations, .. } = &self.metadata;
        let protected = annotations.iter().flatten().filter(|(key, _)| *key == PROTECTED);
        let metadata = OwnedMetadata {
            namespace: namespace.clone().unwrap_or_default(),
            name: name.clone().unwrap_or_default(),
            creation_timestamp: creation_timestamp.as_ref().map(|time| time.0),
            deletion_timestamp: deletion_timestamp.as_ref().map(|time| time.0),
            annotations: protected.map(|(key, value)| (key.clone(), value.clone())).collect(),
        };
        let spec = HelmReleaseSpec { drift_detection: DriftDetection::default(), ..spec.clone() };
        Some(Driver::from(&HelmRelease { metadata, spec, status }))
    }
}

impl Resource for WatchedHelmRelease {
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

/// Every HelmRelease.
#[derive(Debug, Default)]
struct Drivers(HashMap<NamespacedName, KnownHelmRelease>);

/// A HelmRelease as it was at a version.
#[derive(Debug)]
struct KnownHelmRelease {
    resource_version: Box<str>,
    /// `None` if it cannot be parsed.
    driver: Option<Driver>,
}

impl Drivers {
    fn at_version(&self, metadata: &ObjectMeta) -> Option<&KnownHelmRelease> {
        let known = self.0.get(&NamespacedName::of(metadata))?;
        let listed = metadata.resource_version.as_deref().filter(|version| !version.is_empty())?;
        (*known.resource_version == *listed).then_some(known)
    }

    /// Looks at each HelmRelease. This happens only before a denial, and there are thousands at most.
    fn driving(&self, namespace: &str, release: &str) -> Vec<(String, String)> {
        let driving = self
            .0
            .values()
            .filter_map(|known| known.driver.as_ref())
            .filter(|driver| driver.drives(namespace, release));
        driving.map(|driver| (driver.namespace.clone(), driver.name.clone())).collect()
    }
}

impl Feed<WatchedHelmRelease> for Drivers {
    fn fresh(&self) -> Self {
        Self::default()
    }

    fn apply(&mut self, object: &WatchedHelmRelease) {
        let driver = object.driver();
        let reads = driver.is_some();
        let resource_version = object.metadata.resource_version.as_deref().unwrap_or_default().into();
        let known = KnownHelmRelease { resource_version, driver };
        let before = self.0.insert(NamespacedName::of(&object.metadata), known);
        // Flux writes its status again and again, so this is logged once.
        if !reads && !matches!(before, Some(KnownHelmRelease { driver: None, .. })) {
            let NamespacedName { namespace, name } = NamespacedName::of(&object.metadata);
            let kind = "a HelmRelease cannot be parsed and is ignored";
            if let Some(suppressed) = OF_CLIENTS.admit(kind) {
                tracing::warn!(%namespace, %name, suppressed, "{kind}");
            }
        }
    }

    fn delete(&mut self, object: &WatchedHelmRelease) {
        self.0.remove(&NamespacedName::of(&object.metadata));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::world::kubernetes::definition::Definition;

    fn watched(name: &str, spec: Value) -> WatchedHelmRelease {
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
        assert_eq!((known(&helm_releases, "web"), helm_releases.installed_in(&origin, "web", "shop")), (None, None));
        helm_releases.0.definition.send_replace(Definition::Absent);
        assert_eq!(
            (known(&helm_releases, "web"), helm_releases.installed_in(&origin, "web", "shop")),
            (Some(0), Some(None))
        );
        assert_eq!(helm_releases.all().map(|all| all.len()), Some(0));
        helm_releases.0.definition.send_replace(installed());
        assert_eq!((known(&helm_releases, "web"), helm_releases.all().map(|all| all.len())), (None, None));

        let mut drivers = Drivers::default();
        let mut installed_there = watched("web", json!({"storageNamespace": "records"}));
        let status = json!({"storageNamespace": "records", "history": [
            {"name": "web", "namespace": "shop", "status": "deployed"}]});
        installed_there.status = serde_json::from_value(status).unwrap();
        drivers.apply(&installed_there);
        helm_releases.0.objects.replace(drivers);
        assert_eq!(known(&helm_releases, "web"), Some(0));
        assert_eq!(helm_releases.all().unwrap().iter().map(|it| &*it.name).collect::<Vec<_>>(), ["web"]);
        assert_eq!(helm_releases.installed_in(&origin, "web", "shop"), Some(Some("records".to_owned())));
        assert_eq!(helm_releases.installed_in(&origin, "other", "shop"), Some(None));
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
