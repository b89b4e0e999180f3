//! Commits of ConfigMaps, Secrets and Flux sources, as they are or built by Kustomize. Sveltos fails if a required ConfigMap or
//! Secret is missing, or anything that Kustomize needs. But it skips another missing Flux source, and so removes what came from it.

use std::collections::HashSet;

use super::delivered;
use super::delivery::Delivery;
use crate::owners::sveltos::{Bundle, Origin, PolicyRef, Reference};
use crate::rules::check::{CheckedAll, WaysOut};
use crate::rules::undecided::Undecided;
use crate::rules::wording::{MAX_ENUMERATED, enumerated};

pub(super) fn check(delivery: &Delivery<'_, '_>, references: &[PolicyRef<'_>]) -> CheckedAll {
    let spec = &delivery.summary().spec;
    let mut seen = HashSet::new();
    let required = references.iter().filter_map(|it| {
        // A profile may refer to one object several times, with different paths.
        it.required(&spec.cluster_namespace, &spec.cluster_name).filter(|reference| seen.insert(reference.clone()))
    });
    let required: Vec<_> = required.collect();
    if required.is_empty() {
        return Ok(Vec::new());
    }
    let missing = missing(delivery, &required)?;
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    delivery.expect_agent()?;
    let listed = |references: &[&Reference]| enumerated(references.iter().map(ToString::to_string), MAX_ENUMERATED);
    let lost = delivered::lost_references(delivery, &missing)?;
    if lost.is_empty() {
        return delivery.first_install(&listed(&missing));
    }
    let sentence = format!(
        "{} leaves out {}, which the profile does not mark as optional: {} from it.",
        delivery.of_summary.subject(),
        listed(&lost),
        delivery.consequence()
    );
    let ways_out = WaysOut::from("restore the source")
        .or("remove the reference from the profile")
        .or("set optional: true on the reference");
    Ok(vec![delivery.refusal(sentence, ways_out)])
}

/// The references without a bundle. References without templates come first, and then templates, most specific first. A template
/// needs a bundle that no other reference uses. A bundle of unknown origin belongs to none: anybody could write one.
fn missing<'r>(delivery: &Delivery<'_, '_>, required: &'r [Reference]) -> Result<Vec<&'r Reference>, Undecided> {
    let bundles: Vec<&Bundle> = delivery.commit.bundles()?.iter().flatten().collect();
    delivery.case.pay_for_pairs(required.len(), bundles.len() + required.len())?;
    let mut ordered: Vec<_> = required.iter().collect();
    ordered.sort_by_key(|reference| (reference.is_template(), std::cmp::Reverse(reference.fixed_length())));
    let mut taken = vec![false; bundles.len()];
    let mut missing: Vec<&Reference> = Vec::new();
    for reference in ordered {
        let is_free = |index: &usize| !taken[*index] || !reference.is_template();
        let mut from = (0..bundles.len()).filter(|index| reference.origin_of(bundles[*index]) == Origin::Same);
        match from.find(is_free) {
            Some(index) => taken[index] = true,
            None => missing.push(reference),
        }
    }
    Ok(missing)
}
