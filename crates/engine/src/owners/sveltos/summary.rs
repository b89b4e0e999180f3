//! ClusterSummary: one profile on one cluster, and the state of each of its releases.

use std::borrow::Cow;

use serde::Deserialize;

use super::reference::can_expand_to;
use super::{Feature, PolicyRef, RemoteRelease};
use crate::json::null_is_default;
use crate::object::Metadata;

/// The labels of a ClusterSummary that name its profile, with the kind of the profile.
const PROFILE_LABELS: [(&str, &str); 2] =
    [("projectsveltos.io/cluster-profile-name", "ClusterProfile"), ("projectsveltos.io/profile-name", "Profile")];

/// A ClusterSummary.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ClusterSummary<'a> {
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub spec: ClusterSummarySpec<'a>,
    /// Written just before each commit.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub status: ClusterSummaryStatus<'a>,
}

/// `spec` of a ClusterSummary.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClusterSummarySpec<'a> {
    /// The namespace of the cluster's object.
    #[serde(borrow)]
    pub cluster_namespace: Cow<'a, str>,
    #[serde(borrow)]
    pub cluster_name: Cow<'a, str>,
    /// `Sveltos` or `Capi`.
    #[serde(borrow)]
    pub cluster_type: Cow<'a, str>,
    /// A copy of the profile's specification with unexpanded templates.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub cluster_profile_spec: ProfileSpec<'a>,
}

/// `spec` of a profile.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ProfileSpec<'a> {
    /// In the order in which they are rendered.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub helm_charts: Vec<HelmChart<'a>>,
    /// The ConfigMaps, Secrets and Flux sources whose content is deployed.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub policy_refs: Vec<PolicyRef<'a>>,
    /// The ConfigMaps, Secrets and Flux sources from which Kustomize builds objects.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub kustomization_refs: Vec<PolicyRef<'a>>,
    /// Whether rendering continues after a chart that fails.
    #[serde(deserialize_with = "null_is_default")]
    pub continue_on_error: bool,
    /// Whether rendering continues after a chart that another profile manages.
    #[serde(deserialize_with = "null_is_default")]
    pub continue_on_conflict: bool,
    /// Sveltos stops trying after this many failures in a row; by default it never stops.
    pub max_consecutive_failures: Option<u64>,
}

/// A chart of a profile.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct HelmChart<'a> {
    /// May be a template.
    #[serde(borrow)]
    pub release_name: Cow<'a, str>,
    /// May be a template.
    #[serde(borrow)]
    pub release_namespace: Cow<'a, str>,
    /// `Install` or `Uninstall`.
    #[serde(borrow)]
    pub helm_chart_action: Cow<'a, str>,
    /// The URL of its repository. May be a template.
    #[serde(borrow, rename = "repositoryURL")]
    pub repository_url: Cow<'a, str>,
    /// `NAME`, or `REPOSITORY/NAME`. May be a template.
    #[serde(borrow)]
    pub chart_name: Cow<'a, str>,
}

/// `status` of a ClusterSummary.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClusterSummaryStatus<'a> {
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub feature_summaries: Vec<FeatureSummary<'a>>,
    /// The kinds that a feature has ever deployed.
    #[serde(borrow, rename = "deployedGVKs", deserialize_with = "null_is_default")]
    pub deployed_kinds: Vec<DeployedKinds<'a>>,
    /// The releases, with expanded names. In the order of the charts, except for races with other profiles.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub helm_release_summaries: Vec<HelmReleaseSummary<'a>>,
}

/// The state of a feature.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FeatureSummary<'a> {
    #[serde(borrow, rename = "featureID")]
    pub id: Cow<'a, str>,
    /// The failures since the last success, or since the last change of the profile or its references.
    #[serde(deserialize_with = "null_is_default")]
    pub consecutive_failures: u64,
}

/// The kinds that a feature has ever deployed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeployedKinds<'a> {
    #[serde(borrow, rename = "featureID")]
    id: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    deployed_group_version_kind: Vec<Cow<'a, str>>,
}

