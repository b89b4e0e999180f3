//! The ReleaseOverrides of a release, and whether one opens a rule to a reader.

use interlock_engine::evidence::{Freshness, question};
use interlock_engine::policy::Policy;
use interlock_engine::release::ReleaseRef;
use interlock_engine::release_override::Override;
use interlock_engine::rule::RuleId;
use jiff::Timestamp;

use crate::world::{World, ask};

/// Whether a ReleaseOverride opens a rule for a release: to a user, or, if the user is unknown, to all users. An override that
/// cannot be read opens nothing.
pub(crate) async fn opens(
    world: &dyn World,
    policy: &Policy,
    rule: RuleId,
    release: &ReleaseRef,
    user: Option<&str>,
    now: Timestamp,
) -> bool {
    let home = policy.overrides.home_of(release);
    let bounds = policy.overrides_in(&home.namespace);
    let found = stored(world, home).await.unwrap_or_default();
    found.iter().any(|it| match user {
        Some(user) => it.opens(rule, user, &bounds, now),
        None => it.spec.users.is_none() && it.opens(rule, "", &bounds, now),
    })
}

/// The overrides of a release. `home`: their namespace, and the name of the release.
///
/// # Errors
/// When the overrides cannot be read.
pub(crate) async fn stored(world: &dyn World, home: ReleaseRef) -> Result<Vec<Override>, String> {
    let ReleaseRef { namespace, name } = home;
    let overrides = question::Overrides { namespace, release: name, freshness: Freshness::Live };
    Ok(ask(world, overrides).await?.unwrap_or_default())
}
