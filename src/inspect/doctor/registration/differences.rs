//! How the entries of a webhook configuration differ from the shipped ones.

use std::collections::{BTreeMap, BTreeSet};

use interlock_engine::severity::Severity::{self, High, Low, Medium};
use serde_json::Value;

use crate::inspect::doctor::diagnosis::DiagnosisState;
use crate::inspect::doctor::selector::{Label, matches, texts};

/// The matchCondition that excludes cluster-scoped objects when only selected namespaces are guarded.
pub(super) const IN_NAMESPACE_CONDITION: &str = "in-a-namespace";

/// The label with which entries select namespaces.
pub(super) const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";

/// A difference between an entry and the shipped entry, and how much it matters.
pub(super) type EntryDifference = (DiagnosisState, String);

/// All differences from the shipped entry, and other errors in the entry. `waits` says that the entry is open until a review
/// arrives.
pub(super) fn differences(shipped: &Value, live: &Value, namespace: &str, waits: bool) -> Vec<EntryDifference> {
    let mut all = Vec::new();
    let (was, is) = (&shipped["failurePolicy"], &live["failurePolicy"]);
    match (was.as_str(), is.as_str()) {
        (Some("Fail"), Some("Ignore")) if waits => {
            all.push((
                DiagnosisState::Note,
                "fails open until a review has arrived, then the leader closes it".to_owned(),
            ));
        }
        (Some("Fail"), Some("Ignore")) => {
            all.push((
                DiagnosisState::Note,
                "failurePolicy is Ignore: while Interlock is down, its requests are admitted without a \
                 review"
                    .to_owned(),
            ));
        }
        (Some("Ignore"), Some("Fail")) => {
            all.push(finding(
                Medium,
                "failurePolicy is Fail, shipped is Ignore: while Interlock is down, its \
                requests are refused"
                    .to_owned(),
            ));
        }
        _ => {}
    }
    all.extend(rules(&shipped["rules"], &live["rules"]));
    all.extend(namespaces(&shipped["namespaceSelector"], &live["namespaceSelector"], namespace));
    let guards_selected = !names(&live["namespaceSelector"], "In").is_empty();
    all.extend(conditions(&shipped["matchConditions"], &live["matchConditions"], guards_selected));
    for field in ["objectSelector", "matchPolicy", "sideEffects", "admissionReviewVersions", "reinvocationPolicy"] {
        if shipped[field] != live[field] {
            all.push(finding(Medium, format!("{field} is {}, shipped is {}", live[field], shipped[field])));
        }
    }
    if shipped["timeoutSeconds"] != live["timeoutSeconds"] {
        let says = format!("timeoutSeconds is {}, shipped is {}", live["timeoutSeconds"], shipped["timeoutSeconds"]);
        let long = live["timeoutSeconds"].as_u64().is_some_and(|seconds| seconds > 5);
        all.push(if long {
            finding(Low, says + ": in an outage every request waits that long")
        } else {
            (DiagnosisState::Note, says)
        });
    }
    all.extend(client_config(&shipped["clientConfig"], &live["clientConfig"]));
    all
}

pub(super) fn finding(severity: Severity, says: String) -> EntryDifference {
    (DiagnosisState::Finding(severity), says)
}

