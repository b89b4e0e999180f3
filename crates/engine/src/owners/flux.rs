//! Flux's HelmRelease, with only the fields that rules use. Unknown fields are skipped. So are invalid durations, which the
//! definition of HelmRelease rejects.

mod candidates;
mod drift;
mod driver;
mod duration;
mod history;
mod kube_config;
mod name;
pub mod pattern;
pub mod rules;
mod selector;
mod spec;
pub(crate) mod words;

use crate::managed::Origin;
use jiff::SignedDuration;
use serde::Deserialize;

pub use candidates::{CandidateSearch, MOST_CANDIDATES, account_elsewhere};
pub use drift::{DeclaredObject, DriftDetection, DriftIgnore, DriftSpec, IgnoredFields};
pub use driver::{Driver, InstalledAt};
pub(crate) use kube_config::KubeConfig;
pub(crate) use name::shortened_release_name;
pub use spec::{ChartSourceRef, FailureStrategy, HelmReleaseSpec, Remediation};

use crate::json::null_is_default;
use crate::object::{OwnedMetadata, service_account_user};
use crate::owners::upstream::UpstreamKind;
use crate::release::ReleaseRef;

/// Flux's own name.
/// What Kustomizations and HelmReleases are made from.
pub(super) static SOURCES: [UpstreamKind; 5] = [
    UpstreamKind { group: SOURCE_GROUP, kind: "GitRepository", loss: SOURCE_LOSS },
    UpstreamKind { group: SOURCE_GROUP, kind: "OCIRepository", loss: SOURCE_LOSS },
    UpstreamKind { group: SOURCE_GROUP, kind: "Bucket", loss: SOURCE_LOSS },
    UpstreamKind { group: SOURCE_GROUP, kind: "HelmRepository", loss: SOURCE_LOSS },
    UpstreamKind { group: SOURCE_GROUP, kind: "HelmChart", loss: SOURCE_LOSS },
];

const SOURCE_GROUP: &str = "source.toolkit.fluxcd.io";
const SOURCE_LOSS: &str = "Flux would apply nothing from it any longer";

pub(crate) const NAME: &str = "Flux";

/// The HelmRelease that the labels of an object name.
pub(super) fn origin(label: &dyn Fn(&str) -> Option<String>) -> Option<Origin> {
    let (namespace, name) = (label(NAMESPACE_LABEL)?, label(NAME_LABEL)?);
    Some(Origin { namespace, name })
}

/// The label with the namespace of the HelmRelease, on the objects of its release.
pub const NAMESPACE_LABEL: &str = "helm.toolkit.fluxcd.io/namespace";
/// The label with the name of the HelmRelease.
pub const NAME_LABEL: &str = "helm.toolkit.fluxcd.io/name";

/// The name of the service account of its controller.
pub(super) const CONTROLLER: &str = "helm-controller";

/// The path of all HelmReleases at the API server.
pub(super) const LIST: &str = "/apis/helm.toolkit.fluxcd.io/v2/helmreleases";

/// The API group of HelmReleases.
pub const GROUP: &str = "helm.toolkit.fluxcd.io";
/// The kind of a HelmRelease.
pub const HELM_RELEASE: &str = "HelmRelease";
/// The name of the CustomResourceDefinition of HelmReleases.
pub const DEFINITION: &str = "helmreleases.helm.toolkit.fluxcd.io";

/// The default wait of Flux in each step of an action.
const DEFAULT_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

/// A HelmRelease.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct HelmRelease {
    pub metadata: OwnedMetadata,
    #[serde(deserialize_with = "null_is_default")]
    pub spec: HelmReleaseSpec,
    #[serde(deserialize_with = "null_is_default")]
    pub status: HelmReleaseStatus,
}

