//! A copy of Flux's HelmReleases.

use std::collections::HashMap;

use interlock_engine::evidence::Candidates;
use interlock_engine::managed::Origin;
use interlock_engine::object::{OwnedMetadata, PROTECTED};
use interlock_engine::owners::{
    self, CandidateSearch, DriftSpec, Driver, HELM_RELEASE_DEFINITION, HelmRelease, HelmReleaseSpec, HelmReleaseStatus,
    InstalledAt,
};
use interlock_engine::release::ReleaseRef;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::custom::{CustomFeed, CustomKind, CustomObjects};
use super::intake::{Projected, Unread};
use super::namespaced_name::NamespacedName;
use super::reader::Unavailable;
use super::watch::Feed;
use crate::log_limit::CLIENT_LOG_LIMIT;

/// The memory for the HelmReleases of one namespace, in bytes: some fifteen thousand ordinary HelmReleases. The limit keeps one
/// namespace from using the memory of others.
const MAX_NAMESPACE_BYTES: usize = 8 << 20;

/// The memory of a HelmRelease in addition to its text, in bytes.
const HELM_RELEASE_BYTES: usize = 400;

/// The HelmReleases of a cluster.
pub(super) type HelmReleases = CustomObjects<Drivers>;

impl HelmReleases {
    /// The HelmReleases, by namespace and name, that may drive a release; `None` if the copy is not in sync. Without the
    /// definition, there are none.
    ///
    /// # Errors
    /// Why the HelmReleases in the namespace of the records are too many or too large.
    pub(super) fn candidates(&self, search: CandidateSearch<'_>) -> Option<Result<Vec<(String, String)>, String>> {
        self.read(|drivers| Some(drivers.candidates(search))).map(|found| found.unwrap_or(Ok(Vec::new())))
    }

    /// Where Flux reports the release of an object for its HelmRelease; `None` if the copy is not in sync.
    pub(super) fn installed_at(
        &self,
        origin: &Origin,
        release: &str,
        target_namespace: &str,
    ) -> Option<Option<InstalledAt>> {
        self.read(|drivers| {
            let known = drivers.by_name.get(&NamespacedName::new(&origin.namespace, &origin.name))?;
            let driver = known.driver.as_ref().ok()?;
            driver.installed_at(release, target_namespace)
        })
    }

    /// The HelmReleases that the copy has in the listed version, and the names of the others; `None` if the copy is not in sync.
    pub(super) fn seen(&self, listed: &[ObjectMeta]) -> Option<SeenHelmReleases> {
        self.read(|drivers| drivers.seen(listed))
    }

    /// The HelmReleases that name these records and match; none if the copy is not in sync.
    pub(super) fn naming(&self, records: &ReleaseRef, matches: &dyn Fn(&Driver) -> bool) -> Vec<Driver> {
        let found = self.read(|drivers| {
            let naming = drivers.readable().filter(|driver| driver.drives(&records.namespace, &records.name));
            Some(naming.filter(|driver| matches(driver)).cloned().collect())
        });
        found.flatten().unwrap_or_default()
    }

    /// The readable HelmReleases that match; `None` if the copy is not in sync.
    pub(super) fn matching(&self, matches: impl Fn(&Driver) -> bool) -> Option<Vec<Driver>> {
        self.read(|drivers| drivers.readable().filter(|driver| matches(driver)).cloned().collect())
    }
}

/// Some HelmReleases, as far as the copy has seen them.
#[derive(Debug, Default)]
pub(super) struct SeenHelmReleases {
    pub(super) drivers: Vec<Driver>,
    /// The names of the new and the changed HelmReleases.
    pub(super) unseen: Vec<String>,
}

/// A stored HelmRelease that cannot be read.
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

    /// The answer to a query that needs the HelmRelease.
    pub(super) fn into_answer(self) -> Result<Candidates, Unavailable> {
        match self.why {
            Unread::TooLarge => Ok(Err(self.to_string())),
            Unread::Shape(_) => Err(self.to_string()),
        }
    }
}

