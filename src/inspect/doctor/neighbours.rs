//! What else touches release records: other webhooks; and records that nothing guards.

use serde_json::Value;

use super::check::Check;
use super::selector::{Label, label_of, label_of_record, matches};
use super::snapshot::Cluster;
use crate::engine::severity::Severity::{Low, Medium};

const NEIGHBOURS: &str = "other-webhooks";
const UNGUARDED: &str = "unguarded";

/// The entry that guards records.
const GATE: &str = "create-delete.records.interlock.dev";

pub(super) fn checks(cluster: &Cluster) -> Vec<Check> {
    let mut checks = Vec::new();
    for (seen, mutating) in [(&cluster.validating, false), (&cluster.mutating, true)] {
        match seen.items() {
            Ok(all) => checks.extend(all.iter().flat_map(|it| of_configuration(it, mutating, &cluster.namespace))),
            Err(why) => checks.push(Check::skipped(NEIGHBOURS, why)),
        }
    }
    if checks.is_empty() {
        checks.push(Check::ok(NEIGHBOURS, "no other webhook touches release records"));
    }
    checks.push(unguarded(cluster));
    checks
}

fn of_configuration(configuration: &Value, mutating: bool, own: &str) -> Vec<Check> {
    let name = configuration["metadata"]["name"].as_str().unwrap_or_default();
    if name == "interlock" {
        return Vec::new();
    }
    let resource = if mutating { "mutatingwebhookconfiguration" } else { "validatingwebhookconfiguration" };
    let entries = configuration["webhooks"].as_array().into_iter().flatten();
    entries.filter_map(|entry| of_entry(entry, name, resource, mutating, own)).collect()
}

fn of_entry(entry: &Value, configuration: &str, resource: &str, mutating: bool, own: &str) -> Option<Check> {
    let name = entry["name"].as_str().unwrap_or_default();
    if name.ends_with(".interlock.dev") && !configuration.ends_with(".static.k8s.io") {
        let evidence = format!("{resource} {configuration} has an entry of ours, {name}: everything is asked twice");
        return Some(Check::found(NEIGHBOURS, Medium, evidence, format!("kubectl delete {resource} {configuration}")));
    }
    if !asks(entry, "secrets", &["CREATE", "UPDATE"]) || !matches(&entry["objectSelector"], label_of_record) {
        return fails_our_pods(entry, name, configuration, resource, own);
    }
    let conditions = entry["matchConditions"].as_array().map_or(0, Vec::len);
    let narrowed = if conditions > 0 { ", unless its matchConditions leave them out" } else { "" };
    if mutating {
        // Configurations are called in the order of their names.
        let order = if configuration > "interlock" { "after" } else { "before" };
        let evidence = format!("{name} ({configuration}) may rewrite release records, {order} our stamp{narrowed}");
        let fix = format!(
            "leave records out there: in {resource} {configuration}, entry {name}, add\nmatchConditions: [{{name: \
                no-release-records, expression: \"!has(object.type) || object.type != 'helm.sh/release.v1'\"}}]"
        );
        return Some(Check::found(NEIGHBOURS, Low, evidence, fix));
    }
    (entry["failurePolicy"] != "Ignore").then(|| {
        Check::note(
            NEIGHBOURS,
            format!("{name} ({configuration}) is asked about release records: its outage stops helm{narrowed}"),
        )
    })
}

/// One whose outage would keep our replicas from starting.
fn fails_our_pods(entry: &Value, name: &str, configuration: &str, resource: &str, own: &str) -> Option<Check> {
    let is_own = |key: &str| {
        if key == "kubernetes.io/metadata.name" { Label::Is(own) } else { Label::Absent }
    };
    let reaches_us = matches(&entry["namespaceSelector"], is_own);
    // Of our pods' labels only that is known which every installation has.
    let ours = |key: &str| {
        if key == "app.kubernetes.io/name" { Label::Is("interlock") } else { Label::Absent }
    };
    let stops = entry["failurePolicy"] != "Ignore" && asks(entry, "pods", &["CREATE"]);
    (stops && reaches_us && matches(&entry["objectSelector"], ours)).then(|| {
        let evidence = format!("while {name} ({configuration}) is away, no pod of ours starts");
        let fix = format!(
            "leave {own} out there: in {resource} {configuration}, entry {name}, add to its \
            namespaceSelector\n{{key: kubernetes.io/metadata.name, operator: NotIn, values: [{own}]}}"
        );
        Check::found(NEIGHBOURS, Low, evidence, fix)
    })
}

/// Whether an entry is asked about a resource of the core group.
fn asks(entry: &Value, resource: &str, operations: &[&str]) -> bool {
    let has = |list: &Value, wanted: &[&str]| {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).any(|it| wanted.contains(&it))
    };
    entry["rules"].as_array().into_iter().flatten().any(|rule| {
        has(&rule["apiGroups"], &["", "*"])
            && has(&rule["resources"], &[resource, "*", "*/*"])
            && (has(&rule["operations"], operations) || has(&rule["operations"], &["*"]))
            && rule["scope"] != "Cluster"
    })
}

