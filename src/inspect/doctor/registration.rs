//! The registration: compares the entries of both webhook configurations with the shipped entries.

mod differences;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::diagnosis::{Diagnosis, DiagnosisState};
use super::fetch::Fetched;
use super::selector::each;
use super::snapshot::Snapshot;
use crate::inspect::arrival::{CONFIGURATION, FAIL, Half, OPEN_UNTIL_CALLED, Registration};
pub(super) use differences::{STATUS_WRITERS_CONDITION, listed};
use interlock_engine::object::{PROTECTED, protects};
use interlock_engine::policy::DEFAULT_NAMESPACE;
use interlock_engine::policy_files::LoadedPolicies;
use interlock_engine::severity::Severity::{High, Medium};

use differences::{
    EntryDifference, IN_NAMESPACE_CONDITION, differences, entries, finding, guards_selected_namespaces,
    is_cluster_scoped, names, namespaces, note,
};

/// The entry that receives the creation and the deletion of release records.
pub(super) const RECORD_ENTRY: &str = "create-delete.records.interlock.dev";

/// The entry that receives the writes of statuses that prove something.
pub(super) const STATUS_ENTRY: &str = "statuses.interlock.dev";

/// Entries of the validating configuration that an operator may add.
const OPTIONAL: &str = include_str!("../../../manifests/overlays/protected-releases/entries.yaml");

/// The shipped manifest of a configuration.
fn manifest(half: Half) -> &'static str {
    match half {
        Half::Validating => include_str!("../../../manifests/base/validating-webhooks.yaml"),
        Half::Mutating => include_str!("../../../manifests/base/mutating-webhooks.yaml"),
    }
}

/// `is_called` says whether a dry run reached Interlock.
pub(super) fn diagnose(snapshot: &Snapshot, is_called: bool) -> Vec<Diagnosis> {
    let halves = Half::ALL.into_iter().zip([&snapshot.validating, &snapshot.mutating]);
    let found = halves.flat_map(|(half, live)| diagnose_configuration(half, live, &snapshot.namespace, is_called));
    found.chain(protection(snapshot)).collect()
}

/// Reports protected releases whose deletions are not sent to Interlock.
fn protection(snapshot: &Snapshot) -> Option<Diagnosis> {
    let live = snapshot.validating.named(CONFIGURATION).ok()??;
    let optional = shipped(OPTIONAL, &snapshot.namespace)?;
    let names = entries(&optional).filter_map(|entry| entry["name"].as_str());
    let missing: Vec<_> = names.filter(|name| entry_named(live, name).is_none()).collect();
    let protecting = protecting(snapshot);
    if protecting.is_empty() || missing.is_empty() {
        return None;
    }
    let evidence = format!(
        "{} {} releases, but {} {} missing: their custom resources and namespaces can be deleted, and while Interlock is down \
         all their objects",
        listed(&protecting),
        if protecting.len() == 1 { "protects" } else { "protect" },
        listed(&missing),
        if missing.len() == 1 { "is" } else { "are" }
    );
    let fix = "set protectedReleases: true in the values of the chart, or use manifests/overlays/protected-releases";
    Some(Diagnosis::found(Medium, evidence, fix))
}

/// What protects releases: the policy, and annotations. Lists that cannot be read have none.
fn protecting(snapshot: &Snapshot) -> Vec<String> {
    let files = snapshot.policies.as_ref().ok().and_then(Option::as_ref);
    let policies = files.and_then(|files| LoadedPolicies::of(files).policies);
    let by_policy = policies.is_some_and(|policies| !policies.of("").protected.names_nothing());
    let lists = snapshot.declarations.iter().map(|(kind, list)| (*kind, list));
    let annotated = [("Namespace", &snapshot.namespaces)].into_iter().chain(lists).flat_map(|(kind, list)| {
        let protected = list.items().unwrap_or_default().iter().filter(|item| is_protected(&item["metadata"]));
        protected.map(move |item| {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            match item["metadata"]["namespace"].as_str() {
                Some(namespace) => format!("the annotation of {kind} {namespace}/{name}"),
                None => format!("the annotation of {kind} {name}"),
            }
        })
    });
    by_policy.then(|| "the policy".to_owned()).into_iter().chain(annotated).collect()
}