/// The state of a release.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct HelmReleaseSummary<'a> {
    #[serde(borrow)]
    pub release_name: Cow<'a, str>,
    /// The namespace on the managed cluster.
    #[serde(borrow)]
    pub release_namespace: Cow<'a, str>,
    /// `Managing`, or `Conflict` while another profile manages it.
    #[serde(borrow)]
    pub status: Cow<'a, str>,
    /// Set once the chart was rendered and stored.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub values_hash: Cow<'a, str>,
    /// Why the chart failed. Sveltos writes it since version 1.8.0.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub failure_message: Cow<'a, str>,
}

/// Whether a name is a template.
pub(super) fn is_template(name: &str) -> bool {
    name.contains("{{")
}

impl HelmChart<'_> {
    /// The release, if neither name is a template.
    #[must_use]
    pub(crate) fn release(&self) -> Option<RemoteRelease> {
        (!self.is_template()).then(|| RemoteRelease::new(&self.release_namespace, &self.release_name))
    }

    /// Whether the release must be removed. By default it is not.
    #[must_use]
    pub(crate) fn uninstalls(&self) -> bool {
        self.helm_chart_action == "Uninstall"
    }

    /// Whether both entries deploy one chart of one repository.
    #[must_use]
    pub(crate) fn is_chart_of(&self, other: &Self) -> bool {
        (&self.repository_url, &self.chart_name) == (&other.repository_url, &other.chart_name)
    }

    /// Whether Sveltos computes the name of its release.
    #[must_use]
    pub(crate) fn is_template(&self) -> bool {
        is_template(&self.release_name) || is_template(&self.release_namespace)
    }

    /// Whether a release can belong to the chart. A template can expand to any name with its fixed parts.
    #[must_use]
    pub(crate) fn can_be(&self, release: &RemoteRelease) -> bool {
        can_expand_to(&self.release_name, &release.name) && can_expand_to(&self.release_namespace, &release.namespace)
    }
}

impl HelmReleaseSummary<'_> {
    /// The release of this summary.
    #[must_use]
    pub(crate) fn release(&self) -> RemoteRelease {
        RemoteRelease::new(&self.release_namespace, &self.release_name)
    }

    /// Whether this is the state of the release.
    #[must_use]
    pub(crate) fn is_of(&self, release: &RemoteRelease) -> bool {
        self.release_name == release.name && self.release_namespace == release.namespace
    }

    /// Whether the profile manages the release.
    #[must_use]
    pub(crate) fn is_managed(&self) -> bool {
        self.status == "Managing"
    }

    /// Whether another profile manages it.
    #[must_use]
    pub(crate) fn is_in_conflict(&self) -> bool {
        self.status == "Conflict"
    }
}

impl<'a> ClusterSummary<'a> {
    /// Kind and name of the profile, from Sveltos' labels.
    #[must_use]
    pub(crate) fn profile(&self) -> Option<(&str, &str)> {
        PROFILE_LABELS.iter().find_map(|(label, kind)| Some((*kind, self.metadata.label(label)?)))
    }

    /// The number of failures after which Sveltos stops trying, if the next failure of a feature may be the last one.
    #[must_use]
    pub(crate) fn failures_until_it_stops(&self, feature: Feature) -> Option<u64> {
        let most = self.spec.cluster_profile_spec.max_consecutive_failures?;
        let known = self.status.feature_summaries.iter().find(|summary| summary.id == feature.id());
        known.is_none_or(|summary| summary.consecutive_failures.saturating_add(1) >= most).then_some(most)
    }

    /// `civ/prod`.
    #[must_use]
    pub(crate) fn cluster(&self) -> String {
        format!("{}/{}", self.spec.cluster_namespace, self.spec.cluster_name)
    }

    /// Whether a feature has ever deployed anything to the cluster.
    #[must_use]
    pub(crate) fn has_deployed(&self, feature: Feature) -> bool {
        let mut of_feature = self.status.deployed_kinds.iter().filter(|deployed| deployed.id == feature.id());
        of_feature.any(|deployed| !deployed.deployed_group_version_kind.is_empty())
    }

    /// The state of the releases.
    #[must_use]
    pub(crate) fn releases(&self) -> &[HelmReleaseSummary<'a>] {
        &self.status.helm_release_summaries
    }
}
