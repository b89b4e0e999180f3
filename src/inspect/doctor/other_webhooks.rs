//! Other webhooks that receive release records, and records that Interlock does not guard.

use interlock_engine::severity::Severity::{Low, Medium};
use serde_json::Value;

use super::diagnosis::{Checked, Diagnosis};
use super::selector::{contains_any, each, label_of_record, matches, only, selects};
use super::snapshot::{NOT_REGISTERED, Snapshot};

/// Other webhooks that affect records or Interlock's pods.
pub(super) fn diagnose(snapshot: &Snapshot) -> Vec<Diagnosis> {
    let mut checks = Vec::new();
    for (fetched, mutating) in [(&snapshot.validating, false), (&snapshot.mutating, true)] {
        match fetched.items() {
            Ok(all) => {
                checks.extend(all.iter().flat_map(|it| diagnose_configuration(it, mutating, &snapshot.namespace)))
            }
            Err(why) => checks.push(Diagnosis::skipped(why)),
        }
    }
    if checks.is_empty() {
        checks.push(Diagnosis::ok("no other webhook receives release records"));
    }
    checks
}

/// An entry of another webhook configuration.
#[derive(Clone, Copy)]
struct OtherEntry<'e> {
    entry: &'e Value,
    name: &'e str,
    configuration: &'e str,
    /// `mutatingwebhookconfiguration` or `validatingwebhookconfiguration`.
    resource: &'e str,
}

fn diagnose_configuration(configuration: &Value, mutating: bool, own: &str) -> Vec<Diagnosis> {
    let name = configuration["metadata"]["name"].as_str().unwrap_or_default();
    if name == "interlock" {
        return Vec::new();
    }
    let resource = if mutating { "mutatingwebhookconfiguration" } else { "validatingwebhookconfiguration" };
    let entries = each(&configuration["webhooks"]).map(|entry| {
        let entry_name = entry["name"].as_str().unwrap_or_default();
        OtherEntry { entry, name: entry_name, configuration: name, resource }
    });
    entries.filter_map(|entry| diagnose_entry(entry, mutating, own)).collect()
}

fn diagnose_entry(other: OtherEntry<'_>, mutating: bool, own: &str) -> Option<Diagnosis> {
    let OtherEntry { entry, name, configuration, resource } = other;
    if name.ends_with(".interlock.dev") && !configuration.ends_with(".static.k8s.io") {
        let evidence = format!(
            "{resource} {configuration} also contains Interlock's entry {name}: every request is reviewed twice"
        );
        return Some(Diagnosis::found(Medium, evidence, format!("kubectl delete {resource} {configuration}")));
    }
    if !receives(entry, "secrets", &["CREATE", "UPDATE"]) || !matches(&entry["objectSelector"], label_of_record) {
        return blocks_our_pods(other, own);
    }
    let is_conditional = each(&entry["matchConditions"]).next().is_some();
    let narrowed = if is_conditional { ", unless its matchConditions exclude them" } else { "" };
    if mutating {
        // The API server calls configurations in the order of their names.
        let order = if configuration > "interlock" { "after" } else { "before" };
        let evidence =
            format!("{name} ({configuration}) may rewrite release records, {order} Interlock stamps them{narrowed}");
        let fix = format!(
            "exclude release records: in {resource} {configuration}, entry {name}, add\nmatchConditions: [{{name: \
             no-release-records, expression: \"!has(object.type) || object.type != 'helm.sh/release.v1'\"}}]"
        );
        return Some(Diagnosis::found(Low, evidence, fix));
    }
    (entry["failurePolicy"] != "Ignore").then(|| {
        Diagnosis::note(format!(
            "{name} ({configuration}) reviews release records: while it is down, helm fails{narrowed}"
        ))
    })
}

/// Reports an entry whose outage would prevent Interlock's pods from starting.
fn blocks_our_pods(other: OtherEntry<'_>, own: &str) -> Option<Diagnosis> {
    let OtherEntry { entry, name, configuration, resource } = other;
    let selects_namespace = matches(&entry["namespaceSelector"], only("kubernetes.io/metadata.name", own));
    // Every installation has this label on its pods; other labels are not known.
    let selects_pods = matches(&entry["objectSelector"], only("app.kubernetes.io/name", "interlock"));
    let blocks = entry["failurePolicy"] != "Ignore" && receives(entry, "pods", &["CREATE"]);
    (blocks && selects_namespace && selects_pods).then(|| {
        let evidence = format!("while {name} ({configuration}) is down, no pod of Interlock can start");
        let fix = format!(
            "exclude namespace {own}: in {resource} {configuration}, entry {name}, add to its \
             namespaceSelector\n{{key: kubernetes.io/metadata.name, operator: NotIn, values: [{own}]}}"
        );
        Diagnosis::found(Low, evidence, fix)
    })
}

/// Whether an entry receives a resource of the core group.
fn receives(entry: &Value, resource: &str, operations: &[&str]) -> bool {
    each(&entry["rules"]).any(|rule| {
        contains_any(&rule["apiGroups"], &["", "*"])
            && contains_any(&rule["resources"], &[resource, "*", "*/*"])
            && (contains_any(&rule["operations"], operations) || contains_any(&rule["operations"], &["*"]))
            && rule["scope"] != "Cluster"
    })
}