/// Where the API server sends reviews. Another check covers the certificates.
fn client_config(shipped: &Value, live: &Value) -> Option<EntryDifference> {
    let path = shipped["service"]["path"].as_str().unwrap_or_default();
    if let Some(url) = live["url"].as_str() {
        return Some(if url.ends_with(path) {
            (DiagnosisState::Note, "is reached through a URL, not through the Service".to_owned())
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
        return Some((DiagnosisState::Note, format!("is sent to port {port} of the Service")));
    }
    service["port"] = port;
    Some(finding(High, format!("is sent to {service}, shipped is {}", shipped["service"])))
}

/// One operation on one resource: group, version, resource, operation, and scope.
type RuleTarget = (String, String, String, String, String);

fn rule_targets(rules: &Value) -> BTreeSet<RuleTarget> {
    let mut rule_targets = BTreeSet::new();
    for rule in rules.as_array().into_iter().flatten() {
        let scope = rule["scope"].as_str().unwrap_or("*");
        for group in texts(&rule["apiGroups"]) {
            for version in texts(&rule["apiVersions"]) {
                for resource in texts(&rule["resources"]) {
                    for operation in texts(&rule["operations"]) {
                        rule_targets.insert((
                            group.to_owned(),
                            version.to_owned(),
                            resource.to_owned(),
                            operation.to_owned(),
                            scope.to_owned(),
                        ));
                    }
                }
            }
        }
    }
    rule_targets
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
        all.push(finding(
            Medium,
            format!("rules include {}, which must work while Interlock is down", described(&more)),
        ));
    } else if !more.is_empty() {
        all.push((DiagnosisState::Note, format!("rules also include {}", described(&more))));
    }
    all
}

fn described(targets: &[&RuleTarget]) -> String {
    let mut described: Vec<_> = targets
        .iter()
        .map(|(group, _, resource, operation, _)| {
            let dot = if group.is_empty() { "" } else { "." };
            format!("{operation} {resource}{dot}{group}")
        })
        .collect();
    described.dedup();
    listed(&described)
}

fn is_wide((group, version, resource, _, _): &RuleTarget) -> bool {
    group == "*" || version == "*" || resource.starts_with('*')
}

/// Whether the cluster itself depends on the resource.
fn is_machinery((_, _, resource, _, _): &RuleTarget) -> bool {
    let machinery = ["leases", "nodes", "events", "tokenreviews", "subjectaccessreviews"];
    machinery.contains(&resource.as_str()) || resource.ends_with("/status")
}

/// Whether a configuration guards only selected namespaces.
pub(super) fn guards_selected_namespaces(configuration: &Value) -> bool {
    entries(configuration).any(|entry| !names(&entry["namespaceSelector"], "In").is_empty())
}

/// Whether all rules of an entry are cluster-scoped.
pub(super) fn is_cluster_scoped(entry: &Value) -> bool {
    entry["rules"].as_array().into_iter().flatten().all(|rule| rule["scope"] == "Cluster")
}

fn conditions(shipped: &Value, live: &Value, guards_selected_namespaces: bool) -> Vec<EntryDifference> {
    let (shipped, live) = (by_name(shipped), by_name(live));
    let mut all = Vec::new();
    for (name, expression) in &shipped {
        match live.get(name) {
            None => all.push(finding(
                Medium,
                format!(
                    "matchCondition {name} is missing: Interlock receives requests \
                that it does not need"
                ),
            )),
            Some(it) if it != expression => all.push(finding(Medium, format!("matchCondition {name} was changed"))),
            Some(_) => {}
        }
    }
    for name in live.keys().filter(|name| !shipped.contains_key(*name)) {
        // A namespaceSelector does not apply to cluster-scoped objects.
        if guards_selected_namespaces && name == IN_NAMESPACE_CONDITION {
            continue;
        }
        all.push(finding(
            Low,
            format!(
                "matchCondition {name} was added: the requests that it excludes are not \
            guarded"
            ),
        ));
    }
    all
}

/// The expressions of match conditions by their names.
fn by_name(conditions: &Value) -> BTreeMap<String, String> {
    let pairs = conditions.as_array().into_iter().flatten().filter_map(|condition| {
        let (name, expression) = (condition["name"].as_str()?, condition["expression"].as_str()?);
        Some((name.to_owned(), expression.trim().to_owned()))
    });
    pairs.collect()
}

pub(super) fn namespaces(shipped: &Value, live: &Value, own: &str) -> Option<EntryDifference> {
    if shipped == live {
        return None;
    }
    let is_own = |key: &str| if key == NAMESPACE_LABEL { Label::Is(own) } else { Label::Absent };
    if !matches(shipped, is_own) && matches(live, is_own) {
        let says = format!("namespaceSelector does not exclude {own}: after an outage Interlock could not start again");
        return Some(finding(High, says));
    }
    let guarded_namespaces = names(live, "In");
    if !guarded_namespaces.is_empty() {
        let names: Vec<_> = guarded_namespaces.into_iter().collect();
        return Some((DiagnosisState::Note, format!("guards only the namespaces {}", listed(&names))));
    }
    let (was, is) = (names(shipped, "NotIn"), names(live, "NotIn"));
    let missing: Vec<_> = was.difference(&is).cloned().collect();
    if !missing.is_empty() {
        let says =
            format!("namespaceSelector does not exclude {}: an outage of Interlock affects it", listed(&missing));
        return Some(finding(Medium, says));
    }
    let more: Vec<_> = is.difference(&was).cloned().collect();
    let what = if more.is_empty() { "namespaces by label".to_owned() } else { listed(&more) };
    Some((DiagnosisState::Note, format!("also excludes {what}")))
}

/// The namespace names in a selector.
pub(super) fn names(selector: &Value, operator: &str) -> BTreeSet<String> {
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    let by_name = expressions.filter(|it| it["key"] == NAMESPACE_LABEL && it["operator"] == operator);
    let values = by_name.flat_map(|it| it["values"].as_array().into_iter().flatten());
    values.filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(in crate::inspect::doctor) fn listed(names: &[String]) -> String {
    match names {
        [] | [_] | [_, _] | [_, _, _] => names.join(", "),
        [first, second, rest @ ..] => format!("{first}, {second} and {} more", rest.len()),
    }
}

pub(super) fn entries(configuration: &Value) -> impl Iterator<Item = &Value> {
    configuration["webhooks"].as_array().into_iter().flatten()
}
