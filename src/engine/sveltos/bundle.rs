//! ConfigurationBundle: objects as YAML text of up to megabytes, and the chart or reference they come from.

use serde::Deserialize;

use super::RemoteRelease;
use crate::engine::json::null_is_default;

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
    /// The release that the bundle is a part of; `None` if it comes from no chart.
    pub release: Option<RemoteRelease>,
    /// Whether it is the last bundle of the release. Without the last bundle the chart is incomplete.
    pub is_last: bool,
    /// Whether it contains the hooks of an uninstall. Such a bundle does not keep the release.
    pub uninstalls: bool,
    /// Kind and name of the source: a ConfigMap, Secret or Flux source.
    pub source: Option<(String, String)>,
}

#[derive(Deserialize)]
struct ConfigurationBundle {
    #[serde(default, deserialize_with = "null_is_default")]
    spec: ConfigurationBundleSpec,
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
    referenced_object_kind: String,
    #[serde(deserialize_with = "null_is_default")]
    referenced_object_name: String,
}

impl Bundle {
    /// Parses a ConfigurationBundle without the objects in it.
    ///
    /// # Errors
    /// The text is not a ConfigurationBundle, or its fields have another shape.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        let ConfigurationBundle { spec } = serde_json::from_str(text)?;
        let release = RemoteRelease { namespace: spec.helm_release_namespace, name: spec.helm_release_name };
        let source = (spec.referenced_object_kind, spec.referenced_object_name);
        Ok(Self {
            release: Some(release).filter(|release| !release.name.is_empty()),
            is_last: spec.is_last_helm_release_bundle,
            uninstalls: spec.helm_release_uninstall,
            source: Some(source).filter(|(_, name)| !name.is_empty()),
        })
    }

    /// Whether it deploys objects of a release.
    #[must_use]
    pub fn deploys(&self, release: &RemoteRelease) -> bool {
        !self.uninstalls && self.release.as_ref() == Some(release)
    }

    /// Whether its objects come from this source.
    #[must_use]
    pub fn is_from(&self, kind: &str, name: &str) -> bool {
        self.source.as_ref().is_some_and(|source| (source.0.as_str(), source.1.as_str()) == (kind, name))
    }
}
