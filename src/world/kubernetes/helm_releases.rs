//! A copy of Flux's HelmReleases.

use std::collections::HashMap;
use std::sync::Arc;

use interlock_engine::evidence::Knowledge;
use interlock_engine::managed::Origin;
use interlock_engine::object::{OwnedMetadata, PROTECTED};
use interlock_engine::owners::flux::{
    self, CandidateSearch, DriftSpec, Driver, HelmRelease, HelmReleaseSpec, HelmReleaseStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::task::JoinSet;

use super::custom::{CustomKind, CustomObjects};
use super::intake::{IntakeClient, Projected, Unread};
use super::namespaced_name::NamespacedName;
use super::reach::Reach;
use super::reader::Unavailable;
use super::watch::Feed;
use crate::log_limit::OF_CLIENTS;
use crate::readiness::Gate;

/// The most that is kept of the HelmReleases of one namespace, in bytes: some fifteen thousand ordinary ones. Nobody's fill up the
/// memory of others.
const MAX_NAMESPACE_BYTES: usize = 8 << 20;

/// What a HelmRelease takes besides its text, in bytes.
const HELM_RELEASE_BYTES: usize = 400;

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

    /// The HelmReleases, by namespace and name, that may be behind a release; `None` if the copy is not in sync. If the definition is
    /// not installed, there are none.
    ///
    /// # Errors
    /// Why those of the records' namespace are too many or too large.
    pub(super) fn candidates(&self, search: CandidateSearch<'_>) -> Option<Result<Vec<(String, String)>, String>> {
        self.0.read(|drivers| Some(drivers.candidates(search))).map(|found| found.unwrap_or(Ok(Vec::new())))
    }

    /// The namespace in which Flux reports the release of an object for its HelmRelease; `None` if the copy is not in sync.
    pub(super) fn records_of(&self, origin: &Origin, release: &str, target_namespace: &str) -> Option<Option<String>> {
        self.0.read(|drivers| {
            let known = drivers.by_name.get(&NamespacedName::new(&origin.namespace, &origin.name))?;
            let driver = known.driver.as_ref().ok()?;
            driver.records_of(release, target_namespace).map(str::to_owned)
        })
    }

    /// The HelmReleases with this metadata, as far as the copy has them in that very version, and the names of the others. `None` if
    /// the copy is not in sync.
    pub(super) fn seen(&self, listed: &[ObjectMeta]) -> Option<SeenHelmReleases> {
        let split = |drivers: &Drivers| {
            let mut split = SeenHelmReleases::default();
            for metadata in listed {
                match drivers.at_version(metadata).map(|known| &known.driver) {
                    Some(Ok(driver)) => split.drivers.push(driver.clone()),
                    Some(Err(Unread::Shape(_))) => {}
                    // More is kept of one that is read alone.
                    Some(Err(Unread::TooLarge)) | None => split.unseen.extend(metadata.name.clone()),
                }
            }
            split
        };
        self.0.read(split)
    }

    /// All that can be parsed; `None` if the copy is not in sync.
    pub(super) fn all(&self) -> Option<Vec<Driver>> {
        self.0.read(|drivers| drivers.readable().cloned().collect())
    }

    /// Follows them and their definition, forever.
    pub(super) fn follow(&self, client: &IntakeClient, reach: &Reach, gate: Gate, tasks: &mut JoinSet<()>) {
        tasks.spawn(Arc::clone(&self.0).follow_definition(client.clone()));
        tasks.spawn(Arc::clone(&self.0).follow(client.clone(), reach.clone(), gate));
    }
}

/// Some HelmReleases, as far as the copy has seen them.
#[derive(Debug, Default)]
pub(super) struct SeenHelmReleases {
    pub(super) drivers: Vec<Driver>,
    /// The names of those that are new or have changed.
    pub(super) unseen: Vec<String>,
}

/// A HelmRelease that is stored and cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("HelmRelease {namespace}/{name} {why}")]
pub(super) struct UnreadHelmRelease {
    namespace: String,
    name: String,
    why: Unread,
}

impl UnreadHelmRelease {
    pub(super) fn new(namespace: &str, name: &str, why: Unread) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned(), why }
    }

    /// The answer to a question for which it must be read.
    pub(super) fn into_answer(self) -> Result<Knowledge, Unavailable> {
        match self.why {
            Unread::TooLarge => Ok(Knowledge::HelmReleasesOverLimit(self.to_string())),
            Unread::Shape(_) => Err(self.to_string()),
        }
    }
}

/// The driver of a HelmRelease, without what Flux leaves as it is.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn driver(object: &Projected) -> Result<Driver, Unread> {
    let ObjectMeta { namespace, name, creation_timestamp, deletion_timestamp, annotations, .. } = object.metadata();
    let protected = annotations.iter().flatten().filter(|(key, _)| *key == PROTECTED);
    let metadata = OwnedMetadata {
        namespace: namespace.clone().unwrap_or_default(),
        name: name.clone().unwrap_or_default(),
        creation_timestamp: creation_timestamp.as_ref().map(|time| time.0),
        deletion_timestamp: deletion_timestamp.as_ref().map(|time| time.0),
        annotations: protected.map(|(key, value)| (key.clone(), value.clone())).collect(),
    };
    let spec: HelmReleaseSpec = object.spec()?;
    // Rules go by the spec where only the status has another shape.
    let status = match object.status() {
        Err(Unread::Shape(_)) => HelmReleaseStatus::default(),
        status => status?,
    };
    Ok(Driver::from(&HelmRelease { metadata, spec, status }))
}

