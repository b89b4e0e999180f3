//! Version ranges as OLM parses `spec.source.catalog.version`: the constraints of Masterminds/semver 3.
//!
//! The crate `semver` parses Cargo's dialect (`1.2.3` is `^1.2.3`, no `||`, no hyphens), so only its versions are used here.
//! Build metadata does not affect the order, and OLM ignores it in ranges. But two ranges with different build metadata are still
//! different requests.

mod comparator;
mod parser;

use std::collections::BTreeSet;

use semver::{BuildMetadata, Prerelease, Version};

use crate::effort::{Effort, OverBudget};
use comparator::Comparator;

/// The maximum length of a text that Masterminds parses, in bytes.
const MAX_BYTES: usize = 512;

/// Steps to compare a version with a comparator.
const COMPARE_STEPS: u64 = 20;

/// A version range: a list of alternatives. Each alternative is a list of comparators that must all match. Without alternatives,
/// the range admits every version, including pre-releases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VersionRange(Vec<Vec<Comparator>>);

impl VersionRange {
    /// Parses a range; `None` if OLM could not parse it. An empty text means no limit.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_BYTES {
            return None;
        }
        if text.is_empty() {
            return Some(Self(Vec::new()));
        }
        text.split("||").map(parser::comparators).collect::<Option<_>>().map(Self)
    }

    /// Whether the range admits this version and no other. A range with build metadata admits only that build.
    ///
    /// # Errors
    /// The review has too few steps left.
    pub(crate) fn is_only(&self, version: &Version, effort: &Effort) -> Result<bool, OverBudget> {
        let same_build = self.builds().all(|named| named.build == version.build);
        let single = self.single(effort)?;
        Ok(same_build && single.is_some_and(|single| single.cmp_precedence(version).is_eq()))
    }

    /// The only version that the range admits; `None` if there are several or none.
    ///
    /// # Errors
    /// The review has too few steps left.
    pub(crate) fn single(&self, effort: &Effort) -> Result<Option<Version>, OverBudget> {
        let probes = self.probes();
        self.pay_for(probes.len(), effort)?;
        let mut admitted = probes.into_iter().filter(|version| self.admits(version));
        let first = admitted.next();
        Ok(first.filter(|_| admitted.next().is_none()))
    }

    /// Whether two ranges admit the same versions and name the same builds, in any spelling.
    ///
    /// # Errors
    /// The review has too few steps left.
    pub(crate) fn admits_the_same(&self, other: &Self, effort: &Effort) -> Result<bool, OverBudget> {
        let probes: BTreeSet<_> = self.probes().into_iter().chain(other.probes()).collect();
        self.pay_for(probes.len(), effort)?;
        other.pay_for(probes.len(), effort)?;
        let builds = |range: &Self| range.builds().cloned().collect::<BTreeSet<_>>();
        let alike = probes.iter().all(|version| self.admits(version) == other.admits(version));
        Ok(alike && builds(self) == builds(other))
    }

    fn admits(&self, version: &Version) -> bool {
        let admits = |all: &Vec<Comparator>| {
            // A pre-release matters only if a comparator names one.
            let with_pre_releases = all.iter().any(Comparator::is_of_pre_release);
            (version.pre.is_empty() || with_pre_releases) && all.iter().all(|comparator| comparator.admits(version))
        };
        self.0.is_empty() || self.0.iter().any(admits)
    }

    fn comparators(&self) -> impl Iterator<Item = &Comparator> {
        self.0.iter().flatten()
    }

    /// The versions in the range that have build metadata.
    fn builds(&self) -> impl Iterator<Item = &Version> {
        self.comparators().map(Comparator::version).filter(|version| !version.build.is_empty())
    }

    /// Sample versions: at least two from every interval in which the answers of all comparators are constant, or its only
    /// version. Every version has a next one among the releases, and one among the pre-releases.
    fn probes(&self) -> BTreeSet<Version> {
        let mut probes = BTreeSet::new();
        let zero = Version::new(0, 0, 0);
        for version in self.comparators().map(Comparator::version).chain([&zero]) {
            let Version { major, minor, patch, .. } = *version;
            let release = Some(Version::new(major, minor, patch));
            let next_minor = minor.checked_add(1).map(|minor| Version::new(major, minor, 0));
            let next_major = major.checked_add(1).map(|major| Version::new(major, 0, 0));
            for from in [release, next_minor, next_major].into_iter().flatten() {
                for patch in (0..3).filter_map(|further| from.patch.checked_add(further)) {
                    let release = Version { patch, ..from.clone() };
                    probes.extend(["0", "0.0"].into_iter().filter_map(|pre| pre_release(&release, pre)));
                    probes.insert(release);
                }
            }
            if !version.pre.is_empty() {
                let further = ["", ".0", ".0.0"].into_iter();
                probes.extend(further.filter_map(|more| pre_release(version, &format!("{}{more}", version.pre))));
            }
        }
        probes
    }

    fn pay_for(&self, probes: usize, effort: &Effort) -> Result<(), OverBudget> {
        let comparators = self.comparators().count() as u64;
        effort.take((comparators + 1).saturating_mul(probes as u64).saturating_mul(COMPARE_STEPS))
    }
}

/// Parses a version, with or without a leading `v`.
#[must_use]
pub(crate) fn version(text: &str) -> Option<Version> {
    Version::parse(text.strip_prefix('v').unwrap_or(text)).ok()
}

/// The version in a chart's `name-version`. The name is that of the package, or another one without a version after a hyphen.
#[must_use]
pub fn version_of(chart: &str, package: &str) -> Option<Version> {
    let of_package = chart.strip_prefix(package).and_then(|rest| rest.strip_prefix('-')).and_then(version);
    of_package.or_else(|| chart.match_indices('-').find_map(|(at, _)| version(&chart[at + 1..])))
}

fn pre_release(of: &Version, pre: &str) -> Option<Version> {
    let pre = Prerelease::new(pre).ok()?;
    Some(Version { pre, build: BuildMetadata::EMPTY, ..of.clone() })
}

#[cfg(test)]
mod tests;
