//! ClusterConfiguration: what was delivered to a cluster. In pull mode the agent writes it.

use std::borrow::Cow;

use serde::Deserialize;

use super::{Feature, ProfileRef, RemoteRelease};
use crate::json::null_is_default;

/// A ClusterConfiguration.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ClusterConfiguration<'a> {
    #[serde(borrow, deserialize_with = "null_is_default")]
    status: ClusterConfigurationStatus<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClusterConfigurationStatus<'a> {
    #[serde(borrow, deserialize_with = "null_is_default")]
    cluster_profile_resources: Vec<ProfileResources<'a>>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    profile_resources: Vec<ProfileResources<'a>>,
}

/// What one profile delivered.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ProfileResources<'a> {
    #[serde(borrow, alias = "clusterProfileName", rename = "profileName")]
    profile: Cow<'a, str>,
    #[serde(borrow, rename = "Features", deserialize_with = "null_is_default")]
    features: Vec<DeliveredFeature<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeliveredFeature<'a> {
    #[serde(borrow, deserialize_with = "null_is_default")]
    charts: Vec<DeliveredChart<'a>>,
    #[serde(borrow, rename = "featureID")]
    id: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    resources: Vec<DeliveredResource<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeliveredChart<'a> {
    #[serde(borrow)]
    release_name: Cow<'a, str>,
    #[serde(borrow)]
    namespace: Cow<'a, str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeliveredResource<'a> {
    #[serde(borrow, deserialize_with = "null_is_default")]
    owner: ResourceOwner<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResourceOwner<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
}

impl ClusterConfiguration<'_> {
    /// The number of charts and objects in it.
    pub(crate) fn entries(&self) -> usize {
        let ClusterConfigurationStatus { cluster_profile_resources, profile_resources } = &self.status;
        let features =
            cluster_profile_resources.iter().chain(profile_resources).flat_map(|delivered| &delivered.features);
        features.map(|feature| feature.charts.len() + feature.resources.len()).sum()
    }

    /// Whether any profile delivered a release. The release may have moved to another profile.
    #[must_use]
    pub(crate) fn lists(&self, release: &RemoteRelease) -> bool {
        let ClusterConfigurationStatus { cluster_profile_resources, profile_resources } = &self.status;
        cluster_profile_resources.iter().chain(profile_resources).any(|delivered| delivered.lists(release))
    }

    /// Whether this profile delivered a release.
    #[must_use]
    pub(crate) fn lists_of(&self, profile: &ProfileRef<'_>, release: &RemoteRelease) -> bool {
        self.of(profile).any(|delivered| delivered.lists(release))
    }

    /// The releases that a profile delivered.
    pub(crate) fn releases_of<'c>(&'c self, profile: &'c ProfileRef<'_>) -> impl Iterator<Item = RemoteRelease> {
        let charts = self.of(profile).flat_map(|delivered| &delivered.features).flat_map(|feature| &feature.charts);
        charts.map(|chart| RemoteRelease::new(&chart.namespace, &chart.release_name))
    }

    /// The references from which a profile delivered objects: kind, namespace and name. If the agent does not report the owner of
    /// an object, the object may come from any reference, and its name is empty.
    pub(crate) fn sources_of<'c>(
        &'c self,
        profile: &'c ProfileRef<'_>,
        feature: Feature,
    ) -> impl Iterator<Item = (&'c str, &'c str, &'c str)> {
        let features = self.of(profile).flat_map(|delivered| &delivered.features);
        let of_feature = features.filter(move |delivered| delivered.id == feature.id());
        let resources = of_feature.flat_map(|delivered| &delivered.resources);
        resources.map(|resource| {
            let ResourceOwner { kind, namespace, name } = &resource.owner;
            (kind.as_ref(), namespace.as_ref(), name.as_ref())
        })
    }

    /// The other profiles that delivered a release: kind and name.
    pub(crate) fn others_with<'c>(
        &'c self,
        profile: &'c ProfileRef<'_>,
        release: &'c RemoteRelease,
    ) -> impl Iterator<Item = (&'static str, &'c str)> {
        let ClusterConfigurationStatus { cluster_profile_resources, profile_resources } = &self.status;
        let cluster_wide = cluster_profile_resources.iter().map(|delivered| ("ClusterProfile", delivered));
        let all = cluster_wide.chain(profile_resources.iter().map(|delivered| ("Profile", delivered)));
        let other = all.filter(|(kind, delivered)| (*kind, &delivered.profile) != (&*profile.kind, &profile.name));
        other.filter(|(_, delivered)| delivered.lists(release)).map(|(kind, delivered)| (kind, &*delivered.profile))
    }

    fn of<'c>(&'c self, profile: &'c ProfileRef<'_>) -> impl Iterator<Item = &'c ProfileResources<'c>> {
        let of_kind = match profile.kind.as_ref() {
            "Profile" => &self.status.profile_resources,
            _ => &self.status.cluster_profile_resources,
        };
        of_kind.iter().filter(|delivered| delivered.profile == profile.name)
    }
}

impl ProfileResources<'_> {
    fn lists(&self, release: &RemoteRelease) -> bool {
        let mut charts = self.features.iter().flat_map(|feature| &feature.charts);
        charts.any(|chart| chart.release_name == release.name && chart.namespace == release.namespace)
    }
}
