//! The registration: compares the entries of both webhook configurations with the shipped entries.

mod differences;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::diagnosis::{Diagnosis, DiagnosisState};
use super::fetch::Fetched;
use super::snapshot::Snapshot;
use crate::inspect::arrival::{FAIL, Half, OPEN_UNTIL_CALLED, Registration};
pub(super) use differences::listed;
use interlock_engine::policy::DEFAULT_NAMESPACE;
use interlock_engine::policy_files::LoadedPolicies;
use interlock_engine::severity::Severity::{High, Medium};

use differences::{
    EntryDifference, IN_NAMESPACE_CONDITION, differences, entries, finding, guards_selected_namespaces,
    is_cluster_scoped, names, namespaces,
};

const TOPIC: &str = "registration";

/// The entry that receives the creation and the deletion of release records.
pub(super) const RECORD_ENTRY: &str = "create-delete.records.interlock.dev";

/// Both webhook configurations: kind, resource, and shipped manifest.
const CONFIGURATIONS: [(&str, &str, &str); 2] = [
    (
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        include_str!("../../../manifests/base/validating-webhooks.yaml"),
    ),
    (
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        include_str!("../../../manifests/base/mutating-webhooks.yaml"),
    ),
];

/// Entries of the first configuration that an operator may add.
const OPTIONAL: &str = include_str!("../../../manifests/overlays/protected-releases/entries.yaml");

pub(super) fn diagnose(snapshot: &Snapshot) -> Vec<Diagnosis> {
    let live = [&snapshot.validating, &snapshot.mutating];
    let halves = CONFIGURATIONS.into_iter().zip(live);
    let mut found: Vec<_> =
        halves.flat_map(|(half, live)| diagnose_configuration(half, live, &snapshot.namespace)).collect();
    found.extend(protection(snapshot));
    found
}

/// Reports a policy that protects releases whose deletions are not sent to Interlock.
fn protection(snapshot: &Snapshot) -> Option<Diagnosis> {
    let policies = LoadedPolicies::of(snapshot.policies.as_ref().ok()?.as_ref()?).policies?;
    let live = snapshot.validating.named("interlock").ok()??;
    let optional = shipped(OPTIONAL, &snapshot.namespace)?;
    let missing: Vec<_> = entries(&optional)
        .filter_map(|entry| entry["name"].as_str())
        .filter(|name| entry_named(live, name).is_none())
        .map(str::to_owned)
        .collect();
    if policies.of("").protected.names_nothing() || missing.is_empty() {
        return None;
    }
    let evidence = format!(
        "the policy protects releases, but {} {} missing: their custom resources and namespaces can be deleted, and while \
         Interlock is down all their objects",
        listed(&missing),
        if missing.len() == 1 { "is" } else { "are" }
    );
    let fix = "set protectedReleases: true in the values of the chart, or use manifests/overlays/protected-releases";
    Some(Diagnosis::found(TOPIC, Medium, evidence, fix.to_owned()))
}

