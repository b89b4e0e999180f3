//! Which field differs between two values.

use serde_json::{Map, Value};

/// The path of the first field that differs, as `source.helm.releaseName`; `None` if no field does, except those for which `is_free`. A
/// null counts as an absent field. The items of a list have the path of the list.
pub(crate) fn changed_field(before: &Value, after: &Value, is_free: impl Fn(&str) -> bool + Copy) -> Option<String> {
    changed_below("", before, after, is_free)
}

fn changed_below(path: &str, before: &Value, after: &Value, is_free: impl Fn(&str) -> bool + Copy) -> Option<String> {
    if before == after || is_free(path) {
        return None;
    }
    let nothing = Map::new();
    let (before, after) = match (before, after) {
        (Value::Object(before), Value::Object(after)) => (before, after),
        // What an absent part had, or a new one has, may be free.
        (Value::Object(before), Value::Null) => (before, &nothing),
        (Value::Null, Value::Object(after)) => (&nothing, after),
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            let mut items = before.iter().zip(after);
            return items.find_map(|(before, after)| changed_below(path, before, after, is_free));
        }
        _ => return Some(path.to_owned()),
    };
    let missing = Value::Null;
    let mut names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    names.find_map(|name| {
        let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let [before, after] = [before, after].map(|part| part.get(name).unwrap_or(&missing));
        changed_below(&below, before, after, is_free)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_fields_that_are_not_free_count() {
        let changed = |before: Value, after: Value| changed_field(&before, &after, |path| ["a", "b.c"].contains(&path));
        for (before, after, field) in [
            (json!({"a": 1}), json!({"a": 2}), None),
            (json!({"b": {"c": 1, "d": 1}}), json!({"b": {"c": 2, "d": 1}}), None),
            (json!({"b": {"c": 1}}), json!({}), None),
            (json!({"b": {}}), json!({"b": null}), None),
            (json!({"b": {"c": 1, "d": 1}}), json!({"b": {"c": 2}}), Some("b.d")),
            (json!({"b": [{"c": 1}]}), json!({"b": [{"c": 2}]}), None),
            (json!({"b": [{"d": 1}]}), json!({"b": [{"d": 2}]}), Some("b.d")),
            (json!({"b": [{"c": 1}]}), json!({"b": []}), Some("b")),
            (json!({"b": 1}), json!({"b": {"c": 1}}), Some("b")),
            (json!({}), json!({"d": false}), Some("d")),
        ] {
            assert_eq!(changed(before.clone(), after.clone()).as_deref(), field, "{before} {after}");
        }
    }
}
