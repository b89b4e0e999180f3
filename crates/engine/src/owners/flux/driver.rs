//! The part of a HelmRelease that is kept in memory: which release it drives, and how.

use jiff::{SignedDuration, Timestamp};

use super::{DriftDetection, DriftSpec, HELM_RELEASE, HelmRelease, InstalledRelease, KubeConfig};
use crate::json::first_at;
use crate::release::{DriverRef, ReleaseRef};

/// The summary of a HelmRelease. It takes some 400 bytes, so that all HelmReleases of a cluster fit into memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// Incremented by the API server at each change of the spec.
    pub generation: i64,
    /// The server's clock at creation.
    pub created: Option<Timestamp>,
    /// Whether the HelmRelease is being deleted: Flux then uninstalls the release.
    pub being_deleted: bool,
    /// Whether Flux ignores the HelmRelease.
    pub suspended: bool,
    /// Whether it is annotated as protected.
    pub protected: bool,
    /// The cluster of the release in `spec`; `None` for this cluster.
    pub kube_config: Option<KubeConfig>,
    /// The longest time that Flux may wait without writing a record.
    pub longest_timeout: SignedDuration,
    /// What Flux ignores when it corrects drift. Only [`Self::read`] reads it, because it can be large.
    pub drift_detection: DriftDetection,
    account: Option<String>,
    wanted: ReleaseRef,
    installed: Option<ReleaseRef>,
    /// The namespace of the installed release's objects; empty if no release is installed.
    installed_into: String,
}

/// Where Flux has installed a release, according to the status of its HelmRelease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledAt {
    /// The namespace of the records.
    pub records: String,
    /// The account that the HelmRelease names.
    pub account: Option<String>,
}

impl From<&HelmRelease> for Driver {
    fn from(read: &HelmRelease) -> Self {
        let installed = read.installed().map(InstalledRelease::release);
        Self {
            namespace: read.metadata.namespace.clone(),
            name: read.metadata.name.clone(),
            uid: read.metadata.uid.clone(),
            generation: read.metadata.generation,
            created: read.metadata.creation_timestamp,
            being_deleted: read.metadata.deletion_timestamp.is_some(),
            suspended: read.spec.suspend,
            protected: read.metadata.is_protected(),
            kube_config: read.spec.kube_config.clone(),
            longest_timeout: read.longest_timeout(),
            drift_detection: DriftDetection::default(),
            account: read.account(),
            wanted: read.release(),
            installed,
            installed_into: read.installed().map(|it| it.snapshot.namespace.clone()).unwrap_or_default(),
        }
    }
}

