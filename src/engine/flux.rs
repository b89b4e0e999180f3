//! Flux's HelmRelease, as far as rules read it. Fields of other versions are skipped, and so is what does not read as a
//! duration: the definition of a HelmRelease refuses it.

mod driver;
mod duration;
mod name;
mod spec;

use jiff::SignedDuration;
use serde::Deserialize;

pub use driver::Driver;
pub use name::shortened_release_name;
pub use spec::{
    ChartSourceRef, ChartTemplate, ChartTemplateSpec, FailureStrategy, HelmReleaseSpec, InstallSpec, Remediation,
    RollbackSpec, TestSpec, UninstallSpec, UpgradeSpec,
};

use super::json::null_is_default;
use super::object::{OwnedMetadata, service_account_user};
use super::release::ReleaseRef;

/// The API group.
pub const GROUP: &str = "helm.toolkit.fluxcd.io";
/// The kind.
pub const HELM_RELEASE: &str = "HelmRelease";
/// The definition of the kind.
pub const DEFINITION: &str = "helmreleases.helm.toolkit.fluxcd.io";

/// How long Flux waits for each step of an action unless told otherwise.
const TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

/// A HelmRelease.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct HelmRelease {
    /// Its metadata.
    pub metadata: OwnedMetadata,
    /// What is wanted.
    #[serde(deserialize_with = "null_is_default")]
    pub spec: HelmReleaseSpec,
    /// What Flux has done.
    #[serde(deserialize_with = "null_is_default")]
    pub status: HelmReleaseStatus,
}

/// What Flux has done.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmReleaseStatus {
    /// Where the records really are, whatever `spec` says by now.
    pub storage_namespace: String,
    /// What was released, newest first. Written after an action has ended; forgotten when somebody else wrote a record.
    #[serde(deserialize_with = "null_is_default")]
    pub history: Vec<Snapshot>,
}

/// One revision that Flux has released.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Snapshot {
    /// The release, its name already shortened.
    pub name: String,
    /// The namespace that the objects went to.
    pub namespace: String,
    /// Helm's status of it.
    pub status: String,
    /// The name in the chart's metadata.
    pub chart_name: String,
}

/// A release that is there.
#[derive(Debug, Clone, Copy)]
pub struct InstalledRelease<'h> {
    /// The namespace of its records.
    pub storage_namespace: &'h str,
    /// What was released last.
    pub snapshot: &'h Snapshot,
}

impl InstalledRelease<'_> {
    /// The release that it is.
    #[must_use]
    pub fn release(self) -> ReleaseRef {
        ReleaseRef::new(self.storage_namespace, &self.snapshot.name)
    }
}

impl HelmRelease {
    /// The release that it asks for: by default under its own name, after its target namespace where it has one, and with
    /// the records in its own namespace.
    #[must_use]
    pub fn release(&self) -> ReleaseRef {
        let HelmReleaseSpec { release_name, target_namespace, storage_namespace, .. } = &self.spec;
        let name = match (release_name.as_str(), target_namespace.as_str()) {
            ("", "") => self.metadata.name.clone(),
            ("", namespace) => format!("{namespace}-{}", self.metadata.name),
            (name, _) => name.to_owned(),
        };
        let namespace = if storage_namespace.is_empty() { &self.metadata.namespace } else { storage_namespace };
        ReleaseRef::new(namespace, shortened_release_name(&name))
    }

    /// The namespace that it wants the objects in.
    #[must_use]
    pub fn target_namespace(&self) -> &str {
        match self.spec.target_namespace.as_str() {
            "" => &self.metadata.namespace,
            namespace => namespace,
        }
    }

    /// The release that it has installed; `None` where it has none, or has uninstalled it.
    #[must_use]
    pub fn installed(&self) -> Option<InstalledRelease<'_>> {
        let HelmReleaseStatus { storage_namespace, history } = &self.status;
        let snapshot = history.first().filter(|snapshot| snapshot.status != "uninstalled")?;
        (!storage_namespace.is_empty()).then_some(InstalledRelease { storage_namespace, snapshot })
    }

    /// The user under whose name Flux writes records and objects; `None` where that is its own account, or a default one
    /// that it was started with, which the object does not tell.
    #[must_use]
    pub fn account(&self) -> Option<String> {
        let name = self.spec.service_account_name.as_str();
        (!name.is_empty()).then(|| service_account_user(&self.metadata.namespace, name))
    }

    /// The longest time for which Flux may wait in one step of an action without writing a record. An action may have
    /// several such steps.
    #[must_use]
    pub fn longest_timeout(&self) -> SignedDuration {
        let HelmReleaseSpec { timeout, install, upgrade, rollback, test, uninstall, .. } = &self.spec;
        let of_actions = [install.timeout, upgrade.timeout, rollback.timeout, test.timeout, uninstall.timeout];
        of_actions.into_iter().flatten().fold(timeout.unwrap_or(TIMEOUT), SignedDuration::max)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn helm_release(spec: Value, status: Value) -> HelmRelease {
        let metadata = json!({"name": "web", "namespace": "shop"});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
    }

    #[test]
    fn names_and_namespaces_have_defaults() {
        for (spec, release, target) in [
            (json!({}), ("shop", "web"), "shop"),
            (json!({"targetNamespace": "prod"}), ("shop", "prod-web"), "prod"),
            (json!({"targetNamespace": "prod", "releaseName": "site"}), ("shop", "site"), "prod"),
            (json!({"storageNamespace": "records"}), ("records", "web"), "shop"),
        ] {
            let read = helm_release(spec.clone(), json!(null));
            let wanted = ReleaseRef::new(release.0, release.1);
            assert_eq!((read.release(), read.target_namespace()), (wanted, target), "{spec}");
        }
    }

    #[test]
    fn fields_of_other_versions_and_nulls_are_skipped() {
        let read: HelmRelease = serde_json::from_value(json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v9", "future": [1],
            "metadata": {"name": "web", "annotations": null, "managedFields": [{}]},
            "spec": {"install": null, "upgrade": {"remediation": null, "shape": {"of": "tomorrow"}}, "values": {"a": 1}},
            "status": null,
        }))
        .unwrap();
        assert!(read.installed().is_none() && read.account().is_none());
        assert_eq!(read.longest_timeout(), TIMEOUT);
    }

    #[test]
    fn the_longest_timeout_is_that_of_the_spec_or_of_an_action() {
        for (spec, seconds) in [
            (json!({}), 300),
            (json!({"timeout": "1m"}), 60),
            (json!({"timeout": "10m", "upgrade": {"timeout": "1m"}}), 600),
            (json!({"install": {"timeout": "1h30m"}, "uninstall": {"timeout": "20m"}}), 5_400),
            (json!({"test": {"timeout": "6m"}}), 360),
            (json!({"timeout": "for ever"}), 300),
        ] {
            assert_eq!(helm_release(spec.clone(), json!({})).longest_timeout().as_secs(), seconds, "{spec}");
        }
    }

    #[test]
    fn what_is_installed_is_what_was_released_last() {
        let status = |history: Value| json!({"storageNamespace": "records", "history": history});
        assert!(helm_release(json!({}), status(json!([]))).installed().is_none());
        let gone = status(json!([{"name": "web", "namespace": "shop", "status": "uninstalled"}]));
        assert!(helm_release(json!({}), gone).installed().is_none());
        let there = status(json!([{"name": "new", "status": "deployed"}, {"name": "old", "status": "superseded"}]));
        let there = helm_release(json!({}), there);
        let installed = there.installed().unwrap();
        assert_eq!((installed.storage_namespace, installed.snapshot.name.as_str()), ("records", "new"));
    }
}
