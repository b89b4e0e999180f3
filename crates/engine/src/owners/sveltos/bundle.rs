//! ConfigurationBundle: objects as YAML text of up to several megabytes, and the chart or reference they come from.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::RemoteRelease;
use crate::json::null_is_default;

/// The annotation under which Sveltos finds a bundle again: `<namespace>-<release>-<repository>-<number>` for a part of a
/// chart, `<kind>-<namespace>-<name>` for the content of a reference.
pub const INDEX: &str = "pullmode.projectsveltos.io/index";

/// The key of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BundleRef {
    /// The namespace of the managed cluster on the management cluster.
    pub namespace: String,
    /// A random name.
    pub name: String,
}

/// The origin of the objects of a bundle, without the objects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bundle {
    /// The release that the bundle belongs to; `None` if it does not come from a chart.
    pub release: Option<RemoteRelease>,
    /// Whether it is the last bundle of the release. Without it, the chart is incomplete.
    pub is_last: bool,
    /// Whether it contains the hooks of an uninstall. Such a bundle does not preserve the release.
    pub uninstalls: bool,
    /// Whether it contains only objects that Sveltos deploys for itself.
    pub is_own: bool,
    /// The ConfigMap, Secret or Flux source with the objects. Bundles of Sveltos 1.2 and earlier do not have it.
    pub source: Option<Source>,
    /// The key with which Sveltos finds the bundle again; empty if there is none.
    pub index: String,
}

/// An object that a profile refers to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Source {
    pub kind: String,
    /// Empty if unknown.
    pub namespace: String,
    pub name: String,
}

#[derive(Deserialize)]
struct ConfigurationBundle {
    #[serde(default, deserialize_with = "null_is_default")]
    metadata: BundleMetadata,
    #[serde(default, deserialize_with = "null_is_default")]
    spec: ConfigurationBundleSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BundleMetadata {
    #[serde(deserialize_with = "null_is_default")]
    annotations: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ConfigurationBundleSpec {
    #[serde(deserialize_with = "null_is_default")]
    helm_release_namespace: String,
    #[serde(deserialize_with = "null_is_default")]
    helm_release_name: String,
    #[serde(deserialize_with = "null_is_default")]
    helm_release_uninstall: bool,
    #[serde(deserialize_with = "null_is_default")]
    is_last_helm_release_bundle: bool,
    #[serde(deserialize_with = "null_is_default")]
    not_tracked: bool,
    #[serde(deserialize_with = "null_is_default")]
    referenced_object_kind: String,
    #[serde(deserialize_with = "null_is_default")]
    referenced_object_namespace: String,
    #[serde(deserialize_with = "null_is_default")]
    referenced_object_name: String,
}

impl Bundle {
    /// Parses a ConfigurationBundle, without the objects in it.
    ///
    /// # Errors
    /// The text is not a ConfigurationBundle, or a field has another shape.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        let ConfigurationBundle { mut metadata, spec } = serde_json::from_str(text)?;
        let release = RemoteRelease { namespace: spec.helm_release_namespace, name: spec.helm_release_name };
        let source = Source {
            kind: spec.referenced_object_kind,
            namespace: spec.referenced_object_namespace,
            name: spec.referenced_object_name,
        };
        Ok(Self {
            release: Some(release).filter(|release| !release.name.is_empty()),
            is_last: spec.is_last_helm_release_bundle,
            uninstalls: spec.helm_release_uninstall,
            is_own: spec.not_tracked,
            source: Some(source).filter(|source| !source.name.is_empty()),
            index: metadata.annotations.remove(INDEX).unwrap_or_default(),
        })
    }

    /// Whether it deploys objects of a release.
    #[must_use]
    pub fn deploys(&self, release: &RemoteRelease) -> bool {
        !self.uninstalls && self.release.as_ref() == Some(release)
    }

    /// The number of the bundle among those of its release, counted from 0; `None` if its index has another form.
    #[must_use]
    pub(crate) fn number(&self) -> Option<u32> {
        self.index.rsplit_once('-')?.1.parse().ok()
    }
}
