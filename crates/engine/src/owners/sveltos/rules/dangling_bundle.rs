//! The rule `dangling-bundle`.
//!
//! Sveltos writes the bundles before the group, and deletes them before the group.

use super::group_commit::{GroupCommit, SummaryCommit};
use crate::owners::sveltos;
use crate::owners::sveltos::{BundleRef, CONFIGURATION_GROUP};
use crate::review::Operation;
use crate::rule::{FailsClosed, Mode, Requests, Specification, UNPROCESSABLE};
use crate::rules::check::{Check, CheckedAll, Refusal, Rule, WaysOut};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::wording::{MAX_ENUMERATED, enumerated};

/// The rule `dangling-bundle`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "dangling-bundle",
        owners: &[sveltos::NAME],
        mode: Mode::Enforce,
        status_code: UNPROCESSABLE,
        fails_closed: FailsClosed::Always,
        requests: Requests { operations: &[Operation::Create, Operation::Update], kinds: &[CONFIGURATION_GROUP] },
        summary: "The bundles that a commit of Sveltos names exist.",
        why: "The agent cannot fetch a bundle that does not exist: the rollout stalls, or completes without it.",
        allowed: "A ConfigurationGroup whose bundles exist.",
        refused: "A Ready group of a profile with a reference to a bundle that does not exist, or to one in another namespace, which \
                  the agent cannot read.",
        way_out: "Write the bundles first. Sveltos does, and retries with new ones within a minute.",
        settings: &[],
    },
    checks: &[Check::Declaration(check)],
};

pub(crate) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    let Some(commit) = GroupCommit::delivering(case)? else {
        return Ok(Vec::new());
    };
    // Without a ClusterSummary, a rollout cannot be distinguished from a teardown. `dropped-bundles` reports that.
    let Some(live) = commit.summary()?.filter(|commit| !commit.is_being_deleted()) else {
        return Ok(Vec::new());
    };
    let (named, elsewhere) = commit.named()?;
    let missing = named.iter().zip(commit.bundles()?).filter(|(_, bundle)| bundle.is_none());
    let missing: Vec<_> = missing.map(|(name, _)| name.name.clone()).collect();
    let elsewhere = elsewhere.iter().map(|BundleRef { namespace, name }| format!("{namespace}/{name}")).collect();
    let mut refusals = Vec::new();
    for (what, names) in [
        ("bundles that do not exist", missing),
        ("bundles of other namespaces, which the agent cannot read", elsewhere),
    ] {
        if !names.is_empty() {
            refusals.push(refusal(&commit, &live, what, names));
        }
    }
    Ok(refusals)
}

fn refusal(commit: &GroupCommit<'_>, live: &SummaryCommit<'_>, what: &str, names: Vec<String>) -> Refusal {
    let names = enumerated(names.into_iter(), MAX_ENUMERATED);
    let sentence = format!("{} names {what}: {names}.", live.subject());
    let retries = commit.features().first().map(|feature| live.retries(*feature)).unwrap_or_default();
    let ways_out = WaysOut::from("write the bundles first")
        .note(format!("Sveltos does, and writes new ones for each try. {retries}"));
    live.refusal(sentence, ways_out).at("/spec/configurationItem")
}
