//! Whether the statuses of an owner prove something in this cluster.
//!
//! The rule `forged-status` admits the writes of every service account as long as no controller under `managers` exists, because
//! one of them may be the controller under another name. Then any of them can forge a status, and so a status may open nothing.

use crate::evidence::{Evidence, question};
use crate::object::{ObjectKey, SERVICE_ACCOUNT_PREFIX};
use crate::policy::Policy;
use crate::rules::undecided::{Undecided, ask, if_answered};

/// The characters of a glob.
pub(crate) const GLOB: [char; 4] = ['*', '?', '[', '{'];

/// Whether a status that the controller with this account name writes may open something. Yes if that is unknown: because Interlock
/// may not read the account, or because the policy lists controllers by a glob.
pub(crate) fn proves(evidence: &Evidence, policy: &Policy, controller: &str) -> Result<bool, Undecided> {
    if namespaces_of_listed(policy, |name| name == controller).any(|namespace| namespace.contains(GLOB)) {
        return Ok(true);
    }
    Ok(if_answered(any_listed_account(evidence, policy, controller))?.unwrap_or(true))
}

/// Whether one of the service accounts with this name exists that the policy lists under `managers`, without globs; `None` if the world
/// cannot tell.
pub(crate) fn any_listed_account(
    evidence: &Evidence,
    policy: &Policy,
    controller: &str,
) -> Result<Option<bool>, Undecided> {
    let namespaces =
        namespaces_of_listed(policy, |name| name == controller).filter(|namespace| !namespace.contains(GLOB));
    let accounts: Vec<_> =
        namespaces.map(|namespace| ObjectKey::new("", "ServiceAccount", namespace, controller)).collect();
    if accounts.is_empty() {
        return Ok(Some(false));
    }
    Ok(ask(evidence, question::AnyAccount(accounts))?.copied())
}

/// The namespaces in which the policy lists a service account with such a name under `managers`. They may be globs.
pub(crate) fn namespaces_of_listed(policy: &Policy, is_wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = &str> {
    let accounts = policy.managers.texts().iter().filter_map(|user| user.strip_prefix(SERVICE_ACCOUNT_PREFIX));
    let accounts = accounts.filter_map(|account| account.split_once(':'));
    accounts.filter(move |(_, name)| is_wanted(name)).map(|(namespace, _)| namespace)
}
