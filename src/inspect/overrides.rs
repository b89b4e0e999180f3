//! Whether a ReleaseOverride opens a rule to a reader.

use interlock_engine::evidence::{Freshness, question};
use interlock_engine::policy::Policy;
use interlock_engine::release::ReleaseRef;
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
    let ReleaseRef { namespace, name } = policy.overrides.home_of(release);
    let bounds = policy.overrides_in(&namespace);
    let overrides = question::Overrides { namespace, release: name, freshness: Freshness::Live };
    let Ok(Some(found)) = ask(world, overrides).await else { return false };
    found.iter().any(|it| match user {
        Some(user) => it.opens(rule, user, &bounds, now),
        None => it.spec.users.is_none() && it.opens(rule, "", &bounds, now),
    })
}