/// The driver of a HelmRelease that was read alone.
///
/// # Errors
/// Why it cannot be read.
pub(super) fn whole_driver(object: &Projected) -> Result<Driver, Unread> {
    let mut driver = driver(object)?;
    DriftSpec { drift_detection: driver.drift_detection } = object.spec()?;
    Ok(driver)
}

/// Every HelmRelease.
#[derive(Debug, Default)]
struct Drivers {
    by_name: HashMap<NamespacedName, KnownHelmRelease>,
    bytes_of_namespaces: HashMap<Box<str>, usize>,
}

/// A HelmRelease as it was at a version.
#[derive(Debug)]
struct KnownHelmRelease {
    resource_version: Box<str>,
    driver: Result<Driver, Unread>,
    /// What it takes in memory, in bytes.
    bytes: usize,
}

impl Drivers {
    fn at_version(&self, metadata: &ObjectMeta) -> Option<&KnownHelmRelease> {
        let known = self.by_name.get(&NamespacedName::of(metadata))?;
        let listed = metadata.resource_version.as_deref().filter(|version| !version.is_empty())?;
        (*known.resource_version == *listed).then_some(known)
    }

    fn readable(&self) -> impl Iterator<Item = &Driver> {
        self.by_name.values().filter_map(|known| known.driver.as_ref().ok())
    }

    /// Looks at each HelmRelease. This happens only before a denial, and there are thousands at most.
    fn candidates(&self, search: CandidateSearch<'_>) -> Result<Vec<(String, String)>, String> {
        // One of the records' namespace that is too large may drive the release.
        let too_large = self.by_name.iter().find(|(it, known)| {
            *it.namespace == *search.namespace && known.driver.as_ref().is_err_and(|why| *why == Unread::TooLarge)
        });
        if let Some((NamespacedName { namespace, name }, _)) = too_large {
            return Err(UnreadHelmRelease::new(namespace, name, Unread::TooLarge).to_string());
        }
        let found = search.among(self.readable()).map_err(|too_many| too_many.to_string())?;
        Ok(found.into_iter().map(|driver| (driver.namespace.clone(), driver.name.clone())).collect())
    }

    /// Takes what a HelmRelease takes from the share of its namespace, if that is enough.
    fn takes(&mut self, name: &NamespacedName, bytes: usize) -> bool {
        let used = self.bytes_of_namespaces.entry(name.namespace.clone()).or_default();
        let fits = *used + bytes <= MAX_NAMESPACE_BYTES;
        *used += if fits { bytes } else { 0 };
        fits
    }

    fn remove(&mut self, name: &NamespacedName) -> Option<KnownHelmRelease> {
        let known = self.by_name.remove(name)?;
        if let Some(used) = self.bytes_of_namespaces.get_mut(&name.namespace) {
            *used = used.saturating_sub(known.bytes);
            if *used == 0 {
                self.bytes_of_namespaces.remove(&name.namespace);
            }
        }
        Some(known)
    }
}

impl Feed<Projected> for Drivers {
    fn fresh(&self) -> Self {
        Self::default()
    }

    fn apply(&mut self, object: &Projected) {
        let name = NamespacedName::of(object.metadata());
        let before = self.remove(&name);
        let mut driver = driver(object);
        let mut bytes = HELM_RELEASE_BYTES + object.bytes();
        if !self.takes(&name, bytes) {
            (driver, bytes) = (Err(Unread::TooLarge), 0);
        }
        // Flux writes its status again and again, so this is logged once.
        let is_news = before.is_none_or(|before| before.driver.is_ok());
        if let Some(why) = driver.as_ref().err().filter(|_| is_news) {
            let kind = "a HelmRelease cannot be read";
            if let Some(suppressed) = OF_CLIENTS.admit(kind) {
                let NamespacedName { namespace, name } = &name;
                tracing::warn!(%namespace, %name, %why, suppressed, "{kind}");
            }
        }
        let resource_version = object.metadata().resource_version.as_deref().unwrap_or_default().into();
        self.by_name.insert(name, KnownHelmRelease { resource_version, driver, bytes });
    }

