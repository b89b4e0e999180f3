//! Flux's HelmReleases, kept from a watch that runs while their definition is installed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ApiResource};
use kube::core::NamespaceResourceScope;
use kube::runtime::watcher::{self, Config, watcher};
use kube::{Client, Resource};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::sync::watch::{Receiver, Sender};

use super::definition::{self, Definition};
use super::kinds::Kinds;
use super::watch::{Attempts, Feed, Mirror, Session, feed};
use crate::flux::{self, Driver, HelmRelease, Metadata, Spec, Status};
use crate::managed::Origin;
use crate::server::readiness::Gate;

/// How often in a row, over some ten seconds, a watch may fail in a way that passes before that is told.
const PATIENCE: u32 = 5;

/// What is known of the HelmReleases of a cluster. Nothing, until it is followed.
#[derive(Debug)]
pub(super) struct HelmReleases {
    definition: Sender<Definition>,
    drivers: Mirror<Drivers>,
}

impl HelmReleases {
    /// Of a cluster that nobody watches yet.
    pub(super) fn new() -> Self {
        Self { definition: Sender::new(Definition::Unknown), drivers: Mirror::new(Drivers::default()) }
    }

    /// The HelmReleases, by namespace and name, that drive the release with these records; `None` where that is not known
    /// at the moment. Where the definition is not installed there are none.
    pub(super) fn driving(&self, namespace: &str, release: &str) -> Option<Vec<(String, String)>> {
        self.read(|drivers| drivers.driving(namespace, release))
    }

    /// Where the HelmRelease of an object says that the records of its release are; `None` where that is not known at the
    /// moment.
    pub(super) fn told(&self, origin: &Origin, release: &str) -> Option<Option<String>> {
        self.read(|drivers| {
            let driver = drivers.0.get(&Object::new(&origin.namespace, &origin.name))?.as_ref()?;
            driver.records_of(release).map(str::to_owned)
        })
    }

    fn read<R: Default>(&self, read: impl FnOnce(&Drivers) -> R) -> Option<R> {
        match *self.definition.borrow() {
            Definition::Unknown => None,
            Definition::Absent => Some(R::default()),
            Definition::Installed { .. } => {
                let (read, in_sync) = self.drivers.read(read);
                in_sync.then_some(read)
            }
        }
    }

    /// Follows the definition, for ever.
    pub(super) async fn follow_definition(self: Arc<Self>, client: Client) {
        definition::follow(Api::all(client), flux::DEFINITION, &self.definition).await;
    }

    /// Follows the HelmReleases while their definition is installed, for ever. `gate` opens once it is known not to be, or
    /// with the first list, or when that has failed: a Flux that is broken must not keep us from starting.
    pub(super) async fn follow(self: Arc<Self>, client: Client, gate: Gate) {
        let mut definition = self.definition.subscribe();
        loop {
            let now = definition.borrow_and_update().clone();
            match &now {
                Definition::Installed { .. } => {
                    let mut other = definition.clone();
                    tokio::select! {
                        () = self.follow_installed(&client, &gate, definition.clone()) => {}
                        _ = other.wait_for(|then| *then != now) => {}
                    }
                    continue;
                }
                Definition::Absent => {
                    self.drivers.clear(Drivers::default());
                    gate.open();
                }
                Definition::Unknown => {}
            }
            // We hold the sender, so the channel does not end.
            let _ = definition.changed().await;
        }
    }

    /// One watch after the other. It may take a moment until a new definition is served, and the version that is served may
    /// change.
    async fn follow_installed(&self, client: &Client, gate: &Gate, mut definition: Receiver<Definition>) {
        let mut attempts = Attempts::default();
        let (mut told, mut in_a_row) = (false, 0);
        loop {
            attempts.start();
            definition.mark_unchanged();
            match Kinds::default().resolve(client, flux::GROUP, flux::HELM_RELEASE).await {
                Ok(Some(resource)) => {
                    told = false;
                    // Whoever drops this in the middle leaves no copy behind that claims to be in sync.
                    let session = Session(&self.drivers);
                    let api: Api<Watched> = Api::all_with(client.clone(), &resource);
                    let failure = feed(watcher(api, Config::default()), |object| object, &self.drivers, gate).await;
                    in_a_row = if self.drivers.read(|_| ()).1 { 0 } else { in_a_row + 1 };
                    drop(session);
                    if let Some(error) = failure.filter(|error| in_a_row >= PATIENCE || !passes(error))
                        && attempts.is_news(&error)
                    {
                        tracing::warn!(%error, "the watch of HelmReleases failed; which of them drive a release is not known meanwhile");
                    }
                }
                Ok(None) => {}
                Err(error) if !told => {
                    told = true;
                    tracing::warn!(%error, "in which version HelmReleases are served could not be read");
                }
                Err(_) => {}
            }
            gate.open();
            tokio::select! {
                () = attempts.pause() => {}
                _ = definition.changed() => {}
            }
        }
    }
}

/// Whether a failure is one of those with which an API server answers while a definition comes or goes.
fn passes(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => matches!(status.code, 404 | 429),
        _ => false,
    }
}

/// HelmReleases in the order in which they were created, those of one second by name.
pub(super) fn oldest_first(drivers: impl IntoIterator<Item = Driver>) -> Vec<Driver> {
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
    spec: Part<Spec>,
    #[serde(default)]
    status: Part<Status>,
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
            Part::Unread(_) => Status::default(),
        };
        let ObjectMeta { namespace, name, creation_timestamp, deletion_timestamp, .. } = &self.metadata;
        let metadata = Metadata {
            namespace: namespace.clone().unwrap_or_default(),
            name: name.clone().unwrap_or_default(),
            creation_timestamp: creation_timestamp.as_ref().map(|time| time.0),
            deletion_timestamp: deletion_timestamp.as_ref().map(|time| time.0),
            ..Metadata::default()
        };
        Some(Driver::from(&HelmRelease { metadata, spec: spec.clone(), status }))
    }
}

impl Resource for Watched {
    type DynamicType = ApiResource;
    type Scope = NamespaceResourceScope;

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
        helm_releases.definition.send_replace(Definition::Absent);
        assert_eq!((known(&helm_releases, "web"), helm_releases.told(&origin, "web")), (Some(0), Some(None)));
        helm_releases.definition.send_replace(installed());
        assert_eq!(known(&helm_releases, "web"), None);

        let mut drivers = Drivers::default();
        drivers.apply(&watched("web", json!({"storageNamespace": "records"})));
        helm_releases.drivers.replace(drivers);
        assert_eq!(known(&helm_releases, "web"), Some(0));
        assert_eq!(helm_releases.told(&origin, "web"), Some(Some("records".to_owned())));
        assert_eq!(helm_releases.told(&origin, "other"), Some(None));
        // The copy of a definition's earlier life is of no use.
        helm_releases.drivers.clear(Drivers::default());
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
