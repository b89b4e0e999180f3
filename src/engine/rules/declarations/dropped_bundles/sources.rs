//! Commits of ConfigMaps, Secrets and Flux sources. Sveltos fails where one of the first two is missing and not optional,
//! but skips a source that is gone, and so removes what came from it.

use super::{AGAIN, Rollout, delivered};
use crate::engine::rules::check::{CheckedAll, Refusal};
use crate::engine::rules::wording::{ENUMERATED, enumerated};
use crate::engine::sveltos::PolicyRef;

pub(super) fn check(rollout: &Rollout<'_>) -> CheckedAll {
    let references = &rollout.summary.spec.cluster_profile_spec.policy_refs;
    let is_required = |it: &&PolicyRef<'_>| it.is_plain_source() && !it.optional && it.deployment_type != "Local";
    let required: Vec<_> = references.iter().filter(is_required).collect();
    if required.is_empty() {
        return Ok(Vec::new());
    }
    let bundles = rollout.commit.bundles()?;
    let mut missing: Vec<(String, String)> = Vec::new();
    for PolicyRef { kind, name, .. } in required {
        let source = (kind.to_string(), name.to_string());
        // One source can be referred to several times, with different paths.
        if !bundles.iter().flatten().any(|bundle| bundle.is_from(kind, name)) && !missing.contains(&source) {
            missing.push(source);
        }
    }
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    rollout.expect_agent()?;
    let names = enumerated(missing.iter().map(|(kind, name)| format!("{kind} {name}")), ENUMERATED);
    if !delivered::any_source(rollout, &missing)? {
        return rollout.first_install(&names);
    }
    let sentence = format!(
        "{} leaves out {names}, which the profile does not mark as optional: the agent would remove from cluster {} what was \
         delivered from it.",
        rollout.commit.subject(),
        rollout.cluster()
    );
    let way_out = format!(
        "{AGAIN} Restore the source, remove the reference from the profile, or set optional: true on the reference."
    );
    Ok(vec![Refusal::new(sentence, way_out).at("/spec/configurationItem")])
}