impl Driver {
    /// Parses a HelmRelease from its JSON text, including the drift detection.
    ///
    /// # Errors
    /// The text is not a HelmRelease, or a field has another shape.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        let read: HelmRelease = serde_json::from_str(text)?;
        let drift: Option<Option<DriftSpec>> = first_at(text, &["spec"])?;
        let DriftSpec { drift_detection } = drift.flatten().unwrap_or_default();
        Ok(Self { drift_detection, ..Self::from(&read) })
    }

    /// Whether Flux writes the records of this release for the HelmRelease, now or later: the release in `spec`, and the
    /// installed one. They differ until the old one is uninstalled.
    #[must_use]
    pub fn drives(&self, namespace: &str, release: &str) -> bool {
        let wanted = self.wanted.namespace == namespace && self.wanted.name == release;
        wanted || self.has_installed(namespace, release)
    }

    /// Whether Flux reports the release as installed. Naming a release in `spec` is not enough for that.
    #[must_use]
    pub fn has_installed(&self, namespace: &str, release: &str) -> bool {
        self.installed.as_ref().is_some_and(|installed| installed.namespace == namespace && installed.name == release)
    }

    /// Whether `spec` names the release. A release that it does not name may still be installed.
    #[must_use]
    pub fn wants(&self, release: &ReleaseRef) -> bool {
        self.wanted == *release
    }

    /// The driven releases: the one in `spec`, and the installed one if it differs.
    pub fn driven(&self) -> impl Iterator<Item = &ReleaseRef> {
        let other = self.installed.as_ref().filter(|installed| **installed != self.wanted);
        [&self.wanted].into_iter().chain(other)
    }

    /// The namespace of the records, if Flux reports a release with this name and this namespace of its objects as installed in
    /// this cluster.
    #[must_use]
    pub fn records_of(&self, release: &str, target_namespace: &str) -> Option<&str> {
        let installed = self.installed.as_ref().filter(|installed| installed.name == release);
        let here = self.kube_config.is_none() && self.installed_into == target_namespace;
        installed.filter(|_| here).map(|installed| installed.namespace.as_str())
    }

    /// Where Flux has installed a release with this name and this namespace of its objects; `None` if it reports none.
    #[must_use]
    pub fn installed_at(&self, release: &str, target_namespace: &str) -> Option<InstalledAt> {
        let records = self.records_of(release, target_namespace)?.to_owned();
        Some(InstalledAt { records, account: self.account.clone() })
    }

    /// The release that Flux reports as installed.
    #[must_use]
    pub fn installed(&self) -> Option<&ReleaseRef> {
        self.installed.as_ref()
    }

    /// Whether its release is on the same cluster as that of another HelmRelease: both on this cluster, or both with
    /// the same configuration from the same namespace.
    #[must_use]
    pub fn shares_cluster(&self, other: &HelmRelease) -> bool {
        self.reaches(other.spec.kube_config.as_ref(), &other.metadata.namespace)
    }

    /// Like [`Self::shares_cluster`], for two kept HelmReleases.
    #[must_use]
    pub fn shares_cluster_with(&self, other: &Self) -> bool {
        self.reaches(other.kube_config.as_ref(), &other.namespace)
    }

    fn reaches(&self, kube_config: Option<&KubeConfig>, namespace: &str) -> bool {
        self.kube_config.as_ref() == kube_config && (self.kube_config.is_none() || self.namespace == namespace)
    }

    /// Whether Flux impersonates this user for it.
    #[must_use]
    pub fn is_account(&self, user: &str) -> bool {
        self.account.as_deref() == Some(user)
    }

    /// Whether Flux impersonates a user for it. Otherwise it works under its own account, or under one of its flags.
    #[must_use]
    pub fn names_account(&self) -> bool {
        self.account.is_some()
    }

    /// Whether a stamp names it, and not another HelmRelease that had its name before.
    #[must_use]
    pub fn is_named_by(&self, stamp: DriverRef<'_>) -> bool {
        (stamp.uid, stamp.namespace, stamp.name) == (&self.uid, &self.namespace, &self.name)
    }

    /// The stamp on the operations that Flux starts for it.
    #[must_use]
    pub fn reference(&self) -> DriverRef<'_> {
        let Self { namespace, name, uid, generation, .. } = self;
        DriverRef { kind: HELM_RELEASE, namespace, name, uid, generation: *generation }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn driver(spec: Value, status: Value) -> Driver {
        let metadata = json!({"name": "web", "namespace": "shop"});
        let read = serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status}));
        Driver::from(&read.unwrap())
    }

    #[test]
    fn a_release_is_driven_until_it_is_uninstalled() {
        let status = json!({"storageNamespace": "shop", "history": [{"name": "web", "status": "deployed"}]});
        let moved = driver(json!({"releaseName": "site", "storageNamespace": "records"}), status);
        assert!(moved.drives("shop", "web") && moved.drives("records", "site"));
        assert!(!moved.drives("shop", "site") && !moved.drives("records", "web"));
    }

    #[test]
    fn records_are_found_by_the_status_and_not_by_the_spec() {
        let spec = json!({"storageNamespace": "shop", "targetNamespace": "shop", "releaseName": "web"});
        assert_eq!(driver(spec.clone(), json!({"storageNamespace": "shop"})).records_of("web", "shop"), None);
        let history = json!([{"name": "web", "namespace": "shop", "status": "deployed"}]);
        let installed = driver(spec, json!({"storageNamespace": "old", "history": history}));
        assert_eq!(installed.records_of("web", "shop"), Some("old"));
        assert_eq!((installed.records_of("web", "bar"), installed.records_of("api", "shop")), (None, None));
    }

    #[test]
    fn accounts_are_in_the_namespace_of_the_helm_release() {
        let own = driver(json!({}), json!({}));
        let tenant = driver(json!({"serviceAccountName": "deployer"}), json!({}));
        let user = "system:serviceaccount:shop:deployer";
        assert!(tenant.is_account(user) && !own.is_account(user) && !own.is_account(""));
        for other in ["system:serviceaccount:bar:deployer", "system:serviceaccount:shop", "shop:deployer", ""] {
            assert!(!tenant.is_account(other), "{other}");
        }
    }
}
