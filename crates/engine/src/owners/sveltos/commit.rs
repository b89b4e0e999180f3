//! The requestor of a commit, and the name of the commit in overrides, policies, Events and reports.
//!
//! Sveltos creates a ConfigurationGroup with a new random name for each attempt, so the name of a commit uses properties that
//! stay the same:
//!
//! | requested by | example |
//! |---|---|
//! | a ClusterSummary, for a feature | `shop-sveltos-prod.helm` |
//! | a profile, if the group names no ClusterSummary | `shop.helm.clusterprofile` |
//! | neither is named | `config-x7k2p.configurationgroup` |
//!
//! Names in different rows never collide, because each row has a different last part, with the feature before it. Most names lead
//! back to their object, but not a name that was too long and so ends in `.digest`.

use std::fmt;

use sha2::{Digest, Sha256};

use super::{CLUSTER_SUMMARY, CONFIG_GROUP, CONFIGURATION_GROUP, ConfigurationGroup, Feature, LIB_GROUP, ProfileRef};
use crate::object::{MAX_NAME_LENGTH, ObjectKey, is_dns_subdomain};
use crate::release::ReleaseRef;

const CLUSTER_NAME: &str = "pullmode.projectsveltos.io/clustername";
const REQUESTOR_KIND: &str = "pullmode.projectsveltos.io/requestorkind";
const REQUESTOR_FEATURE: &str = "pullmode.projectsveltos.io/requestorfeature";
const REQUESTOR_NAME: &str = "pullmode.projectsveltos.io/requestorname";

/// The features of Sveltos, and their spelling in names.
const FEATURES: [(&str, &str); 3] = [("Helm", "helm"), ("Resources", "resources"), ("Kustomize", "kustomize")];

/// The spelling of any other feature.
const OTHER_FEATURE: &str = "other";

/// The last part of the name of a commit of a profile, with the kind of the profile.
const PROFILES: [(&str, &str); 2] = [("ClusterProfile", "clusterprofile"), ("Profile", "profile")];

/// The last part of the name of a commit without a requestor.
const OF_GROUP: &str = "configurationgroup";

/// The last part of a shortened name.
const SHORTENED: &str = "digest";

/// The maximum length of a name. `interlock override` starts the name of an override with it and a dash.
const MAX_COMMIT_NAME_LENGTH: usize = MAX_NAME_LENGTH - "-".len();

/// The number of hexadecimal digits in a shortened name.
const DIGEST_DIGITS: usize = 32;

/// The requestor of a commit, according to its group. The author of the group chooses these values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Requestor<'g> {
    kind: Option<&'g str>,
    feature: Option<&'g str>,
    name: Option<&'g str>,
    cluster: Option<&'g str>,
    pub(crate) profile: &'g ProfileRef<'g>,
}

/// The name of a commit, and its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    pub name: String,
    /// The ClusterSummary, the profile or the group.
    pub object: ObjectKey,
    /// `Helm`; empty for an unknown feature.
    feature: &'static str,
}

impl<'g> Requestor<'g> {
    /// The requestor of a group. A write that removes a mark still concerns the requestor.
    pub(crate) fn of(group: &'g ConfigurationGroup<'g>, before: Option<&'g ConfigurationGroup<'g>>) -> Self {
        let sides = || [Some(group), before].into_iter().flatten();
        let given = |text: &&str| !text.is_empty();
        let label = |key| sides().find_map(|side| side.metadata.label(key).filter(given));
        Self {
            kind: label(REQUESTOR_KIND),
            feature: label(REQUESTOR_FEATURE),
            // Other values cannot be names of objects.
            name: sides().find_map(|side| {
                side.metadata.annotation(REQUESTOR_NAME).filter(|name| is_dns_subdomain(name, MAX_NAME_LENGTH))
            }),
            cluster: label(CLUSTER_NAME),
            profile: &group.spec.source_ref,
        }
    }

    /// Whether both groups have the same marks.
    pub(crate) fn has_marks_of(&self, other: &Requestor<'_>) -> bool {
        let marks = |it: &Requestor<'g>| (it.kind, it.feature, it.name, it.cluster);
        marks(self) == (other.kind, other.feature, other.name, other.cluster)
    }

    /// Whether the group belongs to a profile. Other controllers of Sveltos write other kinds of groups.
    pub(crate) fn is_profile(&self) -> bool {
        self.kind == Some(CLUSTER_SUMMARY) || PROFILES.iter().any(|(kind, _)| *kind == self.profile.kind)
    }