    fn delete(&mut self, object: &Projected) {
        self.remove(&NamespacedName::of(object.metadata()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::world::kubernetes::definition::Definition;

    fn watched(name: &str, spec: Value) -> Projected {
        serde_json::from_value(stored(name, spec)).unwrap()
    }

    fn stored(name: &str, spec: Value) -> Value {
        json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": name, "namespace": "shop", "managedFields": []}, "spec": spec, "status": {"conditions": []},
        })
    }

    fn known(helm_releases: &HelmReleases, release: &str) -> Option<usize> {
        let search = CandidateSearch { namespace: "shop", release, account: None };
        helm_releases.candidates(search).map(|found| found.unwrap().len())
    }

    fn installed() -> Definition {
        Definition::Installed { uid: "a".to_owned() }
    }

    #[test]
    fn what_is_not_installed_drives_nothing_and_what_is_not_listed_is_not_known() {
        let helm_releases = HelmReleases::new();
        let origin = Origin { namespace: "shop".to_owned(), name: "web".to_owned() };
        assert_eq!((known(&helm_releases, "web"), helm_releases.records_of(&origin, "web", "shop")), (None, None));
        helm_releases.0.definition.send_replace(Definition::Absent);
        assert_eq!(
            (known(&helm_releases, "web"), helm_releases.records_of(&origin, "web", "shop")),
            (Some(0), Some(None))
        );
        assert_eq!(helm_releases.all().map(|all| all.len()), Some(0));
        helm_releases.0.definition.send_replace(installed());
        assert_eq!((known(&helm_releases, "web"), helm_releases.all().map(|all| all.len())), (None, None));

        let mut drivers = Drivers::default();
        let mut installed_there = stored("web", json!({"storageNamespace": "records"}));
        installed_there["status"] = json!({"storageNamespace": "records", "history": [
            {"name": "web", "namespace": "shop", "status": "deployed"}]});
        drivers.apply(&serde_json::from_value(installed_there).unwrap());
        helm_releases.0.objects.replace(drivers);
        assert_eq!(known(&helm_releases, "web"), Some(0));
        assert_eq!(helm_releases.all().unwrap().iter().map(|it| &*it.name).collect::<Vec<_>>(), ["web"]);
        assert_eq!(helm_releases.records_of(&origin, "web", "shop"), Some(Some("records".to_owned())));
        assert_eq!(helm_releases.records_of(&origin, "other", "shop"), Some(None));
        // The copy of a definition's earlier life is of no use.
        helm_releases.0.objects.clear(Drivers::default());
        assert_eq!(known(&helm_releases, "web"), None);
    }

    #[test]
    fn helm_releases_come_change_and_go() {
        let driving = |drivers: &Drivers| {
            drivers.candidates(CandidateSearch { namespace: "shop", release: "web", account: None }).unwrap()
        };
        let mut drivers = Drivers::default();
        drivers.apply(&watched("one", json!({"releaseName": "web"})));
        drivers.apply(&watched("two", json!({"releaseName": "web", "values": {"large": true}})));
        assert_eq!(driving(&drivers).len(), 2);
        drivers.apply(&watched("two", json!({"releaseName": "other"})));
        assert_eq!(driving(&drivers), [("shop".to_owned(), "one".to_owned())]);
        drivers.apply(&watched("one", json!("of another shape")));
        assert!(driving(&drivers).is_empty());
        drivers.delete(&watched("one", json!({})));
        drivers.delete(&watched("two", json!({})));
        assert!(drivers.by_name.is_empty() && drivers.bytes_of_namespaces.is_empty());
    }

    #[test]
    fn a_large_one_leaves_questions_about_its_own_namespace_unanswered_and_hides_no_other() {
        let cut = |namespace: &str| {
            let mut object = stored("large", json!({}));
            object["metadata"]["namespace"] = namespace.into();
            object["cut"] = true.into();
            serde_json::from_value::<Projected>(object).unwrap()
        };
        let search = CandidateSearch { namespace: "shop", release: "web", account: None };
        let mut drivers = Drivers::default();
        drivers.apply(&cut("evil"));
        drivers.apply(&watched("one", json!({"releaseName": "web"})));
        assert_eq!(drivers.candidates(search).map(|found| found.len()), Ok(1));
        drivers.apply(&cut("shop"));
        let why = drivers.candidates(search).unwrap_err();
        assert_eq!(why, "HelmRelease shop/large is too large in the fields that are read");
        drivers.delete(&cut("shop"));
        assert_eq!(drivers.candidates(search).map(|found| found.len()), Ok(1));
    }

    #[test]
    fn the_helm_releases_of_a_namespace_have_a_share_of_the_memory() {
        let mut drivers = Drivers::default();
        let large = |number: usize| {
            let mut object = stored(&format!("r{number}"), json!({"releaseName": "x".repeat(30 << 10)}));
            object["metadata"]["namespace"] = "evil".into();
            serde_json::from_value::<Projected>(object).unwrap()
        };
        let all: Vec<_> = (0..400).map(large).collect();
        all.iter().for_each(|object| drivers.apply(object));
        drivers.apply(&watched("one", json!({"releaseName": "web"})));
        assert!((200..300).contains(&drivers.readable().count()), "{}", drivers.readable().count());
        let search = CandidateSearch { namespace: "shop", release: "web", account: None };
        assert_eq!(drivers.candidates(search).map(|found| found.len()), Ok(1));
        all.iter().for_each(|object| drivers.delete(object));
        assert_eq!(drivers.bytes_of_namespaces.len(), 1);
    }
}