fn diagnose_configuration(
    (kind, resource, text): (&str, &str, &str),
    live: &Fetched,
    namespace: &str,
) -> Vec<Diagnosis> {
    let live = match live.named("interlock") {
        Ok(Some(live)) => live,
        Ok(None) => {
            let half = if kind.starts_with('V') { "no request is judged" } else { "no record is stamped" };
            return vec![Diagnosis::found(
                TOPIC,
                High,
                format!("there is no {kind} interlock: {half}"),
                fix_command(namespace),
            )];
        }
        Err(why) => return vec![Diagnosis::skipped(TOPIC, format!("{kind}: {why}"))],
    };
    let Some(shipped) = shipped_like(text, live, namespace) else {
        return vec![Diagnosis::skipped(TOPIC, format!("the {kind} in this binary cannot be parsed"))];
    };
    let mut found = Differences::default();
    for wanted in entries(&shipped) {
        found.compare(wanted, live, kind, namespace);
    }
    for name in entries(live).filter_map(|entry| entry["name"].as_str()) {
        if entry_named(&shipped, name).is_none() {
            found.add(name, (DiagnosisState::Note, "is not part of this version".to_owned()));
        }
    }
    if found.0.is_empty() {
        let count = entries(&shipped).count();
        let evidence = format!("all {count} entries of {resource}/interlock match the shipped ones");
        return vec![Diagnosis::ok(TOPIC, evidence)];
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
    fn compare(&mut self, wanted: &Value, live: &Value, kind: &str, namespace: &str) {
        let name = wanted["name"].as_str().unwrap_or_default();
        let half = if kind.starts_with('V') { Half::Validating } else { Half::Mutating };
        let waits = Registration::new(half, live.clone()).waiting().contains(&name);
        match entry_named(live, name) {
            None if guards_selected_namespaces(live) && is_cluster_scoped(wanted) => {
                let what = "is missing, as expected where only selected namespaces are guarded: its objects are \
                            cluster-scoped";
                self.add(name, (DiagnosisState::Note, what.to_owned()));
            }
            None => self.add(name, finding(High, "is missing: its requests are not reviewed".to_owned())),
            Some(entry) => {
                let differences = differences(&defaulted(wanted, kind), &defaulted(entry, kind), namespace, waits);
                differences.into_iter().for_each(|difference| self.add(name, difference));
            }
        }
    }

    /// The most severe first.
    fn diagnoses(self, namespace: &str) -> Vec<Diagnosis> {
        let diagnoses = self.0.into_iter().map(|((_, what), (state, names))| Diagnosis {
            check: TOPIC,
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
    let annotated = shipped.pointer(&annotation_pointer()).and_then(Value::as_str).unwrap_or_default().to_owned();
    for entry in shipped["webhooks"].as_array_mut()? {
        if entry["name"].as_str().is_some_and(|name| annotated.split(',').any(|it| it == name)) {
            entry["failurePolicy"] = FAIL.into();
        }
    }
    if let Some(annotations) = shipped["metadata"]["annotations"].as_object_mut() {
        annotations.remove(OPEN_UNTIL_CALLED);
    }
    Some(shipped)
}

fn annotation_pointer() -> String {
    jsonptr::PointerBuf::from_tokens(["metadata", "annotations", OPEN_UNTIL_CALLED]).to_string()
}

/// The shipped configuration, with the optional entries that the live configuration has.
fn shipped_like(text: &str, live: &Value, namespace: &str) -> Option<Value> {
    let mut shipped = shipped(text, namespace)?;
    let optional = self::shipped(OPTIONAL, namespace)?;
    let chosen =
        entries(&optional).filter(|entry| entry["name"].as_str().is_some_and(|name| entry_named(live, name).is_some()));
    shipped["webhooks"].as_array_mut()?.extend(chosen.cloned());
    Some(shipped)
}

/// An entry with the API server's defaults.
fn defaulted(entry: &Value, kind: &str) -> Value {
    let mut entry = entry.clone();
    let mut otherwise = |field: &str, value: Value| {
        if entry[field].is_null() {
            entry[field] = value;
        }
    };
    otherwise("failurePolicy", json!("Fail"));
    otherwise("matchPolicy", json!("Equivalent"));
    otherwise("namespaceSelector", json!({}));
    otherwise("objectSelector", json!({}));
    otherwise("matchConditions", json!([]));
    otherwise("timeoutSeconds", json!(10));
    if kind.starts_with('M') {
        otherwise("reinvocationPolicy", json!("Never"));
    }
    entry
}

/// The namespaces that the first entry selects by name; empty if all are guarded.
pub(super) fn guarded_namespaces(snapshot: &Snapshot) -> Vec<String> {
    let configuration = snapshot.validating.named("interlock").ok().flatten();
    let first = configuration.and_then(|it| entries(it).next());
    first.map(|entry| names(&entry["namespaceSelector"], "In").into_iter().collect()).unwrap_or_default()
}

/// Keeps the operator's choices: namespaces, failurePolicy, timeoutSeconds, and the port of the Service. Without this, the repair
/// of one entry would guard namespaces in which Interlock has no rights, and refuse their requests.
fn keep_operator_choices(wanted: &mut Value, live: &Value, half: Half, namespace: &str) {
    let registration = Registration::new(half, live.clone());
    let waiting = registration.waiting();
    let all: Vec<_> = entries(live).cloned().collect();
    // An entry that waits for a review is open without a choice. The entry for probes is never open by choice.
    let is_chosen_open = |entry: &Value| {
        let name = entry["name"].as_str().unwrap_or_default();
        entry["failurePolicy"] == "Ignore" && !waiting.contains(&name)
    };
    let mut guards = all.iter().filter(|entry| !is_for_probes(entry)).peekable();
    let is_open = guards.peek().is_some() && guards.all(is_chosen_open);
    let port = all.iter().find_map(|entry| entry["clientConfig"]["service"]["port"].as_u64());
    let guards_selected = guards_selected_namespaces(live);
    let Some(list) = wanted["webhooks"].as_array_mut() else { return };
    list.retain(|entry| !(guards_selected && is_cluster_scoped(entry)));
    for entry in list {
        if let Some(port) = port {
            entry["clientConfig"]["service"]["port"] = port.into();
        }
        let is_for_probes = is_for_probes(entry);
        let own = all.iter().find(|it| it["name"] == entry["name"]);
        let is_chosen = |it: &&Value| {
            let difference = namespaces(&entry["namespaceSelector"], &it["namespaceSelector"], namespace);
            difference.is_some_and(|(state, _)| state == DiagnosisState::Note)
        };
        // A missing entry gets the namespaces of another entry.
        let like = own.or_else(|| all.iter().find(|it| is_chosen(it))).filter(is_chosen).filter(|_| !is_for_probes);
        let selector = like.map(|it| it["namespaceSelector"].clone());
        let inside = like.and_then(|it| {
            it["matchConditions"].as_array()?.iter().find(|it| it["name"] == IN_NAMESPACE_CONDITION).cloned()
        });
        if let Some(selector) = selector {
            entry["namespaceSelector"] = selector;
        }
        if let Some(inside) = inside {
            let mut conditions = entry["matchConditions"].as_array().cloned().unwrap_or_default();
            conditions.push(inside);
            entry["matchConditions"] = conditions.into();
        }
        if !is_for_probes && (is_open || own.is_some_and(is_chosen_open)) {
            entry["failurePolicy"] = "Ignore".into();
        }
        if let Some(seconds) = own.and_then(|own| own["timeoutSeconds"].as_u64()).filter(|seconds| *seconds <= 5) {
            entry["timeoutSeconds"] = seconds.into();
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
    let bundles = live.iter().flat_map(|it| entries(it)).filter_map(|entry| entry["clientConfig"]["caBundle"].as_str());
    let bundle = bundles.into_iter().find(|bundle| !bundle.is_empty());
    let url = live.iter().flat_map(|it| entries(it)).find_map(|entry| entry["clientConfig"]["url"].as_str());
    // The URL without its path.
    let base = url.map(|url| url.rsplit_once('/').map_or(url, |(base, _)| base));
    let items = CONFIGURATIONS.iter().zip(live).zip(Half::ALL).filter_map(|(((_, _, text), live), half)| {
        let mut wanted = shipped_like(text, live, namespace)?;
        keep_operator_choices(&mut wanted, live, half, namespace);
        if !answers {
            open_until_called(&mut wanted)?;
        }
        for entry in wanted["webhooks"].as_array_mut()? {
            if let (Some(base), Some(path)) = (base, entry["clientConfig"]["service"]["path"].as_str()) {
                entry["clientConfig"] = json!({"url": format!("{base}{path}")});
            }
            // The entry's own caBundle, or that of another entry. `kubectl apply` may remove a missing field.
            let own = entries(live).find(|it| it["name"] == entry["name"]);
            let own = own.and_then(|it| it["clientConfig"]["caBundle"].as_str()).filter(|bundle| !bundle.is_empty());
            if let Some(bundle) = own.or(bundle) {
                entry["clientConfig"]["caBundle"] = bundle.into();
            }
        }
        Some(wanted)
    });
    json!({"apiVersion": "v1", "kind": "List", "items": items.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests;
