//! How the entries of a webhook configuration differ from the shipped ones.

use std::collections::{BTreeMap, BTreeSet};

use interlock_engine::severity::Severity::{self, High, Low, Medium};
use serde_json::Value;

use crate::inspect::doctor::diagnosis::DiagnosisState;
use crate::inspect::doctor::selector::{combinations, each, matches, only, texts};

/// The matchCondition that excludes cluster-scoped objects when only selected namespaces are guarded.
pub(super) const IN_NAMESPACE_CONDITION: &str = "in-a-namespace";

/// The matchCondition that excludes the controllers which write statuses.
pub(in crate::inspect::doctor) const STATUS_WRITERS_CONDITION: &str = "not-by-controllers";

/// The label with which entries select namespaces.
pub(super) const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";

/// A difference between an entry and the shipped entry, and how much it matters.
pub(super) type EntryDifference = (DiagnosisState, String);

pub(super) fn finding(severity: Severity, says: impl Into<String>) -> EntryDifference {
    (DiagnosisState::Finding(severity), says.into())
}

pub(super) fn note(says: impl Into<String>) -> EntryDifference {
    (DiagnosisState::Note, says.into())
}

/// All differences from the shipped entry, and other errors in the entry. `waits` says that the entry is open until a review
/// arrives.
pub(super) fn differences(shipped: &Value, live: &Value, namespace: &str, waits: bool) -> Vec<EntryDifference> {
    let mut all: Vec<_> = failure_policy(shipped, live, waits).into_iter().collect();
    all.extend(rules(&shipped["rules"], &live["rules"]));
    all.extend(namespaces(&shipped["namespaceSelector"], &live["namespaceSelector"], namespace));
    let guards_selected = !names(&live["namespaceSelector"], "In").is_empty();
    all.extend(conditions(&shipped["matchConditions"], &live["matchConditions"], guards_selected));
    for field in [
        "objectSelector",
        "matchPolicy",
        "sideEffects",
        "admissionReviewVersions",
        "reinvocationPolicy",
        "timeoutSeconds",
    ] {
        let (was, is) = (&shipped[field], &live[field]);
        let says = format!("{field} is {is}, shipped is {was}");
        match field {
            _ if was == is => {}
            "timeoutSeconds" if is.as_u64().is_some_and(|seconds| seconds > 5) => {
                all.push(finding(Low, says + ": in an outage every request waits that long"))
            }
            "timeoutSeconds" => all.push(note(says)),
            _ => all.push(finding(Medium, says)),
        }
    }
    all.extend(client_config(&shipped["clientConfig"], &live["clientConfig"]));
    all
}

fn failure_policy(shipped: &Value, live: &Value, waits: bool) -> Option<EntryDifference> {
    match (shipped["failurePolicy"].as_str()?, live["failurePolicy"].as_str()?) {
        ("Fail", "Ignore") if waits => Some(note("fails open until a review has arrived, then the leader closes it")),
        ("Fail", "Ignore") => {
            Some(note("failurePolicy is Ignore: while Interlock is down, its requests are admitted without a review"))
        }
        ("Ignore", "Fail") => Some(finding(
            Medium,
            "failurePolicy is Fail, shipped is Ignore: while Interlock is down, its requests are refused",
        )),
        _ => None,
    }
}

/// Where the API server sends reviews. Another check covers the certificates.
fn client_config(shipped: &Value, live: &Value) -> Option<EntryDifference> {
    let path = shipped["service"]["path"].as_str().unwrap_or_default();
    if let Some(url) = live["url"].as_str() {
        return Some(if url.ends_with(path) {
            note("is reached through a URL, not through the Service")
        } else {
            finding(High, format!("is sent to {url}, but the path must be {path}"))
        });
    }
    let mut service = live["service"].clone();
    if service["port"].is_null() {
        service["port"] = 443.into();
    }
    if service == shipped["service"] {
        return None;
    }
    let port = std::mem::replace(&mut service["port"], shipped["service"]["port"].clone());
    if service == shipped["service"] {
        return Some(note(format!("is sent to port {port} of the Service")));
    }
    service["port"] = port;
    Some(finding(High, format!("is sent to {service}, shipped is {}", shipped["service"])))
}

/// One operation on one resource: group, version, resource, operation, and scope.
type RuleTarget<'v> = [&'v str; 5];

fn rule_targets(rules: &Value) -> BTreeSet<RuleTarget<'_>> {
    let targets = each(rules).flat_map(|rule| {
        let scope = rule["scope"].as_str().unwrap_or("*");
        let lists = ["apiGroups", "apiVersions", "resources", "operations"].map(|list| texts(&rule[list]).collect());
        combinations(lists)
            .into_iter()
            .map(move |[group, version, resource, operation]| [group, version, resource, operation, scope])
    });
    targets.collect()
}

