//! The difference of two JSON texts against a naive comparison of two trees.
//!
//! Input: a line with the old value, then the new one.

use interlock_engine::managed::{Exceptions, delta, delta_except};
use serde_json::Value;

use super::Input;
use super::json::{depth, unique};

/// Beyond these, Interlock reports whole containers.
const MAX_TOLD_APART: usize = 1_000;
const MAX_DEPTH: usize = 100;

/// The fields that the API server maintains, by their pointers.
const MAINTAINED: [&str; 4] =
    ["/metadata/generation", "/metadata/managedFields", "/metadata/resourceVersion", "/status"];

/// A place as a JSON pointer, and the new text there.
type Change = (String, Option<String>);

pub fn run(input: &[u8]) -> Input {
    let Some((old, new)) = std::str::from_utf8(input).ok().and_then(|text| text.split_once('\n')) else {
        return Input::Foreign;
    };
    // Text that is not JSON must not cause a panic either.
    let found = delta(old, new);
    let (Some(before), Some(after)) = (unique(old), unique(new)) else {
        return Input::Foreign;
    };
    let mut rebuilt = before.clone();
    for change in found.iter().flat_map(|delta| delta.changed_values()) {
        apply(&mut rebuilt, change.path.pointer().as_str(), change.new.map(|new| unique(new).expect("a part of JSON")));
    }
    assert_eq!(rebuilt, after, "the changed values of {old} do not lead to {new}");
    as_one_encoder_writes(&before, &after);
    Input::Own
}

/// If both sides come from the same encoder, the difference is exactly that of the values.
fn as_one_encoder_writes(before: &Value, after: &Value) {
    let (old, new) = (before.to_string(), after.to_string());
    let mut expected = Vec::new();
    naive(Some(before), Some(after), String::new(), &mut expected);
    if expected.len() >= MAX_TOLD_APART || depth(before).max(depth(after)) >= MAX_DEPTH {
        return;
    }
    expected.sort_unstable();
    let found = delta(&old, &new);
    let changes = |delta: Option<interlock_engine::managed::Delta<'_>>| {
        let changes = delta.iter().flat_map(|delta| delta.changed_values()).collect::<Vec<_>>();
        let changes = changes.iter().map(|it| (it.path.pointer().to_string(), it.new.map(str::to_owned)));
        let mut changes: Vec<Change> = changes.collect();
        changes.sort_unstable();
        changes
    };
    assert_eq!(changes(found), expected, "from {old} to {new}");
    let paths: [&[&str]; 4] =
        [&["metadata", "generation"], &["metadata", "managedFields"], &["metadata", "resourceVersion"], &["status"]];
    let left = changes(delta_except(&old, &new, Exceptions { paths: &paths, found: &[] }));
    let is_maintained = |(place, _): &Change| {
        MAINTAINED
            .iter()
            .any(|field| place.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    };
    expected.retain(|change| !is_maintained(change));
    assert_eq!(left, expected, "without the fields of the API server, from {old} to {new}");
}

/// Every place where two trees differ: members by name, the items of lists of one length by index.
fn naive(old: Option<&Value>, new: Option<&Value>, place: String, found: &mut Vec<Change>) {
    match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            for name in old.keys().chain(added) {
                let place = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
                naive(old.get(name), new.get(name), place, found);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                naive(Some(old), Some(new), format!("{place}/{index}"), found);
            }
        }
        (old, new) => {
            let text = |value: Option<&Value>| value.map(Value::to_string);
            if text(old) != text(new) {
                found.push((place, text(new)));
            }
        }
    }
}

fn apply(root: &mut Value, pointer: &str, new: Option<Value>) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        *root = new.expect("a root is never removed");
        return;
    };
    let name = name.replace("~1", "/").replace("~0", "~");
    match (root.pointer_mut(parent).expect("the parent of a change"), new) {
        (Value::Array(items), Some(new)) => items[name.parse::<usize>().expect("an index")] = new,
        (Value::Object(members), Some(new)) => _ = members.insert(name, new),
        (Value::Object(members), None) => _ = members.remove(&name).expect("a removed member"),
        (other, _) => panic!("{pointer} leads into {other}"),
    }
}