/// The driver of a HelmRelease, without the drift that Flux ignores.
///
/// # Errors
/// Why the HelmRelease cannot be read.
pub(crate) fn driver(object: &Projected) -> Result<Driver, Unread> {
    let ObjectMeta { namespace, name, uid, generation, creation_timestamp, deletion_timestamp, annotations, .. } =
        object.metadata();
    let protected = annotations.iter().flatten().filter(|(key, _)| *key == PROTECTED);
    let metadata = OwnedMetadata {
        namespace: namespace.clone().unwrap_or_default(),
        name: name.clone().unwrap_or_default(),
        uid: uid.clone().unwrap_or_default(),
        generation: generation.unwrap_or_default(),
        creation_timestamp: creation_timestamp.as_ref().map(|time| time.0),
        deletion_timestamp: deletion_timestamp.as_ref().map(|time| time.0),
        annotations: protected.map(|(key, value)| (key.clone(), value.clone())).collect(),
    };
    let spec: HelmReleaseSpec = object.spec()?;
    // Rules use the spec, even if the status has another shape.
    let status = match object.status() {
        Err(Unread::Shape(_)) => HelmReleaseStatus::default(),
        status => status?,
    };
    Ok(Driver::from(&HelmRelease { metadata, spec, status }))
}

/// The driver of a HelmRelease that was read alone, with the drift that Flux ignores.
///
/// # Errors
/// Why the HelmRelease cannot be read.
pub(super) fn full_driver(object: &Projected) -> Result<Driver, Unread> {
    let mut driver = driver(object)?;
    DriftSpec { drift_detection: driver.drift_detection } = object.spec()?;
    Ok(driver)
}

/// Every HelmRelease.
#[derive(Debug, Default)]
pub(super) struct Drivers {
    by_name: HashMap<NamespacedName, KnownHelmRelease>,
    bytes_of_namespaces: HashMap<Box<str>, usize>,
}

/// A version of a HelmRelease.
#[derive(Debug)]
struct KnownHelmRelease {
    resource_version: Box<str>,
    driver: Result<Driver, Unread>,
    /// The memory of the HelmRelease, in bytes.
    bytes: usize,
}

impl Drivers {
    fn seen(&self, listed: &[ObjectMeta]) -> SeenHelmReleases {
        let mut seen = SeenHelmReleases::default();
        for metadata in listed {
            match self.at_version(metadata).map(|known| &known.driver) {
                Some(Ok(driver)) => seen.drivers.push(driver.clone()),
                Some(Err(Unread::Shape(_))) => {}
                // A read of a single object keeps more of it.
                Some(Err(Unread::TooLarge)) | None => seen.unseen.extend(metadata.name.clone()),
            }
        }
        seen
    }

    fn at_version(&self, metadata: &ObjectMeta) -> Option<&KnownHelmRelease> {
        let known = self.by_name.get(&NamespacedName::of(metadata))?;
        let listed = metadata.resource_version.as_deref().filter(|version| !version.is_empty())?;
        (*known.resource_version == *listed).then_some(known)
    }

    fn readable(&self) -> impl Iterator<Item = &Driver> {
        self.by_name.values().filter_map(|known| known.driver.as_ref().ok())
    }

    /// Examines every HelmRelease. This happens only before a denial, and there are at most thousands of HelmReleases.
    fn candidates(&self, search: CandidateSearch<'_>) -> Result<Vec<(String, String)>, String> {
        // A HelmRelease in the namespace of the records that is too large may drive the release.
        let too_large = self.by_name.iter().find(|(it, known)| {
            *it.namespace == *search.namespace && known.driver.as_ref().is_err_and(|why| *why == Unread::TooLarge)
        });
        if let Some((NamespacedName { namespace, name }, _)) = too_large {
            return Err(UnreadHelmRelease::new(namespace, name, Unread::TooLarge).to_string());
        }
        let found = search.among(self.readable()).map_err(|too_many| too_many.to_string())?;
        Ok(found.into_iter().map(|driver| (driver.namespace.clone(), driver.name.clone())).collect())
    }

