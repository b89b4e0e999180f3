//! `managedFields` against a slow merge of the sets of fields.
//!
//! Input: the JSON list of an object's `metadata.managedFields`.

use std::collections::{BTreeMap, BTreeSet};

use interlock_engine::effort::Effort;
use interlock_engine::managed::{Declared, ItemKey, ManagedFields};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Input;
use super::json::unique;

/// The steps that a byte of `managedFields` may cost.
const MAX_STEPS_PER_BYTE: u64 = 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default)]
    manager: String,
    #[serde(default)]
    api_version: String,
    subresource: Option<String>,
    #[serde(rename = "time")]
    _time: Option<String>,
    #[serde(rename = "fieldsV1")]
    fields: Option<Value>,
}

pub fn run(input: &[u8]) -> Input {
    let Some(text) = std::str::from_utf8(input).ok() else { return Input::Foreign };
    let Ok(raw) = serde_json::from_str::<&RawValue>(text) else { return Input::Foreign };
    let effort = Effort::of_review();
    let fields = ManagedFields::read(Some(raw.into()), &effort);
    let of_all = fields.of("v1", |_| true);
    let of_helm = fields.of("apps/v1", |manager| manager == "helm");
    assert!(effort.used() <= MAX_STEPS_PER_BYTE * text.len() as u64, "{} steps", effort.used());
    let Some(entries) = unique(text).filter(|value| value.is_array()) else { return Input::Foreign };
    // serde also takes a list for an entry, its items for the fields in their order. No API server writes one.
    if entries.as_array().into_iter().flatten().any(Value::is_array) {
        return Input::Own;
    }
    // Entries of a wrong shape hide all others.
    let entries = serde_json::from_value::<Vec<Entry>>(entries).unwrap_or_default();
    let sets = |api_version: &str, is_wanted: &dyn Fn(&str) -> bool| {
        let theirs = entries.iter().filter(|entry| {
            let is_complete = entry.subresource.as_deref().unwrap_or_default().is_empty();
            is_complete && entry.api_version == api_version && is_wanted(&entry.manager)
        });
        theirs.filter_map(|entry| entry.fields.clone()).filter(is_set).collect::<Vec<_>>()
    };
    for (found, sets) in [(of_all, sets("v1", &|_| true)), (of_helm, sets("apps/v1", &|manager| manager == "helm"))] {
        if !is_plain(&sets) {
            continue;
        }
        let (mut of_found, mut expected) = (BTreeSet::new(), BTreeSet::new());
        places(&found, "", &mut of_found);
        merged(&sets, "", &mut expected);
        assert_eq!(of_found, expected, "{text}");
    }
    Input::Own
}

/// The key of an item; `None` for any other step.
fn key(step: &str) -> Option<ItemKey> {
    let (kind, text) = step.split_once(':')?;
    match kind {
        "k" => Some(ItemKey::Members(serde_json::from_str::<BTreeMap<_, _>>(text).ok()?.into_iter().collect())),
        "v" => serde_json::from_str(text).ok().map(ItemKey::Value),
        "i" => serde_json::from_str(text).ok().map(ItemKey::Index),
        _ => None,
    }
}

/// Whether a value is a set of fields: maps all the way down, with keys that can be parsed.
fn is_set(value: &Value) -> bool {
    let Value::Object(members) = value else { return false };
    members.iter().all(|(step, inner)| match step.split_once(':') {
        Some(("f", _)) => is_set(inner),
        Some(("k" | "v" | "i", _)) => key(step).is_some() && is_set(inner),
        _ => true,
    })
}

/// Whether sets are as an API server writes them: no unknown steps, and at one place either members or items.
fn is_plain(sets: &[Value]) -> bool {
    let steps = || sets.iter().filter_map(Value::as_object).flatten();
    let is_member = |step: &str| step.starts_with("f:");
    let is_item = |step: &str| key(step).is_some();
    let known = steps().all(|(step, _)| step == "." || is_member(step) || is_item(step));
    let mixed = steps().any(|(step, _)| is_member(step)) && steps().any(|(step, _)| is_item(step));
    let mut inner: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    steps().filter(|(step, _)| *step != ".").for_each(|(step, set)| {
        inner.entry(key(step).map_or(step.clone(), |key| format!("{key:?}"))).or_default().push(set.clone());
    });
    known && !mixed && inner.values().all(|sets| is_plain(sets))
}

/// The places that the union of sets has. A place that one set has as a whole is one for all.
fn merged(sets: &[Value], place: &str, found: &mut BTreeSet<String>) {
    let sets: Vec<_> = sets.iter().filter_map(Value::as_object).collect();
    if sets.iter().any(|set| set.is_empty()) {
        found.insert(format!("{place}!"));
        return;
    }
    let mut inner: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (step, set) in sets.into_iter().flatten().filter(|(step, _)| *step != ".") {
        let step = key(step).map_or_else(|| step["f:".len()..].to_owned(), |key| format!("{key:?}"));
        inner.entry(step).or_default().push(set.clone());
    }
    if inner.is_empty() {
        found.insert(place.to_owned());
    }
    for (step, sets) in inner {
        merged(&sets, &format!("{place}\u{1f}{step}"), found);
    }
}

/// The places of a declaration, in the same notation.
fn places(declared: &Declared<'_>, place: &str, found: &mut BTreeSet<String>) {
    match declared {
        Declared::Leaf(_) => _ = found.insert(format!("{place}!")),
        Declared::Fields(fields) if fields.is_empty() => _ = found.insert(place.to_owned()),
        Declared::Items(items) if items.is_empty() => _ = found.insert(place.to_owned()),
        Declared::Fields(fields) => {
            fields.iter().for_each(|(name, inner)| places(inner, &format!("{place}\u{1f}{name}"), found));
        }
        Declared::Items(items) => {
            items.iter().for_each(|(key, inner)| places(inner, &format!("{place}\u{1f}{key:?}"), found));
        }
        Declared::Document(_) => panic!("managedFields contain no document"),
    }
}
