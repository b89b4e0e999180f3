//! What an override opens is no longer refused.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Violation;
use super::need::{Need, known};
use crate::engine::evidence::{Evidence, Freshness, Knowledge, Query};
use crate::engine::facts::Facts;
use crate::engine::outcome;
use crate::engine::overrides::Override;
use crate::engine::policy::{Overrides, Policy, Scope};
use crate::engine::release::ReleaseRef;

/// The override by which a violation does not refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relief {
    /// Its namespace and name.
    pub name: String,
    /// Why it was made, in its maker's words.
    pub reason: String,
    /// When it closes.
    pub until: Timestamp,
}

/// Looks for overrides that open everything that would refuse a request; with less the request is refused anyway. Asks
/// nothing where nothing would refuse it, and first a copy that lags behind: it may open, and only the API server can say
/// that nothing does.
pub(crate) fn relieve(
    facts: &Facts<'_>,
    policy: &Policy,
    evidence: &Evidence,
    now: Timestamp,
    mut violations: Vec<Violation>,
) -> Result<Vec<Violation>, Query> {
    let scope = Scope::of(facts, policy);
    let refusing = |violation: &&mut Violation| outcome::applied(policy, &scope, violation).1;
    let mut refusing: Vec<_> = violations.iter_mut().filter(refusing).collect();
    if refusing.is_empty() {
        return Ok(violations);
    }
    for freshness in [Freshness::Cached, Freshness::Live] {
        let mut reliefs = Vec::new();
        let mut asked: BTreeMap<ReleaseRef, &[Override]> = BTreeMap::new();
        for violation in &refusing {
            let Some(release) = &violation.release else { return Ok(violations) };
            let home = policy.overrides.home_of(release);
            let bounds = policy.overrides_in(&home.namespace);
            if !bounds.allowed {
                return Ok(violations);
            }
            let found = match asked.get(&home) {
                Some(found) => found,
                None => asked.entry(home.clone()).or_insert(overrides(evidence, &home, freshness)?),
            };
            let opens = |it: &&Override| it.opens(violation.rule, facts.actor.name, &bounds, now);
            reliefs.extend(found.iter().find(opens).and_then(|it| Relief::of(it, &bounds)));
        }
        if reliefs.len() == refusing.len() {
            for (violation, relief) in refusing.iter_mut().zip(reliefs) {
                violation.overridden = Some(relief);
            }
            break;
        }
    }
    Ok(violations)
}

impl Relief {
    fn of(it: &Override, bounds: &Overrides) -> Option<Self> {
        let until = it.closes(bounds)?;
        Some(Self { name: it.reference(), reason: it.spec.reason.clone(), until })
    }
}

/// The overrides of a release; none where that cannot be learnt, so that what is refused stays so.
fn overrides<'e>(evidence: &'e Evidence, release: &ReleaseRef, freshness: Freshness) -> Result<&'e [Override], Query> {
    let ReleaseRef { namespace, name } = release.clone();
    match known(evidence, Query::Overrides { namespace, release: name, freshness }) {
        Ok(Some(Knowledge::Overrides(found))) => Ok(found),
        Err(Need::Ask(query)) => Err(query),
        Ok(_) | Err(_) => Ok(&[]),
    }
}
