//! Who asks for a commit, and what the commit is called in overrides, policies, Events and reports.
//!
//! Sveltos draws a new random name for the ConfigurationGroup of each try, so a commit is called after what stays the same:
//!
//! | asked for by | example |
//! |---|---|
//! | a ClusterSummary, for a feature | `shop-sveltos-prod.helm` |
//! | a profile, if the group names no ClusterSummary | `shop.helm.clusterprofile` |
//! | neither is named | `config-x7k2p.configurationgroup` |
//!
//! No two of them share a name, because the last part of the name is another in each row, and the part before it the feature.
//! Most names lead back to their object. A name that would be too long ends in `.digest` and does not.

use std::fmt;

use sha2::{Digest, Sha256};

use super::{CLUSTER_SUMMARY, CONFIG_GROUP, CONFIGURATION_GROUP, ConfigurationGroup, Feature, LIB_GROUP, ProfileRef};
use crate::object::{MAX_NAME_LENGTH, ObjectKey, is_dns_subdomain};
use crate::release::ReleaseRef;

const CLUSTER_NAME: &str = "pullmode.projectsveltos.io/clustername";
const REQUESTOR_KIND: &str = "pullmode.projectsveltos.io/requestorkind";
const REQUESTOR_FEATURE: &str = "pullmode.projectsveltos.io/requestorfeature";
const REQUESTOR_NAME: &str = "pullmode.projectsveltos.io/requestorname";

/// The features of Sveltos, with their parts of names.
const FEATURES: [(&str, &str); 3] = [("Helm", "helm"), ("Resources", "resources"), ("Kustomize", "kustomize")];

/// The part for any other feature.
const OTHER_FEATURE: &str = "other";

/// The last part of the name of a commit of a profile, with the kind of the profile.
const PROFILES: [(&str, &str); 2] = [("ClusterProfile", "clusterprofile"), ("Profile", "profile")];

/// The last part of the name of a commit that nobody asks for.
const OF_GROUP: &str = "configurationgroup";

/// The last part of a shortened name.
const SHORTENED: &str = "digest";

/// The longest name. `interlock override` begins the name of an override with it and a dash.
const MAX_COMMIT_NAME_LENGTH: usize = MAX_NAME_LENGTH - "-".len();

/// The number of hexadecimal digits in a shortened name.
const DIGEST_DIGITS: usize = 32;

/// Who asks for a commit, as its group says. Whoever writes the group chooses these values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Requestor<'g> {
    kind: Option<&'g str>,
    feature: Option<&'g str>,
    name: Option<&'g str>,
    cluster: Option<&'g str>,
    pub(crate) profile: &'g ProfileRef<'g>,
}

/// What a commit is called, and the object that it is a commit of.
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
            // No object has a name of another form.
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

    /// Whether the group says what a profile deploys. Other controllers of Sveltos write groups of their own kinds.
    pub(crate) fn is_profile(&self) -> bool {
        self.kind == Some(CLUSTER_SUMMARY) || PROFILES.iter().any(|(kind, _)| *kind == self.profile.kind)
    }

    /// Whether it is a feature that cannot lose a part: Kustomize fails if its source is missing.
    pub(crate) fn is_safe(&self) -> bool {
        self.feature == Some("Kustomize")
    }

    /// The features that rules judge and that the agent may take the group for; none for an unknown feature. Sveltos always
    /// names one.
    pub(crate) fn features(&self) -> &'static [Feature] {
        match self.feature {
            Some("Helm") => &[Feature::Helm],
            Some("Resources") => &[Feature::Resources],
            Some(_) => &[],
            None => &[Feature::Helm, Feature::Resources],
        }
    }

    /// The ClusterSummary that the group names, in the same namespace.
    pub(crate) fn summary(&self) -> Option<&'g str> {
        self.name
    }

    /// The name that Sveltos gives to the ClusterSummary of the profile on the cluster.
    pub(crate) fn expected_summary(&self) -> Option<String> {
        let cluster = self.cluster?;
        let prefix = match self.profile.kind.as_ref() {
            "ClusterProfile" => "",
            "Profile" => "p--",
            _ => return None,
        };
        let name = format!("{prefix}{}-sveltos-{cluster}", self.profile.name);
        is_dns_subdomain(&name, MAX_NAME_LENGTH).then_some(name)
    }

    /// Whether a ClusterSummary is that of another cluster or another profile.
    pub(crate) fn is_contradicted_by(&self, cluster: &str, profile: Option<(&str, &str)>) -> bool {
        let named = (self.profile.kind.as_ref(), self.profile.name.as_ref());
        self.cluster.is_some_and(|named| !cluster.is_empty() && named != cluster)
            || profile.is_some_and(|profile| !named.1.is_empty() && profile != named)
    }

    /// What the commit is called, by what the group says. `name` is that of the group.
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

    /// What the commit is called if it is that of a ClusterSummary.
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

    /// The object of a commit that is known by its name; `None` for a shortened name, and for the name of something else.
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

/// A name with its last parts, shortened if it is too long for the name of an object.
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
