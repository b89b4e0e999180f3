//! Whether what a commit leaves out was delivered before: only then something can be lost.

use super::delivery::Delivery;
use crate::engine::object::ObjectKey;
use crate::engine::rules::undecided::Undecided;
use crate::engine::sveltos::{self, ClusterConfiguration, RemoteRelease};

/// Whether one of these releases was delivered. Each piece of evidence has gaps: the hash is missing after a release changed hands,
/// and present if a chart was rendered but never delivered; the account of the agent lags; the previous commit exists only while a
/// rollout is in flight. So any of them is enough, the one without a read first.
pub(super) fn any_release(delivery: &Delivery<'_>, releases: &[RemoteRelease]) -> Result<bool, Undecided> {
    if releases.is_empty() {
        return Ok(false);
    }
    let entries = delivery.summary.releases();
    let hashed = |release: &RemoteRelease| entries.iter().any(|it| it.is_of(release) && !it.values_hash.is_empty());
    if releases.iter().any(hashed) {
        return Ok(true);
    }
    // What another profile delivered cannot be removed by this one, unless the release has changed hands.
    let profile = &delivery.commit.group.spec.source_ref;
    let managed = |release: &RemoteRelease| entries.iter().any(|entry| entry.is_of(release) && entry.is_managed());
    let listed = |account: ClusterConfiguration<'_>| {
        let lists = |it: &RemoteRelease| if managed(it) { account.lists(it) } else { account.lists_of(profile, it) };
        releases.iter().any(lists)
    };
    if account(delivery, releases.len())?.is_some_and(listed) {
        return Ok(true);
    }
    let before = delivery.commit.bundles_before()?;
    delivery.case.pay_for_pairs(releases.len(), before.len())?;
    Ok(before.iter().flatten().any(|bundle| releases.iter().any(|release| bundle.deploys(release))))
}

/// Whether one of these sources, as kind and name, was delivered.
pub(super) fn any_source(delivery: &Delivery<'_>, sources: &[(String, String)]) -> Result<bool, Undecided> {
    let profile = &delivery.commit.group.spec.source_ref;
    let listed = |account: ClusterConfiguration<'_>| {
        sources.iter().any(|(kind, name)| account.may_list_source(profile, kind, name))
    };
    if account(delivery, sources.len())?.is_some_and(listed) {
        return Ok(true);
    }
    let before = delivery.commit.bundles_before()?;
    delivery.case.pay_for_pairs(sources.len(), before.len())?;
    Ok(before.iter().flatten().any(|bundle| sources.iter().any(|(kind, name)| bundle.is_from(kind, name))))
}

/// The account of the agent of what it has delivered to the cluster, to be searched for so many items.
fn account<'a>(delivery: &Delivery<'a>, searched: usize) -> Result<Option<ClusterConfiguration<'a>>, Undecided> {
    let spec = &delivery.summary.spec;
    let name = format!("{}--{}", spec.cluster_type.to_ascii_lowercase(), spec.cluster_name);
    let key = ObjectKey::new(sveltos::CONFIG_GROUP, sveltos::CLUSTER_CONFIGURATION, &spec.cluster_namespace, &name);
    let account = delivery.case.read::<ClusterConfiguration<'a>>(key)?;
    delivery.case.pay_for_pairs(searched, account.as_ref().map_or(0, ClusterConfiguration::entries))?;
    Ok(account)
}
