//! OLM's objects, as far as rules read them. Fields of other versions are skipped.

use std::borrow::Cow;

use serde::Deserialize;

use super::json::null_is_default;
use super::object::Metadata;

/// The API group.
pub const GROUP: &str = "olm.operatorframework.io";
/// What a user installs and upgrades.
pub const CLUSTER_EXTENSION: &str = "ClusterExtension";
/// One revision of an extension in the runtime that needs no Helm records: its name, and that of before March 2026.
pub const OBJECT_SET_KINDS: [&str; 2] = ["ClusterObjectSet", "ClusterExtensionRevision"];
/// The label of such a revision with the name of its extension.
pub const OWNER_NAME_LABEL: &str = "olm.operatorframework.io/owner-name";

/// The label in the body of a record with the package that it installs.
pub const PACKAGE_NAME_LABEL: &str = "olm.operatorframework.io/package-name";
/// The same with the version of the bundle.
pub const BUNDLE_VERSION_LABEL: &str = "olm.operatorframework.io/bundle-version";

/// A ClusterExtension.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClusterExtension<'a> {
    /// Its metadata.
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
    /// What is wanted.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub spec: ClusterExtensionSpec<'a>,
}

/// What an extension is to be.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClusterExtensionSpec<'a> {
    /// Where its objects go.
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    /// Where it comes from.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub source: ExtensionSource<'a>,
    /// How it is installed.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub install: ExtensionInstall<'a>,
}

/// `spec.source`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ExtensionSource<'a> {
    /// The package of a catalog.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub catalog: CatalogSource<'a>,
}

/// `spec.source.catalog`.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CatalogSource<'a> {
    /// The package.
    #[serde(borrow)]
    pub package_name: Cow<'a, str>,
    /// A version or a range of versions.
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    /// The channels that may be followed.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub channels: Vec<Cow<'a, str>>,
    /// `CatalogProvided` or `SelfCertified`.
    #[serde(borrow)]
    pub upgrade_constraint_policy: Cow<'a, str>,
}

/// `spec.install`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ExtensionInstall<'a> {
    /// What is checked before.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub preflight: Preflight<'a>,
}

/// `spec.install.preflight`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Preflight<'a> {
    /// Whether an upgrade of a custom resource definition may lose data.
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
    /// Its metadata.
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
    /// What is wanted.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub spec: ClusterObjectSetSpec<'a>,
}

/// What a revision is to be.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterObjectSetSpec<'a> {
    /// `Active` or `Archived`.
    #[serde(borrow)]
    pub lifecycle_state: Cow<'a, str>,
}
