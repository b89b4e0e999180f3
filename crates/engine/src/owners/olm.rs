//! The objects of OLM, with only the fields that rules use. Unknown fields are skipped.

pub mod rules;
mod source;
pub mod version_range;
pub mod words;

use std::borrow::Cow;

use serde::Deserialize;

use crate::json::null_is_default;
use crate::object::Metadata;
pub(crate) use source::ExtensionSource;

/// OLM's own name.
pub(crate) const NAME: &str = "OLM";

/// Whether the labels of an object name the ClusterExtension of a release. It has the same name as the release.
pub(super) fn is_of_extension(release: &str, label: &dyn Fn(&str) -> Option<String>) -> bool {
    label(OWNER_NAME_LABEL).is_some_and(|extension| extension == release)
}

/// The name of the service account of its controller.
pub(super) const CONTROLLER: &str = "operator-controller-controller-manager";

/// The path of all ClusterExtensions at the API server.
pub(super) const LIST: &str = "/apis/olm.operatorframework.io/v1/clusterextensions";

/// The API group of OLM.
pub(crate) const GROUP: &str = "olm.operatorframework.io";
/// The kind that users create to install an operator.
pub(crate) const CLUSTER_EXTENSION: &str = "ClusterExtension";
/// The kinds of one revision of an extension in the runtime without Helm records: the current name, and the name until
/// March 2026.
pub(crate) const OBJECT_SET_KINDS: [&str; 2] = ["ClusterObjectSet", "ClusterExtensionRevision"];
/// The label on such a revision with the name of its extension.
pub const OWNER_NAME_LABEL: &str = "olm.operatorframework.io/owner-name";

/// The label on the first revision of an extension that had Helm records.
pub(crate) const MIGRATED_LABEL: &str = "olm.operatorframework.io/migrated-from-helm";

/// A ClusterExtension.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClusterExtension<'a> {
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub spec: ClusterExtensionSpec<'a>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub status: ClusterExtensionStatus<'a>,
}

impl ClusterExtension<'_> {
    /// Whether revisions own the objects of the extension, so that its Helm records are only leftovers. OLM lists the applied
    /// revisions in the status, which authors of extensions and ClusterObjectSets cannot write.
    #[must_use]
    pub fn has_revisions(&self) -> bool {
        self.status.active_revisions.iter().any(|revision| !revision.name.is_empty())
    }
}

/// Whether the JSON text of a ClusterExtension says that its objects are in a namespace.
#[must_use]
pub fn is_extension_in(text: &str, namespace: &str) -> bool {
    serde_json::from_str::<ClusterExtension<'_>>(text).is_ok_and(|read| read.spec.namespace == namespace)
}

/// `spec` of a ClusterExtension.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClusterExtensionSpec<'a> {
    /// The namespace of the objects of the extension.
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub source: ExtensionSource<'a>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub install: ExtensionInstall<'a>,
}

/// `status` of a ClusterExtension.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterExtensionStatus<'a> {
    /// The revisions that are installed or being rolled out.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub active_revisions: Vec<ActiveRevision<'a>>,
}

/// A revision in the status.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ActiveRevision<'a> {
    /// The name of the ClusterObjectSet.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
}

/// `spec.install`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ExtensionInstall<'a> {
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub preflight: Preflight<'a>,
}

/// `spec.install.preflight`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Preflight<'a> {
    /// The check for custom resource definitions that would lose data.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub crd_upgrade_safety: CrdUpgradeSafety<'a>,
}

/// `spec.install.preflight.crdUpgradeSafety`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CrdUpgradeSafety<'a> {
    /// `Strict` or `None`.
    #[serde(borrow)]
    pub enforcement: Cow<'a, str>,
}

/// A ClusterObjectSet.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClusterObjectSet<'a> {
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub spec: ClusterObjectSetSpec<'a>,
}

impl ClusterObjectSet<'_> {
    /// The name of its ClusterExtension, by its label.
    #[must_use]
    pub(crate) fn extension(&self) -> Option<&str> {
        self.metadata.label(OWNER_NAME_LABEL)
    }

    /// Whether its objects are deployed: it is not archived, and not being deleted.
    #[must_use]
    pub(crate) fn is_active(&self) -> bool {
        self.spec.lifecycle_state != "Archived" && self.metadata.deletion_timestamp.is_none()
    }
}

/// `spec` of a ClusterObjectSet.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterObjectSetSpec<'a> {
    /// `Active` or `Archived`.
    #[serde(borrow)]
    pub lifecycle_state: Cow<'a, str>,
}
