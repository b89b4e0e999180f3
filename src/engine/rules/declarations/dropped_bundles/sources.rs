//! Commits of ConfigMaps, Secrets and Flux sources. Sveltos fails if a ConfigMap or Secret is missing and not optional, but skips a
//! missing Flux source and so removes what came from it.

use super::delivered;
use super::delivery::{Delivery, NOTHING_CHANGED};
use crate::engine::rules::check::{CheckedAll, Refusal};
use crate::engine::rules::wording::{MAX_ENUMERATED, enumerated};
use crate::engine::sveltos::PolicyRef;

pub(super) fn check(delivery: &Delivery<'_>) -> CheckedAll {
    let references = &delivery.summary.spec.cluster_profile_spec.policy_refs;
    let is_required = |it: &&PolicyRef<'_>| it.is_plain_source() && !it.optional && it.deployment_type != "Local";
    let required: Vec<_> = references.iter().filter(is_required).collect();
    if required.is_empty() {
        return Ok(Vec::new());
    }
    let bundles = delivery.commit.bundles()?;
    delivery.case.pay_for_pairs(required.len(), bundles.len() + required.len())?;
    let mut missing: Vec<(String, String)> = Vec::new();
    for PolicyRef { kind, name, .. } in required {
        let source = (kind.to_string(), name.to_string());
        // A profile may refer to a source several times, with different paths.
        if !bundles.iter().flatten().any(|bundle| bundle.is_from(kind, name)) && !missing.contains(&source) {
            missing.push(source);
        }
    }
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    delivery.expect_agent()?;
    let names = enumerated(missing.iter().map(|(kind, name)| format!("{kind} {name}")), MAX_ENUMERATED);
    if !delivered::any_source(delivery, &missing)? {
        return delivery.first_install(&names);
    }
    let sentence = format!(
        "{} leaves out {names}, which the profile does not mark as optional: the agent would remove from cluster {} what was \
         delivered from it.",
        delivery.commit.subject(),
        delivery.cluster()
    );
    let way_out = format!(
        "{NOTHING_CHANGED} Restore the source, remove the reference from the profile, or set optional: true on the reference."
    );
    Ok(vec![Refusal::new(sentence, way_out).at("/spec/configurationItem")])
}