/// `status` of a HelmRelease.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmReleaseStatus {
    /// The actual namespace of the records, even after a change of `spec`.
    pub storage_namespace: String,
    /// The released revisions, newest first. A long list has a gap in the middle. Flux writes this list at the end of an action,
    /// keeps at most five revisions, and drops them if another client wrote a record.
    #[serde(deserialize_with = "history::read")]
    pub history: Vec<Snapshot>,
}

/// A revision that Flux has released.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Snapshot {
    /// The name of the release, already shortened.
    pub name: String,
    /// The namespace of the objects.
    pub namespace: String,
    /// Helm's status.
    pub status: String,
    /// The name in the chart's metadata.
    pub chart_name: String,
    /// The number of the revision.
    pub version: i64,
}

/// An installed release.
#[derive(Debug, Clone, Copy)]
pub struct InstalledRelease<'h> {
    pub storage_namespace: &'h str,
    /// The newest revision.
    pub snapshot: &'h Snapshot,
}

impl InstalledRelease<'_> {
    /// The release, by the namespace of its records and its name.
    #[must_use]
    pub fn release(self) -> ReleaseRef {
        ReleaseRef::new(self.storage_namespace, &self.snapshot.name)
    }
}

impl HelmRelease {
    /// The release in `spec`. By default its name is that of the HelmRelease, with the target namespace as a prefix if
    /// that is set, and its records are in the namespace of the HelmRelease.
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

    /// The namespace in `spec` for the objects.
    #[must_use]
    pub fn target_namespace(&self) -> &str {
        match self.spec.target_namespace.as_str() {
            "" => &self.metadata.namespace,
            namespace => namespace,
        }
    }

    /// The installed release; `None` if there is none, or if it was uninstalled.
    #[must_use]
    pub fn installed(&self) -> Option<InstalledRelease<'_>> {
        let HelmReleaseStatus { storage_namespace, history } = &self.status;
        let snapshot = history.first().filter(|snapshot| snapshot.status != "uninstalled")?;
        (!storage_namespace.is_empty()).then_some(InstalledRelease { storage_namespace, snapshot })
    }

    /// The status of the installed release, regardless of later attempts: that of the revision that is still deployed, or else of
    /// the newest one. `None` if no revision is known to have been deployed, for example after a failed first install.
    #[must_use]
    pub fn release_status(&self) -> Option<&str> {
        let history = &self.status.history;
        let is_any = |status: &str| history.iter().any(|snapshot| snapshot.status == status);
        match () {
            () if is_any("deployed") => Some("deployed"),
            () if is_any("superseded") => history.first().map(|newest| newest.status.as_str()),
            () => None,
        }
    }

    /// Whether the history in the status includes the first revision. If Flux retries failures, it keeps only the five newest
    /// attempts. It drops all revisions from before another client wrote a record.
    #[must_use]
    pub fn has_complete_history(&self) -> bool {
        self.status.history.last().is_none_or(|oldest| oldest.version <= 1)
    }

    /// The user name under which Flux writes records and objects. `None` if Flux uses its own account, or a default
    /// account from its flags, which the object does not contain.
    #[must_use]
    pub fn account(&self) -> Option<String> {
        let name = self.spec.service_account_name.as_str();
        (!name.is_empty()).then(|| service_account_user(&self.metadata.namespace, name))
    }

    /// The longest time that Flux may wait in one step of an action without writing a record. An action may have
    /// several such steps.
    #[must_use]
    pub fn longest_timeout(&self) -> SignedDuration {
        let HelmReleaseSpec { timeout, install, upgrade, rollback, test, uninstall, .. } = &self.spec;
        let of_actions = [install.timeout, upgrade.timeout, rollback.timeout, test.timeout, uninstall.timeout];
        of_actions.into_iter().flatten().fold(timeout.unwrap_or(DEFAULT_TIMEOUT), SignedDuration::max)
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
        assert_eq!(read.longest_timeout(), DEFAULT_TIMEOUT);
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
    fn the_installed_release_is_the_newest_in_the_history() {
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