/// Namespaces whose releases nobody guards.
fn unguarded(cluster: &Cluster) -> Check {
    let (records, namespaces) = match (&cluster.records, cluster.namespaces.items()) {
        (Ok(records), Ok(namespaces)) => (records, namespaces),
        (Err(why), _) => return Check::skipped(UNGUARDED, why),
        (_, Err(why)) => return Check::skipped(UNGUARDED, why),
    };
    let configuration = cluster.validating.named("interlock").ok().flatten();
    let entry = configuration.and_then(|it| it["webhooks"].as_array()?.iter().find(|entry| entry["name"] == GATE));
    let Some(selector) = entry.map(|entry| &entry["namespaceSelector"]) else {
        return Check::skipped(UNGUARDED, "without a registration nothing is guarded");
    };
    let mut left: Vec<_> = namespaces
        .iter()
        .filter(|it| !matches(selector, |key| label_of(it, key)))
        .filter_map(|it| it["metadata"]["name"].as_str())
        .filter_map(|name| records.by_namespace.get(name).map(|count| format!("{name} ({count} records)")))
        .collect();
    let at_least = if records.truncated { "at least " } else { "" };
    let all: usize = records.by_namespace.values().sum();
    if left.is_empty() {
        return Check::ok(
            UNGUARDED,
            format!("every namespace with releases is guarded ({at_least}{all} records in Secrets)"),
        );
    }
    // Interlock's own release is not to be guarded.
    let own = format!("{} (", cluster.namespace);
    left.sort();
    let others = left.iter().any(|it| !it.starts_with(&own));
    let what = format!("releases that nothing guards are in {}", left.join(", "));
    if others {
        Check::note(UNGUARDED, what + ": the registration leaves these namespaces out")
    } else {
        Check::ok(UNGUARDED, what + ", which is our own")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::inspect::doctor::fetch::Seen;
    use crate::inspect::doctor::records::Records;

    fn entry(name: &str, resource: &str, policy: &str) -> Value {
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]});
        json!({"name": name, "failurePolicy": policy, "rules": [rule]})
    }

    fn told(change: impl FnOnce(&mut Value), mutating: bool) -> Vec<(&'static str, String)> {
        let mut other = json!({"metadata": {"name": "other"}, "webhooks": [entry("a.example.dev", "secrets", "Fail")]});
        change(&mut other["webhooks"][0]);
        let checks = of_configuration(&other, mutating, "guard");
        checks.into_iter().map(|check| (check.state.as_str(), check.evidence)).collect()
    }

    #[test]
    fn others_that_touch_records_are_named() {
        let mutating = told(|_| {}, true);
        assert!(
            mutating[0].0 == "low" && mutating[0].1.contains("may rewrite release records, after our stamp"),
            "{mutating:?}"
        );
        assert_eq!(told(|_| {}, false)[0].0, "note");
        assert!(told(|it| it["failurePolicy"] = "Ignore".into(), false).is_empty());
        assert!(told(|it| it["objectSelector"] = json!({"matchLabels": {"inject": "yes"}}), true).is_empty());
        assert!(told(|it| it["rules"][0]["apiGroups"] = json!(["apps"]), true).is_empty());
        let pods = told(|it| *it = entry("b.example.dev", "pods", "Fail"), false);
        assert!(pods[0].0 == "low" && pods[0].1.contains("no pod of ours starts"), "{pods:?}");
        let spared = |it: &mut Value| {
            *it = entry("b.example.dev", "pods", "Fail");
            let name = json!({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["guard"]});
            it["namespaceSelector"] = json!({"matchExpressions": [name]});
        };
        assert!(told(spared, false).is_empty());
        assert_eq!(told(|it| it["name"] = GATE.into(), false)[0].0, "medium");
    }

    #[test]
    fn releases_where_nobody_guards_are_named() {
        let namespace =
            |name: &str| json!({"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}});
        let names = ["guard", "kube-system"];
        let left_out = json!({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": names});
        let selector = json!({"matchExpressions": [left_out]});
        let registered =
            json!({"metadata": {"name": "interlock"}, "webhooks": [{"name": GATE, "namespaceSelector": selector}]});
        let with = |counts: &[(&str, usize)]| {
            let by_namespace = counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
            let namespaces: Vec<_> = ["shop", "guard", "kube-system"].into_iter().map(namespace).collect();
            let check = unguarded(&Cluster {
                validating: Seen::Known(json!({"items": [registered]})),
                namespaces: Seen::Known(json!({"items": namespaces})),
                records: Ok(Records { by_namespace, truncated: false }),
                ..Cluster::unread()
            });
            (check.state.as_str(), check.evidence)
        };
        assert_eq!(with(&[("shop", 3)]).0, "ok");
        assert_eq!(with(&[("shop", 3), ("guard", 1)]).0, "ok");
        let left = with(&[("shop", 3), ("kube-system", 2)]);
        assert!(left.0 == "note" && left.1.contains("kube-system (2 records)"), "{left:?}");
    }
}
