//! The objects of Sveltos' pull mode, with only the fields that rules use. Unknown fields are skipped.
//!
//! In pull mode, addon-controller renders charts on the management cluster and stores the result in ConfigurationBundles. A
//! ConfigurationGroup then lists these bundles: it tells the agent of the managed cluster what to deploy for one profile and
//! feature. The agent removes everything that an earlier group deployed and this one does not list. Afterwards the controller
//! deletes the bundles and the group, so between two rollouts there are none.

mod bundle;
mod cluster;
mod commit;
mod configuration;
mod group;
mod reference;
pub mod rules;
mod summary;

use crate::json::{RawObject, first_at};
use crate::managed::{MarkKey, Owner, OwnerKind};
use crate::object::service_account_user;
use std::borrow::Cow;
use std::fmt;

pub use bundle::{Bundle, BundleRef, INDEX, Source};
pub(crate) use cluster::{Profile, SveltosCluster};
pub(crate) use commit::{Commit, Requestor, name_of_summary};
pub(crate) use configuration::ClusterConfiguration;
pub use group::{ConfigurationGroup, Feature, ProfileRef};
pub(crate) use reference::{Origin, PolicyRef, Reference};
pub(crate) use summary::{ClusterSummary, HelmChart, HelmReleaseSummary};

/// Sveltos' own name.
pub(crate) const NAME: &str = "Sveltos";

/// The name of the service account of its controller.
pub(super) const CONTROLLER: &str = "addon-controller";

/// The service accounts with which Sveltos writes records, in any namespace.
const ACCOUNTS: [&str; 2] = [":addon-controller", ":sveltos-applier-manager"];

/// Why nobody has to act after a failure.
pub(super) const TRIES_AGAIN: &str = "Sveltos tries again by itself";

/// What to do about a commit that lists bundles which do not exist.
pub const RECREATE_COMMIT: &str = "Let Sveltos recreate the group: change its profile, or delete the group. The agent acts on the bundles \
                                   that the group names.";

/// The account of the agent in pull mode. Onboarding a cluster creates it on the management cluster, with the namespace and the name
/// of the cluster.
fn agent_of(namespace: &str, cluster: &str) -> Option<String> {
    (!cluster.is_empty()).then(|| service_account_user(namespace, cluster))
}

/// The agent of the cluster of a stored ClusterSummary.
pub(super) fn agent_of_summary(stored: RawObject<'_>, namespace: &str) -> Option<String> {
    let cluster: Option<Cow<'_, str>> = first_at(stored.get(), &["spec", "clusterName"]).ok()?;
    agent_of(namespace, &cluster?)
}

/// The agent of the cluster of a ClusterConfiguration: `sveltos--CLUSTER` in the namespace of the cluster.
pub(super) fn agent_of_configuration(namespace: &str, name: &str) -> Option<String> {
    agent_of(namespace, name.strip_prefix("sveltos--")?)
}

/// Whether a user is an account with which Sveltos writes records.
pub(super) fn is_account(user: &str) -> bool {
    ACCOUNTS.iter().any(|account| user.ends_with(account))
}

/// The label on the objects of a profile.
pub(super) const REASON: &str = "projectsveltos.io/reason";

/// The marks of the agent, on the objects of a profile in a managed cluster.
pub(super) const MARKS: OwnerKind = OwnerKind {
    label: Some((REASON, None)),
    name: MarkKey::annotation("projectsveltos.io/owner-name"),
    scope: MarkKey::annotation("projectsveltos.io/owner-kind"),
    managers: &["application/apply-patch"],
    switches: &[],
    keeps: |_, _| false,
    applied: None,
    owner: |name, scope, _| Owner::Profile { program: NAME, kind: scope.to_owned(), name: name.to_owned() },
};

/// The API group that the controller and the agent share.
pub const LIB_GROUP: &str = "lib.projectsveltos.io";
/// The API group that users and the controller share.
pub const CONFIG_GROUP: &str = "config.projectsveltos.io";
/// The version of both groups that Interlock knows.
pub(crate) const VERSION: &str = "v1beta1";
/// The kind of a commit of bundles.
pub const CONFIGURATION_GROUP: &str = "ConfigurationGroup";
/// The kind of a bundle.
pub const CONFIGURATION_BUNDLE: &str = "ConfigurationBundle";
/// The kind that joins a profile and a cluster.
pub(crate) const CLUSTER_SUMMARY: &str = "ClusterSummary";
/// The kind in which the agent reports what it delivered.
pub(crate) const CLUSTER_CONFIGURATION: &str = "ClusterConfiguration";
/// The kind of a managed cluster that is registered with Sveltos itself.
pub(crate) const SVELTOS_CLUSTER: &str = "SveltosCluster";

/// The annotation on a ClusterProfile, a Profile or a ClusterSummary with the releases whose charts may render no
/// objects: `namespace/name`, separated by commas. Without it, such a release cannot be distinguished from one whose
/// chart failed.
pub(crate) const MAY_RENDER_NOTHING: &str = "interlock.dev/may-render-nothing";

/// A Helm release on a managed cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteRelease {
    /// The namespace on the managed cluster.
    pub namespace: String,
    pub name: String,
}

impl RemoteRelease {
    /// A release from its namespace on the managed cluster and its name.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for RemoteRelease {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}

/// The releases in the value of [`MAY_RENDER_NOTHING`] or [`crate::object::ALLOW_REMOVAL`]. Text other than `namespace/name` is ignored.
pub(crate) fn named_releases(value: &str) -> impl Iterator<Item = RemoteRelease> {
    let pairs = value.split(',').filter_map(|release| release.trim().split_once('/'));
    pairs.map(|(namespace, name)| RemoteRelease::new(namespace.trim(), name.trim()))
}

#[cfg(test)]
mod tests;
