//! ClusterSummary: one profile on one cluster, and how each of its releases stands.

use std::borrow::Cow;

use serde::Deserialize;

use super::RemoteRelease;
use crate::engine::json::null_is_default;
use crate::engine::object::Metadata;

/// A ClusterSummary.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClusterSummary<'a> {
    /// Its metadata.
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
    /// What is wanted.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub spec: ClusterSummarySpec<'a>,
    /// How it stands. Written just before each commit.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub status: ClusterSummaryStatus<'a>,
}

/// `spec` of a ClusterSummary.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSummarySpec<'a> {
    /// Where the object of the cluster is.
    #[serde(borrow)]
    pub cluster_namespace: Cow<'a, str>,
    /// The cluster's name.
    #[serde(borrow)]
    pub cluster_name: Cow<'a, str>,
    /// `Sveltos` or `Capi`.
    #[serde(borrow)]
    pub cluster_type: Cow<'a, str>,
    /// A copy of the profile's specification, its templates not filled in.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub cluster_profile_spec: ProfileSpec<'a>,
}

/// What a profile wants on its clusters.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProfileSpec<'a> {
    /// The charts, in the order in which they are rendered.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub helm_charts: Vec<HelmChart<'a>>,
    /// The ConfigMaps, Secrets and Flux sources whose content is deployed.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub policy_refs: Vec<PolicyRef<'a>>,
    /// Whether the charts after one that fails are still rendered.
    #[serde(deserialize_with = "null_is_default")]
    pub continue_on_error: bool,
    /// The same after one that another profile manages.
    #[serde(deserialize_with = "null_is_default")]
    pub continue_on_conflict: bool,
}

/// A chart of a profile.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmChart<'a> {
    /// May be a template.
    #[serde(borrow)]
    pub release_name: Cow<'a, str>,
    /// May be a template.
    #[serde(borrow)]
    pub release_namespace: Cow<'a, str>,
    /// `Install` or `Uninstall`.
    #[serde(borrow)]
    pub helm_chart_action: Cow<'a, str>,
}

/// A reference of a profile to objects that are to be deployed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRef<'a> {
    /// `ConfigMap`, `Secret`, or one of Flux's sources.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// May be a template.
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    /// May be a template.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// `Remote`, or `Local` for the management cluster.
    #[serde(borrow)]
    pub deployment_type: Cow<'a, str>,
    /// Whether it may be absent.
    #[serde(deserialize_with = "null_is_default")]
    pub optional: bool,
}

/// `status` of a ClusterSummary.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSummaryStatus<'a> {
    /// The releases, their names filled in; in the order of the charts but for races with other profiles.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub helm_release_summaries: Vec<HelmReleaseSummary<'a>>,
}

/// How one release stands.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmReleaseSummary<'a> {
    /// The release.
    #[serde(borrow)]
    pub release_name: Cow<'a, str>,
    /// Its namespace on the managed cluster.
    #[serde(borrow)]
    pub release_namespace: Cow<'a, str>,
    /// `Managing`, or `Conflict` while another profile manages it.
    #[serde(borrow)]
    pub status: Cow<'a, str>,
    /// Set once the chart was rendered and stored.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub values_hash: Cow<'a, str>,
    /// Why its chart failed. Written from Sveltos 1.8.0 on.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub failure_message: Cow<'a, str>,
    /// Who manages it instead.
    #[serde(borrow, deserialize_with = "null_is_default")]
    pub conflict_message: Cow<'a, str>,
}

/// Whether a name is to be filled in from the cluster.
fn is_template(name: &str) -> bool {
    name.contains("{{")
}

impl HelmChart<'_> {
    /// The release, where both names stand there as they are.
    #[must_use]
    pub fn release(&self) -> Option<RemoteRelease> {
        let plain = !is_template(&self.release_name) && !is_template(&self.release_namespace);
        plain.then(|| RemoteRelease::new(&self.release_namespace, &self.release_name))
    }

    /// Whether the release is to be removed. The default is that it is not.
    #[must_use]
    pub fn uninstalls(&self) -> bool {
        self.helm_chart_action == "Uninstall"
    }

    /// Whether a release can be that of the chart: names that are templates can become any.
    #[must_use]
    pub fn can_be(&self, release: &HelmReleaseSummary<'_>) -> bool {
        let agree = |template: &str, name: &str| is_template(template) || template == name;
        agree(&self.release_name, &release.release_name) && agree(&self.release_namespace, &release.release_namespace)
    }
}

impl PolicyRef<'_> {
    /// Whether it is a source of Flux under a name that stands there as it is.
    #[must_use]
    pub fn is_plain_source(&self) -> bool {
        matches!(self.kind.as_ref(), "GitRepository" | "OCIRepository" | "Bucket")
            && !is_template(&self.name)
            && !is_template(&self.namespace)
    }
}

impl HelmReleaseSummary<'_> {
    /// The release.
    #[must_use]
    pub fn release(&self) -> RemoteRelease {
        RemoteRelease::new(&self.release_namespace, &self.release_name)
    }

    /// Whether this is how that release stands.
    #[must_use]
    pub fn is_of(&self, release: &RemoteRelease) -> bool {
        self.release_name == release.name && self.release_namespace == release.namespace
    }

    /// Whether the profile manages the release.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        self.status == "Managing"
    }

    /// Whether another profile manages it.
    #[must_use]
    pub fn is_in_conflict(&self) -> bool {
        self.status == "Conflict"
    }
}

impl ClusterSummary<'_> {
    /// How the releases stand.
    #[must_use]
    pub fn releases(&self) -> &[HelmReleaseSummary<'_>] {
        &self.status.helm_release_summaries
    }
}
