//! ConfigurationGroup: the commit of a rollout, for one profile, cluster and feature.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BundleRef, CONFIGURATION_BUNDLE};
use crate::json::{null_is_default, redacted};
use crate::object::Metadata;

/// The features that rules check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Charts.
    Helm,
    /// Objects from ConfigMaps, Secrets and Flux sources.
    Resources,
    /// Objects that Kustomize builds from ConfigMaps, Secrets and Flux sources.
    Kustomize,
}

impl Feature {
    /// Sveltos' spelling.
    #[must_use]
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Helm => "Helm",
            Self::Resources => "Resources",
            Self::Kustomize => "Kustomize",
        }
    }
}

/// A ConfigurationGroup.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ConfigurationGroup<'a> {
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub spec: ConfigurationGroupSpec<'a>,
}

/// `spec` of a ConfigurationGroup.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigurationGroupSpec<'a> {
    /// `Deploy` or `Remove`.
    #[serde(borrow)]
    pub action: Cow<'a, str>,
    /// `Ready`, or `Preparing` while bundles are still written.
    #[serde(borrow)]
    pub update_phase: Cow<'a, str>,
    /// `Active`, or `Deleted` once the ClusterSummary is being deleted.
    #[serde(borrow)]
    pub source_status: Cow<'a, str>,
    /// Whether the agent only reports what it would do.
    #[serde(deserialize_with = "null_is_default")]
    pub dry_run: bool,
    /// Whether the agent leaves on the cluster what it no longer deploys.
    #[serde(deserialize_with = "null_is_default")]
    pub leave_policies: bool,
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub source_ref: ProfileRef<'a>,
    /// The bundles, unparsed: a group may list hundreds, and most writes do not change them.
    #[serde(borrow)]
    pub configuration_item: Option<&'a RawValue>,
}

/// The profile of a group.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ProfileRef<'a> {
    /// `ClusterProfile` or `Profile`.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// Empty for a ClusterProfile.
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigurationItem<'a> {
    #[serde(borrow)]
    content_ref: ContentRef<'a>,
}

#[derive(Deserialize)]
struct ContentRef<'a> {
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
}

impl ConfigurationGroup<'_> {
    /// Whether the agent must remove everything.
    #[must_use]
    pub fn removes(&self) -> bool {
        self.spec.action == "Remove"
    }

    /// Whether the group claims that the ClusterSummary is being deleted. Only the ClusterSummary itself proves that.
    #[must_use]
    pub fn is_teardown(&self) -> bool {
        self.spec.source_status == "Deleted"
    }

    /// Whether the bundles are still being written.
    #[must_use]
    pub fn is_preparing(&self) -> bool {
        self.spec.update_phase == "Preparing"
    }

    /// Whether both groups list the same bundles. Compares text, because the API server encodes equal values the same way.
    #[must_use]
    pub fn same_items(&self, other: &ConfigurationGroup<'_>) -> bool {
        self.spec.configuration_item.map(RawValue::get) == other.spec.configuration_item.map(RawValue::get)
    }

    /// The listed bundles, each once. Two references to one object with different paths share a bundle, which the group then
    /// lists twice. `namespace` is that of the group.
    ///
    /// # Errors
    /// The list has another shape, or names an object that is not a bundle.
    pub fn bundles(&self, namespace: &str) -> Result<Vec<BundleRef>, String> {
        let text = self.spec.configuration_item.map_or("[]", RawValue::get);
        let items: Vec<ConfigurationItem<'_>> = serde_json::from_str(text).map_err(|error| redacted(&error))?;
        let (mut bundles, mut seen) = (Vec::with_capacity(items.len()), HashSet::with_capacity(items.len()));
        for ConfigurationItem { content_ref: ContentRef { kind, namespace: given, name } } in items {
            if !kind.is_empty() && kind != CONFIGURATION_BUNDLE {
                return Err(format!("it names an object of kind {kind}"));
            }
            let namespace = if given.is_empty() { namespace } else { given.as_ref() };
            let bundle = BundleRef { namespace: namespace.to_owned(), name: name.into_owned() };
            if seen.insert(bundle.clone()) {
                bundles.push(bundle);
            }
        }
        Ok(bundles)
    }
}
