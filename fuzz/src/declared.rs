//! The declared fields that an edit changes, against a slow reference over trees of values.
//!
//! Input: `{"document": ..., "old": ..., "new": ...}`.
//!
//! The reference says only whether an edit changes something declared. It follows the object from the root for each
//! question, and knows neither differences of texts nor indices of items by key.

use interlock_engine::effort::Effort;
use interlock_engine::managed::{Declared, declared_by, delta, touched};
use serde_json::Value;

use super::Input;
use super::json::{all, depth, unique};

mod reference;

use reference::{Answer, Edit, is_plain};

/// The names whose meaning the reference knows: those with a rule of their own, and some that mean nothing.
const NAMES: [&str; 46] = [
    "a",
    "annotations",
    "apiVersion",
    "args",
    "b",
    "c",
    "command",
    "containerPort",
    "containers",
    "cpu",
    "data",
    "emptyDir",
    "env",
    "finalizers",
    "generation",
    "image",
    "immutable",
    "initContainers",
    "kind",
    "labels",
    "limits",
    "managedFields",
    "matchLabels",
    "memory",
    "metadata",
    "name",
    "namespace",
    "ownerReferences",
    "port",
    "ports",
    "protocol",
    "replicas",
    "requests",
    "resourceVersion",
    "resources",
    "selector",
    "spec",
    "status",
    "stringData",
    "template",
    "type",
    "uid",
    "value",
    "volumes",
    "web",
    "x",
];

/// Values nested deeper are compared as a whole.
const MAX_DEPTH: usize = 40;

/// The reference is slow.
const MAX_BYTES: usize = 20_000;

/// The most steps that a byte of an edit may cost.
const MAX_STEPS_PER_BYTE: u64 = 2_000;

pub fn run(input: &[u8]) -> Input {
    let Some(edit) = std::str::from_utf8(input).ok().filter(|text| text.len() < MAX_BYTES).and_then(unique) else {
        return Input::Foreign;
    };
    let [Some(document), Some(old), Some(new)] = ["document", "old", "new"].map(|side| edit.get(side)) else {
        return Input::Foreign;
    };
    let (before, after) = (old.to_string(), new.to_string());
    let (effort, nothing) = (Effort::of_review(), Declared::nothing());
    let declared = declared_by(document, &nothing);
    let fields = delta(&before, &after).map(|delta| touched(&[declared], &delta, &|_| false, &effort));
    let fields: Vec<_> = fields.unwrap_or_default().iter().map(ToString::to_string).collect();
    let is_known = |value: &Value| match value {
        Value::Object(members) => members.keys().all(|name| NAMES.contains(&name.as_str())),
        // Go reads larger ones as floating-point numbers.
        Value::Number(number) => number.as_i64().is_some_and(|number| number.unsigned_abs() < 1 << 53),
        Value::String(text) => is_plain(text),
        _ => true,
    };
    let most = MAX_STEPS_PER_BYTE * (before.len() + after.len() + input.len()) as u64;
    assert!(effort.used() <= most, "{} steps for {} bytes", effort.used(), input.len());
    // The reference says nothing about other names.
    if ![document, old, new].into_iter().all(|side| all(side, &is_known)) || depth(&edit) > MAX_DEPTH {
        return Input::Own;
    }
    match (Edit { old, new }).of(document) {
        Answer::Changes => assert!(!fields.is_empty(), "nothing changes for {document} from {old} to {new}"),
        Answer::Free => assert!(fields.is_empty(), "{fields:?} change for {document} from {old} to {new}"),
        Answer::Unsaid => {}
    }
    Input::Own
}
