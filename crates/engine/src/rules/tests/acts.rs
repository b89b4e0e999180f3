//! What lists of acts against the rules of an owner share.

use serde_json::Value;

use super::scenario::Verdict;

/// The verdict of one rule.
pub(crate) fn only(rule: &str, verdict: Verdict) -> Verdict {
    let named = verdict.err().unwrap_or_default().into_iter().filter(|it| *it == rule).collect::<Vec<_>>();
    if named.is_empty() { Ok(()) } else { Err(named) }
}

/// An object with another value at a JSON pointer.
pub(crate) fn set(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/");
    let mut part = &mut object;
    for name in parent.split('/').skip(1) {
        let name = name.replace("~1", "/");
        part = match part {
            Value::Array(items) => &mut items[name.parse::<usize>().unwrap()],
            other => &mut other[name.as_str()],
        };
    }
    match part {
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
        other => other[key.as_str()] = value,
    }
    object
}
