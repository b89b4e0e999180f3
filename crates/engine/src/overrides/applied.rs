//! Applies the overrides that open the rules of a refusal.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::evidence::{Evidence, Freshness, Query, question};
use crate::facts::Facts;
use crate::outcome::WeighedViolation;
use crate::policy::{OverrideSettings, Policy};
use crate::release::ReleaseRef;
use crate::release_override::Override;
use crate::rules::{Undecided, ask};
use crate::violation::AppliedOverride;

/// Searches for overrides that open every violation that would refuse the request. If one violation stays closed, no
/// override is applied, because the request is refused anyway. Nothing is asked if nothing refuses the request. The
/// first query goes to a cache, whose override may open a rule. Only the API server can say that no override exists.
///
/// # Errors
/// The query that needs an answer.
pub(crate) fn apply_overrides(
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
        let mut applied = Vec::new();
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
            let open = found.iter().find(|it| it.opens(violation.rule, facts.actor.name, &bounds, now));
            applied.extend(open.and_then(|it| applied_override(it, &bounds)));
        }
        if applied.len() == refusing.len() {
            for (judged, applied) in refusing.iter_mut().zip(applied) {
                judged.violation.overridden = Some(applied);
                judged.refuses = false;
            }
            break;
        }
    }
    Ok(judged)
}

fn applied_override(it: &Override, bounds: &OverrideSettings) -> Option<AppliedOverride> {
    let until = it.closes(bounds)?;
    let spec = &it.spec;
    Some(AppliedOverride { name: it.reference(), reason: spec.reason.clone(), ticket: spec.ticket.clone(), until })
}

/// The overrides of a release. Without an answer there are none, so that the refusal stays.
fn overrides<'e>(evidence: &'e Evidence, release: &ReleaseRef, freshness: Freshness) -> Result<&'e [Override], Query> {
    let ReleaseRef { namespace, name } = release.clone();
    match ask(evidence, question::Overrides { namespace, release: name, freshness }) {
        Ok(Some(found)) => Ok(found),
        Err(Undecided::Ask(query)) => Err(query),
        Ok(None) | Err(_) => Ok(&[]),
    }
}
