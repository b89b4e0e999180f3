//! The policy of a namespace: the cluster policy, tightened. A looser setting is an error, unless the cluster policy delegates the
//! rule.

use super::file::{CLUSTER_ONLY_KEYS, Mapping, PolicyFile};
use super::problem::{Problems, Span};
use super::{freezes, settings};
use crate::policy::Policy;
use crate::rule::RuleId;
use crate::rules;

/// The keys that list or select namespaces.
const NAMESPACE_KEYS: [&str; 2] = ["namespaces", "namespaceSelector"];

/// The rules that `whenSuspended` affects.
const RULES_OVER_EDITS: [&str; 3] = ["manual-edit", "manual-delete", "manual-scale"];

/// Reports the keys of a cluster policy that list or select namespaces.
pub(super) fn refuse_namespaces(file: &PolicyFile, problems: &mut Problems<'_>) {
    refuse(file.given(), &NAMESPACE_KEYS, problems, |key| {
        format!(
            "the policy of the cluster is for every namespace; move `{key}` into the conditions that it is meant for"
        )
    });
}

/// Reports keys that only the cluster policy may set.
pub(super) fn refuse_cluster_only_keys(file: &PolicyFile, problems: &mut Problems<'_>) {
    let rules = file.rules().flat_map(|(_, rule)| rule.given());
    let overrides = file.overrides.value().map(Mapping::given).unwrap_or_default();
    refuse(file.given().into_iter().chain(rules).chain(overrides), &CLUSTER_ONLY_KEYS, problems, |key| {
        format!("only the cluster policy may set `{key}`; move it to cluster.yaml")
    });
    refuse(file.freezes.items().iter().flat_map(Mapping::given), &NAMESPACE_KEYS, problems, |key| {
        format!("the freeze of a namespace concerns this namespace alone; remove `{key}`")
    });
    refuse(file.protected.value().map(Mapping::given).unwrap_or_default(), &NAMESPACE_KEYS, problems, |key| {
        format!("only the cluster policy may set `{key}` of `protected`; a namespace protects its own releases")
    });
}

fn refuse(
    given: impl IntoIterator<Item = (&'static str, Span)>,
    keys: &[&str],
    problems: &mut Problems<'_>,
    message: fn(&str) -> String,
) {
    for (key, span) in given.into_iter().filter(|(key, _)| keys.contains(key)) {
        problems.at(span, message(key));
    }
}

/// The cluster policy with the settings of a namespace over it.
pub(super) fn policy(
    cluster: &Policy,
    delegated: &[RuleId],
    (namespace, file): (&str, &PolicyFile),
    problems: &mut Problems<'_>,
) -> Policy {
    let mut policy = cluster.clone();
    policy.freezes = if file.is_shared() {
        freezes::of_shared(file).collect()
    } else {
        freezes::of_file(file, Some(namespace)).collect()
    };
    settings::set(file, &mut policy, problems, |rule, key| why_only_tighter(rule, key, delegated));
    policy.protected.here = file.protected.value().and_then(|protected| protected.releases.globs().cloned());
    policy
}

/// Why a namespace may only tighten a setting; `None` if it may also loosen it.
fn why_only_tighter(rule: Option<RuleId>, key: &str, delegated: &[RuleId]) -> Option<String> {
    let is_delegated = |rule: RuleId| delegated.contains(&rule);
    let exception = match (rule, key) {
        (None, _) => "",
        (_, "staleAfter" | "maxPatience" | "graceAfterFailure") => ", because other rules use it too",
        (_, "whenSuspended") if RULES_OVER_EDITS.into_iter().filter_map(rules::named).all(is_delegated) => return None,
        (_, "whenSuspended") => ", unless cluster.yaml delegates manual-edit, manual-delete and manual-scale",
        (Some(rule), _) if is_delegated(rule) => return None,
        (Some(rule), _) => {
            return Some(format!("a namespace may only tighten it, unless cluster.yaml delegates {rule}"));
        }
    };
    Some(format!("a namespace may only tighten it{exception}"))
}