fn is_protected(metadata: &Value) -> bool {
    protects(metadata["annotations"][PROTECTED].as_str())
}

fn diagnose_configuration(half: Half, live: &Fetched, namespace: &str, is_called: bool) -> Vec<Diagnosis> {
    let kind = half.kind();
    let live = match live.named(CONFIGURATION) {
        Ok(Some(live)) => live,
        // In the hard mode, a file of the API server registers Interlock, and no object does.
        Ok(None) if is_called => {
            return vec![Diagnosis::note(format!(
                "there is no {kind} interlock, and the API server calls Interlock all the same, as in the hard mode"
            ))];
        }
        Ok(None) => {
            let effect = match half {
                Half::Validating => "no request is judged",
                Half::Mutating => "no record is stamped",
            };
            let evidence = format!("there is no {kind} interlock: {effect}");
            return vec![Diagnosis::found(High, evidence, fix_command(namespace))];
        }
        Err(why) => return vec![Diagnosis::skipped(format!("{kind}: {why}"))],
    };
    let Some(shipped) = shipped_like(half, live, namespace) else {
        return vec![Diagnosis::skipped(format!("the {kind} in this binary cannot be parsed"))];
    };
    let mut found = Differences::default();
    for wanted in entries(&shipped) {
        found.compare(wanted, live, half, namespace);
    }
    for name in entries(live).filter_map(|entry| entry["name"].as_str()) {
        if entry_named(&shipped, name).is_none() {
            found.add(name, note("is not part of this version"));
        }
    }
    if found.0.is_empty() {
        let (count, resource) = (entries(&shipped).count(), half.resource());
        return vec![Diagnosis::ok(format!("all {count} entries of {resource}/interlock match the shipped ones"))];
    }
    found.diagnoses(namespace)
}

/// The differences by rank and text, each with its entries. A difference that several entries share is reported once.
#[derive(Default)]
struct Differences(BTreeMap<(u8, String), (DiagnosisState, Vec<String>)>);

impl Differences {
    fn add(&mut self, entry: &str, (state, what): EntryDifference) {
        let rank = match state {
            DiagnosisState::Finding(severity) => 4 - severity as u8,
            _ => 9,
        };
        self.0.entry((rank, what)).or_insert((state, Vec::new())).1.push(entry.to_owned());
    }

    /// Compares a shipped entry with the live configuration.
    fn compare(&mut self, wanted: &Value, live: &Value, half: Half, namespace: &str) {
        let name = wanted["name"].as_str().unwrap_or_default();
        let waits = Registration::new(half, live.clone()).waiting().contains(&name);
        match entry_named(live, name) {
            None if guards_selected_namespaces(live) && is_cluster_scoped(wanted) => {
                let what = "is missing, as expected where only selected namespaces are guarded: its objects are \
                            cluster-scoped";
                self.add(name, note(what));
            }
            None => self.add(name, finding(High, "is missing: its requests are not reviewed")),
            Some(entry) => {
                let differences = differences(&defaulted(wanted, half), &defaulted(entry, half), namespace, waits);
                differences.into_iter().for_each(|difference| self.add(name, difference));
            }
        }
    }

    /// The most severe first.
    fn diagnoses(self, namespace: &str) -> Vec<Diagnosis> {
        let diagnoses = self.0.into_iter().map(|((_, what), (state, names))| Diagnosis {
            state,
            evidence: format!("{}: {what}", listed(&names)),
            fix: matches!(state, DiagnosisState::Finding(_)).then(|| fix_command(namespace)),
        });
        diagnoses.collect()
    }
}

fn entry_named<'c>(configuration: &'c Value, name: &str) -> Option<&'c Value> {
    entries(configuration).find(|entry| entry["name"] == name)
}

