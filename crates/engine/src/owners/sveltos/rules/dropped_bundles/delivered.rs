//! Whether the missing parts of a commit were delivered before. Only then can something be lost.

use std::collections::BTreeSet;

use super::delivery::Delivery;
use crate::object::ObjectKey;
use crate::owners::sveltos::{
    self, Bundle, ClusterConfiguration, ClusterSummary, HelmReleaseSummary, Origin, Reference, RemoteRelease, Source,
    name_of_summary,
};
use crate::rules::undecided::Undecided;

/// Whether one of these releases was delivered. Each piece of evidence has gaps. The hash is missing after a release changed
/// hands, and is present if a chart was rendered but never delivered. The agent's report lags. The previous commit exists only
/// during a rollout. So one piece of evidence is enough. The one that needs no read is checked first.
pub(super) fn any_release(delivery: &Delivery<'_, '_>, releases: &[RemoteRelease]) -> Result<bool, Undecided> {
    if releases.is_empty() {
        return Ok(false);
    }
    let entries = delivery.summary().releases();
    let hashed = |release: &RemoteRelease| entries.iter().any(|it| it.is_of(release) && !it.values_hash.is_empty());
    if releases.iter().any(hashed) {
        return Ok(true);
    }
    // This profile cannot remove what another profile delivered, unless the release has changed hands.
    let profile = delivery.of_summary.profile();
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

/// Those of the releases that the profile delivered and that no other profile has taken over.
pub(super) fn releases(
    delivery: &Delivery<'_, '_>,
    is_asked_for: impl Fn(&RemoteRelease) -> bool,
) -> Result<BTreeSet<RemoteRelease>, Undecided> {
    let entries = delivery.summary().releases();
    let hashed = entries.iter().filter(|entry| entry.is_managed() && !entry.values_hash.is_empty());
    let account = account(delivery, 1)?;
    let listed = account.iter().flat_map(|account| account.releases_of(delivery.of_summary.profile()));
    let before = delivery.commit.bundles_before()?.iter().flatten().filter(|bundle| !bundle.uninstalls);
    let before = before.filter_map(|bundle| bundle.release.clone());
    let all = hashed.map(HelmReleaseSummary::release).chain(listed).chain(before).filter(is_asked_for);
    let mut delivered: BTreeSet<_> = all.collect();
    delivery.case.pay_for_pairs(delivered.len(), entries.len())?;
    delivered.retain(|release| !entries.iter().any(|entry| entry.is_in_conflict() && entry.is_of(release)));
    delivery.case.pay_for_pairs(delivered.len(), account.as_ref().map_or(0, ClusterConfiguration::entries))?;
    let mut kept = BTreeSet::new();
    for release in delivered {
        if !is_taken_over(delivery, account.as_ref(), &release)? {
            kept.insert(release);
        }
    }
    Ok(kept)
}

/// Whether another profile has delivered the release and manages it now.
fn is_taken_over(
    delivery: &Delivery<'_, '_>,
    account: Option<&ClusterConfiguration<'_>>,
    release: &RemoteRelease,
) -> Result<bool, Undecided> {
    let spec = &delivery.summary().spec;
    let others = account.into_iter().flat_map(|it| it.others_with(delivery.of_summary.profile(), release));
    for (kind, profile) in others {
        let Some(name) = name_of_summary(kind, profile, &spec.cluster_name) else { continue };
        let key = ObjectKey::new(sveltos::CONFIG_GROUP, sveltos::CLUSTER_SUMMARY, &spec.cluster_namespace, &name);
        let summary = delivery.case.read::<ClusterSummary<'_>>(key)?;
        let summary = summary.filter(|summary| summary.metadata.deletion_timestamp.is_none());
        if summary.is_some_and(|it| it.releases().iter().any(|entry| entry.is_managed() && entry.is_of(release))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The missing references from which something was delivered. The meaning of a template is known only from what was delivered. A
/// template is lost only if no bundle in the commit comes from that object any more.
pub(super) fn lost_references<'r>(
    delivery: &Delivery<'_, '_>,
    missing: &[&'r Reference],
) -> Result<Vec<&'r Reference>, Undecided> {
    let account = account(delivery, missing.len())?;
    let profile = delivery.of_summary.profile();
    let listed: Vec<_> = account.iter().flat_map(|it| it.sources_of(profile, delivery.feature)).collect();
    let (before, now) = (delivery.commit.bundles_before()?, delivery.commit.bundles()?);
    delivery.case.pay_for_pairs(missing.len() + listed.len(), before.len() + now.len())?;
    let is_kept = |(kind, namespace, name): &(&str, &str, &str)| {
        let is_it = |source: &Source| {
            let anywhere = namespace.is_empty() || source.namespace.is_empty() || source.namespace == *namespace;
            (source.kind.as_str(), source.name.as_str()) == (*kind, *name) && anywhere
        };
        now.iter().flatten().filter_map(|bundle| bundle.source.as_ref()).any(is_it)
    };
    let listed: Vec<_> = listed.iter().map(|source| (source, is_kept(source))).collect();
    let is_same =
        |bundle: &Bundle| now.iter().flatten().any(|it| (&it.source, &it.index) == (&bundle.source, &bundle.index));
    let before: Vec<_> = before.iter().flatten().map(|bundle| (bundle, is_same(bundle))).collect();
    if account.is_none() && before.is_empty() {
        // The agent has not reported yet. The ClusterSummary still says whether the feature has deployed anything.
        let all = if delivery.summary().has_deployed(delivery.feature) { missing } else { &[] };
        return Ok(all.to_vec());
    }
    let is_lost = |reference: &&&Reference| {
        let may_be_lost = |is_kept: bool| !(reference.is_template() && is_kept);
        let was_listed = listed.iter().any(|((kind, namespace, name), is_kept)| {
            may_be_lost(*is_kept) && (name.is_empty() || reference.can_be(kind, namespace, name))
        });
        let was_named = || {
            before.iter().any(|(bundle, is_kept)| may_be_lost(*is_kept) && reference.origin_of(bundle) == Origin::Same)
        };
        was_listed || was_named()
    };
    Ok(missing.iter().filter(is_lost).copied().collect())
}

/// The agent's report of what it delivered to the cluster. Charges the budget for searching it for this many items.
fn account<'a>(delivery: &Delivery<'_, 'a>, searched: usize) -> Result<Option<ClusterConfiguration<'a>>, Undecided> {
    let spec = &delivery.summary().spec;
    let name = format!("{}--{}", spec.cluster_type.to_ascii_lowercase(), spec.cluster_name);
    let key = ObjectKey::new(sveltos::CONFIG_GROUP, sveltos::CLUSTER_CONFIGURATION, &spec.cluster_namespace, &name);
    let account = delivery.case.read::<ClusterConfiguration<'a>>(key)?;
    delivery.case.pay_for_pairs(searched, account.as_ref().map_or(0, ClusterConfiguration::entries))?;
    Ok(account)
}