/// Namespaces with releases that Interlock does not guard.
pub(super) fn unguarded(snapshot: &Snapshot) -> Checked {
    let (records, namespaces) = (snapshot.records.as_ref().map_err(Clone::clone)?, snapshot.namespaces.items()?);
    let selector = &snapshot.record_entry().ok_or(NOT_REGISTERED)?["namespaceSelector"];
    let unselected = namespaces.iter().filter(|namespace| !selects(selector, namespace));
    let names = unselected.filter_map(|it| it["metadata"]["name"].as_str());
    let mut left: Vec<_> =
        names.filter_map(|name| Some(format!("{name} ({} records)", records.by_namespace.get(name)?))).collect();
    let at_least = if records.truncated { "at least " } else { "" };
    let all: usize = records.by_namespace.values().sum();
    if left.is_empty() {
        let evidence = format!("all namespaces with releases are guarded ({at_least}{all} records in Secrets)");
        return Ok(Diagnosis::ok(evidence));
    }
    // Interlock's own release must not be guarded, because nobody could repair an outage then.
    let own = format!("{} (", snapshot.namespace);
    left.sort();
    let others = left.iter().any(|it| !it.starts_with(&own));
    let what = format!("unguarded releases exist in {}", left.join(", "));
    Ok(if others {
        Diagnosis::note(what + ": the registration excludes these namespaces")
    } else {
        Diagnosis::ok(what + ", which is Interlock's own namespace")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::inspect::doctor::fetch::Fetched;
    use crate::inspect::doctor::records::RecordCounts;
    use crate::inspect::doctor::registration::RECORD_ENTRY;

    fn entry(name: &str, resource: &str, policy: &str) -> Value {
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]});
        json!({"name": name, "failurePolicy": policy, "rules": [rule]})
    }

    fn described(change: impl FnOnce(&mut Value), mutating: bool) -> Vec<(&'static str, String)> {
        let mut other = json!({"metadata": {"name": "other"}, "webhooks": [entry("a.example.dev", "secrets", "Fail")]});
        change(&mut other["webhooks"][0]);
        let checks = diagnose_configuration(&other, mutating, "guard");
        checks.into_iter().map(|check| (check.state.as_str(), check.evidence)).collect()
    }

    #[test]
    fn other_webhooks_that_receive_records_are_named() {
        let mutating = described(|_| {}, true);
        assert!(
            mutating[0].0 == "low"
                && mutating[0].1.contains(
                    "may rewrite release records, after Interlock stamps \
                them"
                ),
            "{mutating:?}"
        );
        assert_eq!(described(|_| {}, false)[0].0, "note");
        assert!(described(|it| it["failurePolicy"] = "Ignore".into(), false).is_empty());
        assert!(described(|it| it["objectSelector"] = json!({"matchLabels": {"inject": "yes"}}), true).is_empty());
        assert!(described(|it| it["rules"][0]["apiGroups"] = json!(["apps"]), true).is_empty());
        let pods = described(|it| *it = entry("b.example.dev", "pods", "Fail"), false);
        assert!(pods[0].0 == "low" && pods[0].1.contains("no pod of Interlock can start"), "{pods:?}");
        let spared = |it: &mut Value| {
            *it = entry("b.example.dev", "pods", "Fail");
            let name = json!({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["guard"]});
            it["namespaceSelector"] = json!({"matchExpressions": [name]});
        };
        assert!(described(spared, false).is_empty());
        assert_eq!(described(|it| it["name"] = RECORD_ENTRY.into(), false)[0].0, "medium");
    }

    #[test]
    fn unguarded_releases_are_named() {
        let namespace =
            |name: &str| json!({"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}});
        let names = ["guard", "kube-system"];
        let left_out = json!({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": names});
        let selector = json!({"matchExpressions": [left_out]});
        let registered = json!({"metadata": {"name": "interlock"}, "webhooks": [{"name": RECORD_ENTRY, "namespaceSelector": selector}]});
        let with = |counts: &[(&str, usize)]| {
            let by_namespace = counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
            let namespaces: Vec<_> = ["shop", "guard", "kube-system"].into_iter().map(namespace).collect();
            let check = unguarded(&Snapshot {
                validating: Fetched::Known(json!({"items": [registered]})),
                namespaces: Fetched::Known(json!({"items": namespaces})),
                records: Ok(RecordCounts { by_namespace, truncated: false }),
                ..Snapshot::unread()
            })
            .unwrap();
            (check.state.as_str(), check.evidence)
        };
        assert_eq!(with(&[("shop", 3)]).0, "ok");
        assert_eq!(with(&[("shop", 3), ("guard", 1)]).0, "ok");
        let left = with(&[("shop", 3), ("kube-system", 2)]);
        assert!(left.0 == "note" && left.1.contains("kube-system (2 records)"), "{left:?}");
    }
}