/// The command that restores the shipped entries.
fn fix_command(namespace: &str) -> String {
    format!(
        "interlock doctor -n {namespace} --registration | kubectl apply --server-side --force-conflicts -f -\n(if a \
         chart or GitOps manages it, change it there)"
    )
}

/// The shipped configuration for an installation in this namespace, in its state after the first review.
fn shipped(text: &str, namespace: &str) -> Option<Value> {
    let mut shipped: Value = serde_saphyr::from_str(&text.replace(DEFAULT_NAMESPACE, namespace)).ok()?;
    let annotations = shipped["metadata"]["annotations"].as_object_mut();
    let annotated = annotations.and_then(|all| all.remove(OPEN_UNTIL_CALLED)).unwrap_or_default();
    for entry in shipped["webhooks"].as_array_mut()? {
        let mut opened = annotated.as_str().unwrap_or_default().split(',');
        if opened.any(|name| entry["name"] == name) {
            entry["failurePolicy"] = FAIL.into();
        }
    }
    Some(shipped)
}

/// The shipped configuration, with the optional entries that the live configuration has.
fn shipped_like(half: Half, live: &Value, namespace: &str) -> Option<Value> {
    let mut wanted = shipped(manifest(half), namespace)?;
    let optional = shipped(OPTIONAL, namespace)?;
    let chosen = entries(&optional).filter(|entry| like(entry, live).is_some());
    wanted["webhooks"].as_array_mut()?.extend(chosen.cloned());
    Some(wanted)
}

/// The entry of a configuration with the same name.
fn like<'c>(entry: &Value, configuration: &'c Value) -> Option<&'c Value> {
    entry_named(configuration, entry["name"].as_str()?)
}

/// An entry with the API server's defaults.
fn defaulted(entry: &Value, half: Half) -> Value {
    let mut entry = entry.clone();
    let defaults = json!({
        "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
        "matchConditions": [], "timeoutSeconds": 10,
        "reinvocationPolicy": if half == Half::Mutating { Value::from("Never") } else { Value::Null },
    });
    for (field, default) in defaults.as_object().into_iter().flatten() {
        if entry[field].is_null() && !default.is_null() {
            entry[field] = default.clone();
        }
    }
    entry
}

/// The namespaces that the first entry selects by name; empty if all are guarded.
pub(super) fn guarded_namespaces(snapshot: &Snapshot) -> Vec<String> {
    let configuration = snapshot.validating.named(CONFIGURATION).ok().flatten();
    let first = configuration.and_then(|it| entries(it).next());
    let names = first.map(|entry| names(&entry["namespaceSelector"], "In")).unwrap_or_default();
    names.into_iter().map(str::to_owned).collect()
}

