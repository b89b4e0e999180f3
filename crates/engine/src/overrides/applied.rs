//! Finds the overrides that open what would be refused.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::evidence::{Evidence, Freshness, Knowledge, Query};
use crate::facts::Facts;
use crate::outcome::WeighedViolation;
use crate::policy::{OverrideSettings, Policy};
use crate::release::ReleaseRef;
use crate::release_override::Override;
use crate::rules::{Undecided, lookup};
use crate::violation::Relief;

/// Looks for overrides that open every violation that would refuse the request; with fewer it is refused anyway. Asks nothing
/// if nothing would refuse it. Asks a cache first: a cached override may open a rule, and only the API server can say that
/// there is none.
///
/// # Errors
/// The query that needs an answer.
pub(crate) fn relieve(
    facts: &Facts<'_>,
    policy: &Policy,
    evidence: &Evidence,
    now: Timestamp,
    mut judged: Vec<WeighedViolation>,
) -> Result<Vec<WeighedViolation>, Query> {
    let mut refusing: Vec<_> = judged.iter_mut().filter(|judged| judged.refuses).collect();
    if refusing.is_empty() {
        return Ok(judged);
    }
    for freshness in [Freshness::Cached, Freshness::Live] {
        let mut reliefs = Vec::new();
        let mut asked: BTreeMap<ReleaseRef, &[Override]> = BTreeMap::new();
        for WeighedViolation { violation, .. } in &refusing {
            let Some(release) = &violation.release else { return Ok(judged) };
            let home = policy.overrides.home_of(release);
            let bounds = policy.overrides_in(&home.namespace);
            if !bounds.allowed {
                return Ok(judged);
            }
            let found = match asked.get(&home) {
                Some(found) => found,
                None => asked.entry(home.clone()).or_insert(overrides(evidence, &home, freshness)?),
            };
            let opens = |it: &&Override| it.opens(violation.rule, facts.actor.name, &bounds, now);
            reliefs.extend(found.iter().find(opens).and_then(|it| relief_of(it, &bounds)));
        }
        if reliefs.len() == refusing.len() {
            for (judged, relief) in refusing.iter_mut().zip(reliefs) {
                judged.violation.overridden = Some(relief);
                judged.refuses = false;
            }
            break;
        }
    }
    Ok(judged)
}

fn relief_of(it: &Override, bounds: &OverrideSettings) -> Option<Relief> {
    let until = it.closes(bounds)?;
    let spec = &it.spec;
    Some(Relief { name: it.reference(), reason: spec.reason.clone(), ticket: spec.ticket.clone(), until })
}

/// The overrides of a release. None if there is no answer, so that a refusal stays one.
fn overrides<'e>(evidence: &'e Evidence, release: &ReleaseRef, freshness: Freshness) -> Result<&'e [Override], Query> {
    let ReleaseRef { namespace, name } = release.clone();
    match lookup(evidence, Query::Overrides { namespace, release: name, freshness }) {
        Ok(Some(Knowledge::Overrides(found))) => Ok(found),
        Err(Undecided::Ask(query)) => Err(query),
        Ok(_) | Err(_) => Ok(&[]),
    }
}
