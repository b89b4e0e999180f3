//! `dangling-bundle`: a commit names only bundles that exist. Sveltos writes them first.
//!
//! Allowed: a ConfigurationGroup over bundles that are there; the deletion of bundles, which comes before that of their group.
//! Denied: a Ready group with a reference to a bundle that was deleted meanwhile, or never written.

use super::case::DeclarationCase;
use super::commit::Commit;
use crate::engine::rules::wording::{ENUMERATED, enumerated};
use crate::engine::rules::{Findings, Refusal};

pub(crate) fn check(case: &DeclarationCase<'_>) -> Findings {
    let Some(commit) = Commit::delivering(case)? else {
        return Ok(Vec::new());
    };
    // Without a ClusterSummary nothing tells a rollout from a teardown; `dropped-bundles` says so.
    if commit.summary()?.is_none_or(|summary| summary.metadata.deletion_timestamp.is_some()) {
        return Ok(Vec::new());
    }
    let named = commit.named()?;
    let found = commit.bundles()?;
    let missing: Vec<_> =
        named.iter().zip(found).filter(|(_, bundle)| bundle.is_none()).map(|(name, _)| name.name.clone()).collect();
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    let names = enumerated(missing.into_iter(), ENUMERATED);
    let sentence = format!("{} names bundles that do not exist: {names}.", commit.subject());
    let way_out = "Write the bundles first; Sveltos does, and tries again with new ones within a minute.";
    Ok(vec![Refusal::new(sentence, way_out).at("/spec/configurationItem")])
}