/// Keeps the operator's choices: namespaces, failurePolicy, timeoutSeconds, and the port of the Service. Without this, the repair
/// of one entry would guard namespaces in which Interlock has no rights, and refuse their requests.
fn keep_operator_choices(wanted: &mut Value, live: &Value, half: Half, namespace: &str) {
    let registration = Registration::new(half, live.clone());
    let waiting = registration.waiting();
    // An entry that waits for a review is open without a choice. The entry for probes is never open by choice.
    let is_chosen_open = |entry: &Value| {
        let name = entry["name"].as_str().unwrap_or_default();
        entry["failurePolicy"] == "Ignore" && !waiting.contains(&name)
    };
    let mut guards = entries(live).filter(|entry| !is_for_probes(entry)).peekable();
    let is_open = guards.peek().is_some() && guards.all(is_chosen_open);
    let port = entries(live).find_map(|entry| entry["clientConfig"]["service"]["port"].as_u64());
    let guards_selected = guards_selected_namespaces(live);
    let Some(list) = wanted["webhooks"].as_array_mut() else { return };
    list.retain(|entry| !(guards_selected && is_cluster_scoped(entry)));
    for entry in list {
        if let Some(port) = port {
            entry["clientConfig"]["service"]["port"] = port.into();
        }
        let own = like(entry, live);
        if let Some(seconds) = own.and_then(|own| own["timeoutSeconds"].as_u64()).filter(|seconds| *seconds <= 5) {
            entry["timeoutSeconds"] = seconds.into();
        }
        if is_for_probes(entry) {
            continue;
        }
        if is_open || own.is_some_and(is_chosen_open) {
            entry["failurePolicy"] = "Ignore".into();
        }
        let is_chosen = |it: &&Value| {
            let difference = namespaces(&entry["namespaceSelector"], &it["namespaceSelector"], namespace);
            difference.is_some_and(|(state, _)| state == DiagnosisState::Note)
        };
        // A missing entry gets the namespaces of another entry.
        let Some(chosen) = own.or_else(|| entries(live).find(is_chosen)).filter(is_chosen) else { continue };
        entry["namespaceSelector"] = chosen["namespaceSelector"].clone();
        let inside = each(&chosen["matchConditions"]).find(|it| it["name"] == IN_NAMESPACE_CONDITION);
        if let Some(inside) = inside {
            let conditions = each(&entry["matchConditions"]).chain([inside]).cloned().collect();
            entry["matchConditions"] = conditions;
        }
    }
}

/// Whether an entry is for probes. It selects Interlock's own namespace, which no other entry selects, and fails closed.
fn is_for_probes(entry: &Value) -> bool {
    entry["name"].as_str().is_some_and(|name| name.ends_with("probes.interlock.dev"))
}

/// Lets entries that should fail closed fail open, until the leader has proved that a review arrives.
fn open_until_called(wanted: &mut Value) -> Option<()> {
    let mut open = Vec::new();
    for entry in wanted["webhooks"].as_array_mut()? {
        if entry["failurePolicy"] == FAIL && !is_for_probes(entry) {
            entry["failurePolicy"] = "Ignore".into();
            open.push(entry["name"].as_str()?.to_owned());
        }
    }
    if !open.is_empty() {
        wanted["metadata"]["annotations"][OPEN_UNTIL_CALLED] = open.join(",").into();
    }
    Some(())
}

/// Both shipped configurations as a list, with the client configuration and the choices of the live entries. Entries fail closed
/// only if a replica `answers` now.
pub(super) fn repair(namespace: &str, validating: &Value, mutating: &Value, answers: bool) -> Value {
    let live = [validating, mutating];
    let clients = || live.iter().flat_map(|it| entries(it)).map(|entry| &entry["clientConfig"]);
    let bundle = clients().find_map(bundle);
    let url = clients().find_map(|client| client["url"].as_str());
    // The URL without its path.
    let base = url.map(|url| url.rsplit_once('/').map_or(url, |(base, _)| base));
    let items = Half::ALL.into_iter().zip(live).filter_map(|(half, live)| {
        let mut wanted = shipped_like(half, live, namespace)?;
        keep_operator_choices(&mut wanted, live, half, namespace);
        if !answers {
            open_until_called(&mut wanted)?;
        }
        for entry in wanted["webhooks"].as_array_mut()? {
            if let (Some(base), Some(path)) = (base, entry["clientConfig"]["service"]["path"].as_str()) {
                entry["clientConfig"] = json!({"url": format!("{base}{path}")});
            }
            // The entry's own caBundle, or that of another entry. `kubectl apply` may remove a missing field.
            let own = like(entry, live).and_then(|own| self::bundle(&own["clientConfig"]));
            if let Some(bundle) = own.or(bundle) {
                entry["clientConfig"]["caBundle"] = bundle.into();
            }
        }
        Some(wanted)
    });
    json!({"apiVersion": "v1", "kind": "List", "items": items.collect::<Vec<_>>()})
}

fn bundle(client_config: &Value) -> Option<&str> {
    client_config["caBundle"].as_str().filter(|bundle| !bundle.is_empty())
}

#[cfg(test)]
mod tests;