fn rules(shipped: &Value, live: &Value) -> Vec<EntryDifference> {
    let (shipped, live) = (rule_targets(shipped), rule_targets(live));
    let missing: Vec<_> = shipped.difference(&live).collect();
    let more: Vec<_> = live.difference(&shipped).collect();
    let mut all = Vec::new();
    if !missing.is_empty() {
        all.push(finding(High, format!("rules do not include {}", described(&missing))));
    }
    if more.iter().any(|target| is_wide(target) || is_machinery(target)) {
        let says = format!("rules include {}, which must work while Interlock is down", described(&more));
        all.push(finding(Medium, says));
    } else if !more.is_empty() {
        all.push(note(format!("rules also include {}", described(&more))));
    }
    all
}

fn described(targets: &[&RuleTarget<'_>]) -> String {
    let described = targets.iter().map(|[group, _, resource, operation, _]| {
        let dot = if group.is_empty() { "" } else { "." };
        format!("{operation} {resource}{dot}{group}")
    });
    let mut described: Vec<_> = described.collect();
    described.dedup();
    listed(&described)
}

fn is_wide([group, version, resource, ..]: &RuleTarget<'_>) -> bool {
    *group == "*" || *version == "*" || resource.starts_with('*')
}

/// Whether the cluster itself depends on the resource.
fn is_machinery([_, _, resource, ..]: &RuleTarget<'_>) -> bool {
    let machinery = ["leases", "nodes", "events", "tokenreviews", "subjectaccessreviews"];
    machinery.contains(resource) || resource.ends_with("/status")
}

/// Whether a configuration guards only selected namespaces.
pub(super) fn guards_selected_namespaces(configuration: &Value) -> bool {
    entries(configuration).any(|entry| !names(&entry["namespaceSelector"], "In").is_empty())
}

/// Whether all rules of an entry are cluster-scoped.
pub(super) fn is_cluster_scoped(entry: &Value) -> bool {
    each(&entry["rules"]).all(|rule| rule["scope"] == "Cluster")
}

fn conditions(shipped: &Value, live: &Value, guards_selected_namespaces: bool) -> Vec<EntryDifference> {
    let (shipped, live) = (by_name(shipped), by_name(live));
    let mut all = Vec::new();
    for (name, expression) in &shipped {
        all.extend(match live.get(name) {
            None => {
                let says =
                    format!("matchCondition {name} is missing: Interlock receives requests that it does not need");
                Some(finding(Medium, says))
            }
            // Another check compares the accounts in it with the policy.
            Some(_) if *name == STATUS_WRITERS_CONDITION => None,
            Some(it) if it != expression => Some(finding(Medium, format!("matchCondition {name} was changed"))),
            Some(_) => None,
        });
    }
    for name in live.keys().filter(|name| !shipped.contains_key(*name)) {
        // A namespaceSelector does not apply to cluster-scoped objects.
        if guards_selected_namespaces && *name == IN_NAMESPACE_CONDITION {
            continue;
        }
        let says = format!("matchCondition {name} was added: the requests that it excludes are not guarded");
        all.push(finding(Low, says));
    }
    all
}

/// The expressions of match conditions by their names.
fn by_name(conditions: &Value) -> BTreeMap<&str, &str> {
    let pairs = each(conditions).map(|condition| (condition["name"].as_str(), condition["expression"].as_str()));
    pairs.filter_map(|(name, expression)| Some((name?, expression?.trim()))).collect()
}

pub(super) fn namespaces(shipped: &Value, live: &Value, own: &str) -> Option<EntryDifference> {
    if shipped == live {
        return None;
    }
    let is_own = only(NAMESPACE_LABEL, own);
    if !matches(shipped, &is_own) && matches(live, &is_own) {
        let says = format!("namespaceSelector does not exclude {own}: after an outage Interlock could not start again");
        return Some(finding(High, says));
    }
    let guarded: Vec<_> = names(live, "In").into_iter().collect();
    if !guarded.is_empty() {
        return Some(note(format!("guards only the namespaces {}", listed(&guarded))));
    }
    let (was, is) = (names(shipped, "NotIn"), names(live, "NotIn"));
    let missing: Vec<_> = was.difference(&is).copied().collect();
    if !missing.is_empty() {
        let says =
            format!("namespaceSelector does not exclude {}: an outage of Interlock affects it", listed(&missing));
        return Some(finding(Medium, says));
    }
    let more: Vec<_> = is.difference(&was).copied().collect();
    let what = if more.is_empty() { "namespaces by label".to_owned() } else { listed(&more) };
    Some(note(format!("also excludes {what}")))
}

/// The namespace names in a selector.
pub(super) fn names<'s>(selector: &'s Value, operator: &str) -> BTreeSet<&'s str> {
    let expressions = each(&selector["matchExpressions"]);
    let by_name = expressions.filter(|it| it["key"] == NAMESPACE_LABEL && it["operator"] == operator);
    by_name.flat_map(|it| texts(&it["values"])).collect()
}

pub(in crate::inspect::doctor) fn listed(names: &[impl AsRef<str>]) -> String {
    let names: Vec<_> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [first, second, rest @ ..] if rest.len() > 1 => format!("{first}, {second} and {} more", rest.len()),
        names => names.join(", "),
    }
}

pub(super) fn entries(configuration: &Value) -> impl Iterator<Item = &Value> {
    each(&configuration["webhooks"])
}