    /// Takes memory for a HelmRelease from the share of its namespace, if the share suffices.
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

impl CustomFeed for Drivers {
    const KIND: CustomKind = CustomKind {
        group: owners::HELM_RELEASES.0,
        kind: owners::HELM_RELEASES.1,
        definition: HELM_RELEASE_DEFINITION,
    };
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
        // Flux writes its status repeatedly, so the failure is logged once.
        let is_news = before.is_none_or(|before| before.driver.is_ok());
        if let Some(why) = driver.as_ref().err().filter(|_| is_news) {
            let kind = "a HelmRelease cannot be read";
            if let Some(suppressed) = CLIENT_LOG_LIMIT.admit(kind) {
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
        let search = CandidateSearch { namespace: "shop", release, account: None, stamped: None };
        helm_releases.candidates(search).map(|found| found.unwrap().len())
    }

    fn records_of(known: &HelmReleases, origin: &Origin, release: &str, target: &str) -> Option<Option<String>> {
        known.installed_at(origin, release, target).map(|found| found.map(|installed| installed.records))
    }

    fn installed() -> Definition {
        Definition::Installed { uid: "a".to_owned() }
    }

    #[test]
    fn helm_releases_are_unknown_until_they_are_listed() {
        let helm_releases = HelmReleases::default();
        let origin = Origin { namespace: "shop".to_owned(), name: "web".to_owned() };
        assert_eq!((known(&helm_releases, "web"), records_of(&helm_releases, &origin, "web", "shop")), (None, None));
        helm_releases.definition.send_replace(Definition::Absent);
        assert_eq!(
            (known(&helm_releases, "web"), records_of(&helm_releases, &origin, "web", "shop")),
            (Some(0), Some(None))
        );
        assert_eq!(helm_releases.matching(|_| true).map(|all| all.len()), Some(0));
        helm_releases.definition.send_replace(installed());
        assert_eq!((known(&helm_releases, "web"), helm_releases.matching(|_| true).map(|all| all.len())), (None, None));

        let mut drivers = Drivers::default();
        let mut installed_there = stored("web", json!({"storageNamespace": "records"}));
        installed_there["status"] = json!({"storageNamespace": "records", "history": [
            {"name": "web", "namespace": "shop", "status": "deployed"}]});
        drivers.apply(&serde_json::from_value(installed_there).unwrap());
        helm_releases.objects.replace(drivers);
        assert_eq!(known(&helm_releases, "web"), Some(0));
        assert_eq!(helm_releases.matching(|_| true).unwrap().iter().map(|it| &*it.name).collect::<Vec<_>>(), ["web"]);
        assert_eq!(records_of(&helm_releases, &origin, "web", "shop"), Some(Some("records".to_owned())));
        assert_eq!(records_of(&helm_releases, &origin, "other", "shop"), Some(None));
        // The copy from before the definition was deleted is not used.
        helm_releases.objects.clear(Drivers::default());
        assert_eq!(known(&helm_releases, "web"), None);
    }

    #[test]
    fn helm_releases_come_change_and_go() {
        let driving = |drivers: &Drivers| {
            drivers
                .candidates(CandidateSearch { namespace: "shop", release: "web", account: None, stamped: None })
                .unwrap()
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
    fn an_oversized_helm_release_affects_only_its_own_namespace() {
        let cut = |namespace: &str| {
            let mut object = stored("large", json!({}));
            object["metadata"]["namespace"] = namespace.into();
            object["cut"] = true.into();
            serde_json::from_value::<Projected>(object).unwrap()
        };
        let search = CandidateSearch { namespace: "shop", release: "web", account: None, stamped: None };
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
        let search = CandidateSearch { namespace: "shop", release: "web", account: None, stamped: None };
        assert_eq!(drivers.candidates(search).map(|found| found.len()), Ok(1));
        all.iter().for_each(|object| drivers.delete(object));
        assert_eq!(drivers.bytes_of_namespaces.len(), 1);
    }
}