    /// The features that rules check and that the agent may apply the group to; none for an unknown feature. Sveltos always sets
    /// one.
    pub(crate) fn features(&self) -> &'static [Feature] {
        match self.feature {
            Some("Helm") => &[Feature::Helm],
            Some("Resources") => &[Feature::Resources],
            Some("Kustomize") => &[Feature::Kustomize],
            Some(_) => &[],
            None => &[Feature::Helm, Feature::Resources, Feature::Kustomize],
        }
    }

    /// The ClusterSummary that the group names, in the same namespace.
    pub(crate) fn summary(&self) -> Option<&'g str> {
        self.name
    }

    /// The name that Sveltos gives to the ClusterSummary of the profile on the cluster.
    pub(crate) fn expected_summary(&self) -> Option<String> {
        name_of_summary(&self.profile.kind, &self.profile.name, self.cluster?)
    }

    /// Whether a ClusterSummary belongs to another cluster or another profile.
    pub(crate) fn is_contradicted_by(&self, cluster: &str, profile: Option<(&str, &str)>) -> bool {
        let named = (self.profile.kind.as_ref(), self.profile.name.as_ref());
        self.cluster.is_some_and(|named| !cluster.is_empty() && named != cluster)
            || profile.is_some_and(|profile| !named.1.is_empty() && profile != named)
    }

    /// The name of the commit, according to the group. `name` is the name of the group.
    pub(crate) fn commit(&self, namespace: &str, name: &str) -> Commit {
        if let Some(summary) = self.name {
            return self.commit_of_summary(namespace, summary);
        }
        let (feature, part) = self.feature_parts();
        let ProfileRef { kind, namespace: home, name: profile } = self.profile;
        let of_profile = PROFILES.iter().find(|(known, _)| known == kind);
        match of_profile.filter(|_| is_dns_subdomain(profile, MAX_NAME_LENGTH)) {
            Some((kind, last)) => Commit {
                name: bounded(profile, &format!("{part}.{last}")),
                object: ObjectKey::new(CONFIG_GROUP, kind, home, profile),
                feature,
            },
            None => Commit {
                name: bounded(name, OF_GROUP),
                object: ObjectKey::new(LIB_GROUP, CONFIGURATION_GROUP, namespace, name),
                feature,
            },
        }
    }

    /// The name of the commit, if it belongs to a ClusterSummary.
    pub(crate) fn commit_of_summary(&self, namespace: &str, summary: &str) -> Commit {
        let (feature, part) = self.feature_parts();
        Commit {
            name: bounded(summary, part),
            object: ObjectKey::new(CONFIG_GROUP, CLUSTER_SUMMARY, namespace, summary),
            feature,
        }
    }

    fn feature_parts(&self) -> (&'static str, &'static str) {
        let known = FEATURES.into_iter().find(|(feature, _)| self.feature == Some(feature));
        known.unwrap_or(("", OTHER_FEATURE))
    }
}

impl Commit {
    /// The commit as a release.
    #[must_use]
    pub fn release(&self, namespace: &str) -> ReleaseRef {
        ReleaseRef::new(namespace, &self.name)
    }

    /// The object of a commit with this name; `None` for a shortened name, and for a name that is not a commit's.
    #[must_use]
    pub(crate) fn object_of(release: &ReleaseRef) -> Option<ObjectKey> {
        let (rest, last) = release.name.rsplit_once('.')?;
        let is_feature = |part: &str| part == OTHER_FEATURE || FEATURES.iter().any(|(_, known)| *known == part);
        if is_feature(last) {
            return Some(ObjectKey::new(CONFIG_GROUP, CLUSTER_SUMMARY, &release.namespace, rest));
        }
        let (kind, _) = PROFILES.iter().find(|(_, known)| *known == last)?;
        let (profile, _) = rest.rsplit_once('.').filter(|(_, feature)| is_feature(feature))?;
        let home = if *kind == "Profile" { release.namespace.as_str() } else { "" };
        Some(ObjectKey::new(CONFIG_GROUP, kind, home, profile))
    }
}

/// `the Helm commit of ClusterSummary civ/shop-sveltos-prod`, `ConfigurationGroup civ/config-x7k2p`.
impl fmt::Display for Commit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectKey { kind, namespace, name, .. } = &self.object;
        if kind != CONFIGURATION_GROUP {
            let space = if self.feature.is_empty() { "" } else { " " };
            write!(out, "the {}{space}commit of ", self.feature)?;
        }
        let scope = if namespace.is_empty() { "" } else { "/" };
        write!(out, "{kind} {namespace}{scope}{name}")
    }
}

/// The name that Sveltos gives to the ClusterSummary of a profile on a cluster; `None` for another kind.
pub(crate) fn name_of_summary(kind: &str, profile: &str, cluster: &str) -> Option<String> {
    let prefix = match kind {
        "ClusterProfile" => "",
        "Profile" => "p--",
        _ => return None,
    };
    let name = format!("{prefix}{profile}-sveltos-{cluster}");
    is_dns_subdomain(&name, MAX_NAME_LENGTH).then_some(name)
}

/// Appends the last parts to a name, and shortens it if it is too long for the name of an object.
fn bounded(name: &str, last: &str) -> String {
    if name.len() + ".".len() + last.len() <= MAX_COMMIT_NAME_LENGTH {
        return format!("{name}.{last}");
    }
    let room = MAX_COMMIT_NAME_LENGTH - last.len() - DIGEST_DIGITS - SHORTENED.len() - "...".len();
    let head = name[..name.floor_char_boundary(room)].trim_end_matches(['.', '-']);
    let digest = Sha256::digest(name);
    let digits = digest.iter().take(DIGEST_DIGITS / 2).fold(String::new(), |it, byte| format!("{it}{byte:02x}"));
    format!("{head}.{digits}.{last}.{SHORTENED}")
}

#[cfg(test)]
mod tests;
