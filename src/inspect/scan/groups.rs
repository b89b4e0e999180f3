//! ConfigurationGroups that name missing bundles.

use std::collections::HashSet;

use interlock_engine::json::redacted;
use interlock_engine::owners::{BUNDLES, BundleRef, COMMITS, ConfigurationGroup};
use serde_json::value::RawValue;

use super::context::ScanContext;
use super::declarations;
use super::finding::Finding;
use super::gather::named;

pub(super) const CONFIGURATION_GROUPS: &str = "ConfigurationGroups";

impl ScanContext<'_> {
    /// The findings for ConfigurationGroups; `None` if the kind is not installed or cannot be read.
    pub(super) async fn groups(&self) -> Option<Vec<Finding>> {
        let listing = self.listing(COMMITS.0, COMMITS.1, self.places(), CONFIGURATION_GROUPS).await?;
        let complete = listing.clone().complete();
        let groups = complete.fold(&self.client, Vec::new, |groups, item| match needed(item) {
            Ok((_, _, needed)) if needed.is_empty() => {}
            Ok((namespace, name, mut needed)) => {
                needed.retain(|bundle| self.options.reach.includes(&bundle.namespace));
                groups.push((namespace, name, needed));
            }
            Err(error) => self.gap("ConfigurationGroups that cannot be parsed", error),
        });
        let groups = self.or_gap(CONFIGURATION_GROUPS, groups.await)?;
        if groups.is_empty() {
            return Some(Vec::new());
        }
        // A group may name bundles in other namespaces. Those out of reach are ignored.
        let bundles = self.listing(BUNDLES.0, BUNDLES.1, self.options.reach.places(), CONFIGURATION_GROUPS).await?;
        let there = bundles.fold(&self.client, HashSet::new, |there, item| {
            there.extend(named(item).map(|(namespace, name)| BundleRef { namespace, name }));
        });
        let there = self.or_gap(CONFIGURATION_GROUPS, there.await)?;
        let dangling = groups
            .iter()
            .filter_map(|(namespace, name, needed)| declarations::dangling(name, namespace, needed, &there));
        let mut found: Vec<_> = dangling.collect();
        if found.is_empty() {
            return Some(found);
        }
        // A rollout that ended between the two lists has deleted its group together with the bundles.
        let still = listing.fold(&self.client, HashSet::new, |still, item| still.extend(named(item)));
        let still = self.or_gap(CONFIGURATION_GROUPS, still.await)?;
        found.retain(|finding| still.contains(&(finding.namespace().to_owned(), finding.name().to_owned())));
        Some(found)
    }
}

fn needed(item: &RawValue) -> Result<(String, String, Vec<BundleRef>), String> {
    let group: ConfigurationGroup<'_> = serde_json::from_str(item.get()).map_err(|error| redacted(&error))?;
    let (namespace, name) = named(item).ok_or("its metadata cannot be parsed")?;
    let needed = declarations::needed(&group, &namespace)?;
    Ok((namespace, name, needed))
}
